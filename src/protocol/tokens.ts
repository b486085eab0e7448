import * as s from "../core/schema.ts";
import { count, time } from "./fields.ts";

/** Tokens, as those who mint them see them. What a token is shows once, when it is made. */

export const ScopeSchema = s.choice(["read", "write", "tools", "admin"]);

const row = {
  tokenId: s.string(),
  label: s.optional(s.string()),
  scopes: s.array(ScopeSchema),
  /** Whose sessions it sees; absent, and not for all: those of the unnamed user. */
  userId: s.optional(s.string()),
  allUsers: s.boolean(),
  createdAt: time,
  /** The token that minted it; absent: the command line, or the first start. */
  createdBy: s.optional(s.string()),
  expiresAt: s.optional(time),
  lastUsedAt: s.optional(time),
  revokedAt: s.optional(time),
  /** Revoked in the gateway's memory only, because the disk could not be written. The gateway writes it as soon as it can. */
  isUnsaved: s.optional(s.literal(true)),
};

/** One token. `tokens.revoke` gives it as it is then. */
export const TokenRowSchema = s.closed(row);
export type TokenRow = s.Static<typeof TokenRowSchema>;

/** `tokens.create`, `token create`. */
export const TokenCreatedSchema = s.closed({ ...row, token: s.string() });
export type TokenCreatedPayload = s.Static<typeof TokenCreatedSchema>;

/** `tokens.list`, `token list`: newest first. */
export const TokenListSchema = s.closed({ count, tokens: s.array(TokenRowSchema) });
export type TokenListPayload = s.Static<typeof TokenListSchema>;
