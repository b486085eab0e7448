import type { Static } from "typebox";
import Type from "typebox";
import { closed, count, time } from "./fields.ts";

/** Tokens, as those who mint them see them. What a token is shows once, when it is made. */

export const ScopeSchema = Type.Enum(["read", "write", "tools", "admin"]);

const row = {
  tokenId: Type.String(),
  label: Type.Optional(Type.String()),
  scopes: Type.Array(ScopeSchema),
  /** Whose sessions it sees; absent, and not for all: those of the unnamed user. */
  userId: Type.Optional(Type.String()),
  allUsers: Type.Boolean(),
  createdAt: time,
  /** The token that minted it; absent: the command line, or the first start. */
  createdBy: Type.Optional(Type.String()),
  expiresAt: Type.Optional(time),
  lastUsedAt: Type.Optional(time),
  revokedAt: Type.Optional(time),
  /** Revoked in the gateway's memory only, because the disk could not be written. The gateway writes it as soon as it can. */
  isUnsaved: Type.Optional(Type.Literal(true)),
};

/** One token. `tokens.revoke` gives it as it is then. */
export const TokenRowSchema = Type.Object(row, closed);
export type TokenRow = Static<typeof TokenRowSchema>;

/** `tokens.create`, `token create`. */
export const TokenCreatedSchema = Type.Object({ ...row, token: Type.String() }, closed);
export type TokenCreatedPayload = Static<typeof TokenCreatedSchema>;

/** `tokens.list`, `token list`: newest first. */
export const TokenListSchema = Type.Object({ count, tokens: Type.Array(TokenRowSchema) }, closed);
export type TokenListPayload = Static<typeof TokenListSchema>;
