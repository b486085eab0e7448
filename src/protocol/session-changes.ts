import * as s from "../core/schema.ts";
import { KindSchema } from "./session-list.ts";

/** What methods that change a session answer. */

const named = { key: s.string(), sessionId: s.string() };

/** `sessions.create`, `sessions.rename`, `sessions.archive`, `sessions.restore`: the session as it is afterwards. */
export const SessionStateSchema = s.closed({
  ...named,
  kind: KindSchema,
  /** For `ifVersion`. */
  version: s.integer(),
  label: s.optional(s.string()),
  displayName: s.optional(s.string()),
  archived: s.optional(s.boolean()),
  /** For admins alone. */
  cwd: s.optional(s.string()),
  createdAt: s.integer(),
  updatedAt: s.integer(),
});
export type SessionStatePayload = s.Static<typeof SessionStateSchema>;

/** `sessions.patch`: the same, with everything that it can change. */
export const PatchedSchema = s.closed({
  ...SessionStateSchema.properties,
  model: s.optional(s.string()),
  thinkingLevel: s.optional(s.string()),
  verboseLevel: s.optional(s.choice(["off", "on", "full"])),
  sendPolicy: s.optional(s.choice(["allow", "deny"])),
});
export type PatchedPayload = s.Static<typeof PatchedSchema>;

/** `sessions.branch`: where the session stands now. `null`: before the root. */
export const BranchedSchema = s.closed({ ...named, leafId: s.nullable(s.string()) });

/** `sessions.fork`: the new session, and what it was made from. */
export const ForkedSchema = s.closed({
  ...SessionStateSchema.properties,
  forkedFrom: s.closed(/** `null`: from before the root. */ { ...named, entryId: s.nullable(s.string()) }),
});

/** `sessions.reset`: the new session under the old key, and where the old one is. Its `uid` is a reference that stays. */
export const ResetSchema = s.closed({ ...named, previous: s.closed({ ...named, uid: s.string() }) });

/**
 * There where another process was reading a database: bytes of what is gone stay in its file until that has ended. They are
 * erased then, or at the next start.
 */
const erasePending = s.optional(s.literal(true));

/** `sessions.delete`: in the trash, or with `purge` gone for good. */
export const DeletedSchema = s.closed({ ...named, state: s.choice(["trashed", "purged"]), erasePending });
export type DeletedPayload = s.Static<typeof DeletedSchema>;

/** `sessions.compact`: the entry that was written. */
export const CompactedSchema = s.closed({
  ...named,
  entryId: s.string(),
  firstKeptEntryId: s.string(),
  tokensBefore: s.integer(),
  /** An estimate. */
  tokensAfter: s.optional(s.integer()),
});
export type CompactedPayload = s.Static<typeof CompactedSchema>;

/** `sessions.redact`: where tombstones stand now, and which summaries may repeat what is gone. */
export const RedactedSchema = s.closed({
  ...named,
  sessions: s.array(s.closed({ sessionId: s.string(), entryIds: s.array(s.string()) })),
  mayRepeat: s.array(s.closed({ sessionId: s.string(), entryId: s.string() })),
  erasePending,
});
export type RedactedPayload = s.Static<typeof RedactedSchema>;

/** `users.remove`, `users rm`. */
export const UserRemovedSchema = s.closed({
  userId: s.string(),
  sessions: s.integer(),
  /** `false`: the user had neither sessions nor access tokens. Absent otherwise. */
  found: s.optional(s.literal(false)),
  erasePending,
});
