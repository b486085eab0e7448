import type { Static } from "typebox";
import Type from "typebox";
import { closed, time } from "./fields.ts";
import { ScopeSchema } from "./tokens.ts";

/** `POST /link`: a page shows the code of its link, and gets a token of its own. */

export const LinkSchema = Type.Object({ code: Type.String({ minLength: 1, maxLength: 256 }) }, closed);

export const LinkedSchema = Type.Object(
  {
    token: Type.String(),
    tokenId: Type.String(),
    scopes: Type.Array(ScopeSchema),
    /** Absent, and not for all: the unnamed user. */
    userId: Type.Optional(Type.String()),
    allUsers: Type.Boolean(),
    expiresAt: Type.Optional(time),
  },
  closed,
);
export type LinkedPayload = Static<typeof LinkedSchema>;
