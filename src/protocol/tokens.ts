import * as s from "../core/schema.ts";
import { count, id, label, time, userId } from "./fields.ts";
import { method } from "./method.ts";

/** Tokens as shown to their owners. The secret is shown once, when a token is created. */

export const ScopeSchema = s.choice(["read", "write", "tools", "admin"]);

const row = {
  tokenId: s.string(),
  label: s.optional(s.string()),
  scopes: s.array(ScopeSchema),
  /** The user whose sessions it sees; absent for the unnamed user and for tokens for all users. */
  userId: s.optional(s.string()),
  allUsers: s.boolean(),
  createdAt: time,
  /** The token that created it; absent if it was created by the CLI or the first start. */
  createdBy: s.optional(s.string()),
  expiresAt: s.optional(time),
  lastUsedAt: s.optional(time),
  revokedAt: s.optional(time),
  /**
   * Set if the token is revoked only in the gateway's memory, because the disk could not be written. The gateway writes
   * it as soon as it can.
   */
  isUnsaved: s.optional(s.literal(true)),
};

/** One token. `tokens.revoke` returns it after the change. */
export const TokenRowSchema = s.closed(row);
export type TokenRow = s.Static<typeof TokenRowSchema>;

/** `tokens.create`, `token create`. */
export const TokenCreatedSchema = s.closed({ ...row, token: s.string() });
export type TokenCreatedPayload = s.Static<typeof TokenCreatedSchema>;

/** `tokens.list`, `token list`: newest first. */
export const TokenListSchema = s.closed({ count, tokens: s.array(TokenRowSchema) });
export type TokenListPayload = s.Static<typeof TokenListSchema>;

/** `POST /link`: a page exchanges the code of its link for a token. */

export const LinkSchema = s.closed({ code: s.string({ minLength: 1, maxLength: 256 }) });

export const LinkedSchema = s.closed({
  token: s.string(),
  tokenId: s.string(),
  scopes: s.array(ScopeSchema),
  /** Absent for the unnamed user and for all users. */
  userId: s.optional(s.string()),
  allUsers: s.boolean(),
  expiresAt: s.optional(time),
});
export type LinkedPayload = s.Static<typeof LinkedSchema>;

/** Methods about the gateway itself, which require a token for all users. */

/**
 * A token can only grant rights that it has. `allUsers` needs the scope `admin`; it is a separate field because a user
 * may be called `*`.
 */
export const tokensCreate = method({
  scope: "admin",
  about: "Creates a token and returns it once.",
  params: s.closed({
    label: s.optional(label),
    scopes: s.array(ScopeSchema, { minItems: 1, maxItems: 4, uniqueItems: true }),
    /** Defaults to the unnamed user, unless `allUsers` is set. */
    userId: s.optional(userId),
    allUsers: s.optional(s.boolean({ default: false })),
    /** By default the token is valid until it is revoked. */
    expiresAt: s.optional(time),
  }),
  result: TokenCreatedSchema,
  needsAll: true,
});

export const tokensList = method({
  scope: "admin",
  about: "Lists tokens, without their values.",
  params: s.closed({}),
  result: TokenListSchema,
  needsAll: true,
  isIdempotent: true,
});

export const tokensRevoke = method({
  scope: "admin",
  about: "Revokes a token and closes its sockets.",
  params: s.closed({ tokenId: id }),
  result: TokenRowSchema,
  needsAll: true,
  isIdempotent: true,
  isDestructive: true,
});

/** The new token has at most the rights of the token that creates the link, and expires with it. */
export const linksCreate = method({
  scope: "read",
  about: "Creates a link that signs another browser in once, within ten minutes.",
  params: s.closed({}),
  result: s.closed({
    /** Relative to the gateway's address, because the gateway does not know the addresses that clients use. */
    url: s.string(),
    expiresAt: time,
  }),
});

/** Without `tokenId`, revokes the token used for the call. Any other token that it did not create is not found. */
export const tokensRevokeOwn = method({
  scope: "read",
  about: "Revokes the token of this call, or one that it created.",
  params: s.closed({ tokenId: s.optional(id) }),
  result: TokenRowSchema,
  isIdempotent: true,
  isDestructive: true,
});
