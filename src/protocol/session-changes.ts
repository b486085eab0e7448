import type { Static } from "typebox";
import Type from "typebox";
import { KindSchema } from "./session-list.ts";

/** What methods that change a session answer. */

const strict = { additionalProperties: false };
const named = { key: Type.String(), sessionId: Type.String() };

/** `sessions.create`, `sessions.rename`, `sessions.archive`, `sessions.restore`: the session as it is afterwards. */
export const SessionStateSchema = Type.Object(
  {
    ...named,
    kind: KindSchema,
    /** For `ifVersion`. */
    version: Type.Integer(),
    label: Type.Optional(Type.String()),
    displayName: Type.Optional(Type.String()),
    archived: Type.Optional(Type.Boolean()),
    /** For admins alone. */
    cwd: Type.Optional(Type.String()),
    createdAt: Type.Integer(),
    updatedAt: Type.Integer(),
  },
  strict,
);
export type SessionStatePayload = Static<typeof SessionStateSchema>;

/** `sessions.patch`: the same, with everything that it can change. */
export const PatchedSchema = Type.Object(
  {
    ...SessionStateSchema.properties,
    model: Type.Optional(Type.String()),
    thinkingLevel: Type.Optional(Type.String()),
    verboseLevel: Type.Optional(Type.Enum(["off", "on", "full"])),
    sendPolicy: Type.Optional(Type.Enum(["allow", "deny"])),
  },
  strict,
);
export type PatchedPayload = Static<typeof PatchedSchema>;

/** `sessions.branch`: where the session stands now. `null`: before the root. */
export const BranchedSchema = Type.Object(
  { ...named, leafId: Type.Union([Type.String(), Type.Null()]) },
  strict,
);

/** `sessions.fork`: the new session, and what it was made from. */
export const ForkedSchema = Type.Object(
  {
    ...SessionStateSchema.properties,
    forkedFrom: Type.Object(
      /** `null`: from before the root. */
      { ...named, entryId: Type.Union([Type.String(), Type.Null()]) },
      strict,
    ),
  },
  strict,
);

/** `sessions.reset`: the new session under the old key, and where the old one is. Its `uid` is a reference that stays. */
export const ResetSchema = Type.Object(
  { ...named, previous: Type.Object({ ...named, uid: Type.String() }, strict) },
  strict,
);

/**
 * There where another process was reading a database: bytes of what is gone stay in its file until that has ended. They are
 * erased then, or at the next start.
 */
const erasePending = Type.Optional(Type.Literal(true));

/** `sessions.delete`: in the trash, or with `purge` gone for good. */
export const DeletedSchema = Type.Object(
  { ...named, state: Type.Enum(["trashed", "purged"]), erasePending },
  strict,
);
export type DeletedPayload = Static<typeof DeletedSchema>;

/** `sessions.compact`: the entry that was written. */
export const CompactedSchema = Type.Object(
  {
    ...named,
    entryId: Type.String(),
    firstKeptEntryId: Type.String(),
    tokensBefore: Type.Integer(),
    /** An estimate. */
    tokensAfter: Type.Optional(Type.Integer()),
  },
  strict,
);
export type CompactedPayload = Static<typeof CompactedSchema>;

/** `sessions.redact`: where tombstones stand now, and which summaries may repeat what is gone. */
export const RedactedSchema = Type.Object(
  {
    ...named,
    sessions: Type.Array(
      Type.Object({ sessionId: Type.String(), entryIds: Type.Array(Type.String()) }, strict),
    ),
    mayRepeat: Type.Array(Type.Object({ sessionId: Type.String(), entryId: Type.String() }, strict)),
    erasePending,
  },
  strict,
);
export type RedactedPayload = Static<typeof RedactedSchema>;

/** `users.remove`, `users rm`. */
export const UserRemovedSchema = Type.Object(
  {
    userId: Type.String(),
    sessions: Type.Integer(),
    /** `false`: the user had neither sessions nor access tokens. Absent otherwise. */
    found: Type.Optional(Type.Literal(false)),
    erasePending,
  },
  strict,
);
