import * as s from "../core/schema.ts";
import { time } from "./fields.ts";
import { ScopeSchema } from "./tokens.ts";

/** `POST /link`: a page shows the code of its link, and gets a token of its own. */

export const LinkSchema = s.closed({ code: s.string({ minLength: 1, maxLength: 256 }) });

export const LinkedSchema = s.closed({
  token: s.string(),
  tokenId: s.string(),
  scopes: s.array(ScopeSchema),
  /** Absent, and not for all: the unnamed user. */
  userId: s.optional(s.string()),
  allUsers: s.boolean(),
  expiresAt: s.optional(time),
});
export type LinkedPayload = s.Static<typeof LinkedSchema>;
