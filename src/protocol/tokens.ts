import * as s from "../core/schema.ts";
import { count, id, label, time, userId } from "./fields.ts";
import { method } from "./method.ts";

/** Tokens as shown to their owners. The secret is shown once, when a token is created. */

export const ScopeSchema = s.choice(["read", "write", "tools", "admin"]);

const row = {
  tokenId: s.string(),
  label: s.optional(s.string()),
  scopes: s.array(ScopeSchema),
  /** The user whose sessions the token grants access to. Absent for the unnamed user and for tokens for all users. */
  userId: s.optional(s.string()),
  allUsers: s.boolean(),
  createdAt: time,
  /** The token that created this one. Absent if it was created by the CLI or at the first start. */
  createdBy: s.optional(s.string()),
  expiresAt: s.optional(time),
  lastUsedAt: s.optional(time),
  revokedAt: s.optional(time),
  /**
   * Set if the token has been revoked only in the gateway's memory because the disk is not writable. The gateway saves
   * the change as soon as it can.
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

/** `POST /link`: a console page exchanges its link's code for a token. */

export const LinkSchema = s.closed({ code: s.string({ minLength: 1, maxLength: 256 }) });

export const LinkedSchema = s.closed({
  token: s.string(),
  tokenId: s.string(),
  scopes: s.array(ScopeSchema),
  /** Absent for the unnamed user and for tokens for all users. */
  userId: s.optional(s.string()),
  allUsers: s.boolean(),
  expiresAt: s.optional(time),
});
export type LinkedPayload = s.Static<typeof LinkedSchema>;

/** Methods for tokens and links. */

/**
 * A token can grant only rights that it has. `allUsers` requires the scope `admin`. It is a separate field because a
 * user can be named `*`.
 */
export const tokensCreate = method({
  scope: "admin",
  about: "Creates a token and returns its value, which is shown only once.",
  params: s.closed({
    label: s.optional(label),
    scopes: s.array(ScopeSchema, { minItems: 1, maxItems: 4, uniqueItems: true }),
    /** Defaults to the unnamed user, unless `allUsers` is set. */
    userId: s.optional(userId),
    allUsers: s.optional(s.boolean({ default: false })),
    /** By default, the token is valid until it is revoked. */
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

/** The new token has at most the rights of the token that created the link, and it expires with that token. */
export const linksCreate = method({
  scope: "read",
  about: "Creates a one-time link that signs in another browser. The link expires after ten minutes.",
  params: s.closed({}),
  result: s.closed({
    /**
     * Relative to the gateway's address, because clients might reach the gateway at an address that it does not know.
     */
    url: s.string(),
    expiresAt: time,
  }),
});

/**
 * `tokenId` defaults to the token used for the call. Tokens that the calling token did not create are reported as not
 * found.
 */
export const tokensRevokeOwn = method({
  scope: "read",
  about: "Revokes the token used for this call, or a token created with it.",
  params: s.closed({ tokenId: s.optional(id) }),
  result: TokenRowSchema,
  isIdempotent: true,
  isDestructive: true,
});
