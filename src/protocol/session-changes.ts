import * as s from "../core/schema.ts";
import {
  agentId,
  attachments,
  exactlyOne,
  id,
  idempotencyKey,
  label,
  message,
  model,
  oneSession,
  queueMode,
  reference,
  sentence,
  sessionId,
  systemPrompt,
  thinkingLevel,
  user,
} from "./fields.ts";
import { method } from "./method.ts";
import { SentSchema } from "./runs.ts";
import { KindSchema } from "./session-list.ts";

/** Methods that change a session. */

const named = { key: s.string(), sessionId: s.string() };

/** `sessions.create`, `sessions.rename`, `sessions.archive`, `sessions.restore`: the session after the change. */
export const SessionStateSchema = s.closed({
  ...named,
  kind: KindSchema,
  /** The version to pass as `ifVersion`. */
  version: s.integer(),
  label: s.optional(s.string()),
  displayName: s.optional(s.string()),
  archived: s.optional(s.boolean()),
  /** Returned only to admins. */
  cwd: s.optional(s.string()),
  createdAt: s.integer(),
  updatedAt: s.integer(),
});
export type SessionStatePayload = s.Static<typeof SessionStateSchema>;

/** `sessions.patch`: the session with all fields that the call can change. */
export const PatchedSchema = s.closed({
  ...SessionStateSchema.properties,
  model: s.optional(s.string()),
  thinkingLevel: s.optional(s.string()),
  verboseLevel: s.optional(s.choice(["off", "on", "full"])),
  sendPolicy: s.optional(s.choice(["allow", "deny"])),
});
export type PatchedPayload = s.Static<typeof PatchedSchema>;

/** `sessions.branch`: the new leaf. `null` is the position before the root. */
export const BranchedSchema = s.closed({ ...named, leafId: s.nullable(s.string()) });

/** `sessions.label`: the entry and its label. The label is absent if the entry has none. */
export const LabeledSchema = s.closed({ ...named, entryId: s.string(), label: s.optional(s.string()) });

/** `sessions.fork`: the new session and its source. */
export const ForkedSchema = s.closed({
  ...SessionStateSchema.properties,
  forkedFrom: s.closed(
    /** `null` means the position before the root. */ { ...named, entryId: s.nullable(s.string()) },
  ),
});

/** `sessions.reset`: the new session, which has the old key, and the old session with its permanent `uid`. */
export const ResetSchema = s.closed({ ...named, previous: s.closed({ ...named, uid: s.string() }) });

/**
 * Set if another process was reading a database. Deleted bytes then stay in the file until that process exits. They are
 * erased at that point or at the next start.
 */
export const erasePending = s.optional(s.literal(true));

/** `sessions.delete`: the session that was moved to the trash or, with `purge`, deleted permanently. */
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

/** `sessions.redact`: the new tombstones, and the summaries that might still contain redacted content. */
export const RedactedSchema = s.closed({
  ...named,
  sessions: s.array(s.closed({ sessionId: s.string(), entryIds: s.array(s.string()) })),
  mayRepeat: s.array(s.closed({ sessionId: s.string(), entryId: s.string() })),
  erasePending,
});
export type RedactedPayload = s.Static<typeof RedactedSchema>;

const longestWaitMs = 600_000;

/**
 * `key` is a key, a short key, `main` or the ID of a named session. If it is absent, a session with a new ID is
 * created.
 */
export const sessionsCreate = method({
  scope: "write",
  about: "Creates an empty session.",
  params: s.closed({
    key: s.optional(reference),
    sessionId: s.optional(sessionId),
    label: s.optional(label),
    displayName: s.optional(label),
    model: s.optional(model),
    thinkingLevel: s.optional(thinkingLevel),
    cwd: s.optional(s.string({ minLength: 1, maxLength: 4096 })),
    agentId: s.optional(agentId),
    ...user,
  }),
  result: SessionStateSchema,
  adminOnly: ["cwd"],
});

/**
 * Like `chat.send`, but waits for the reply. With `timeoutMs: 0`, returns the run's state immediately, like
 * `agent.wait`.
 */
export const sessionsSend = method({
  scope: "write",
  about: "Sends a message to a session and waits for the reply, up to a timeout.",
  isLong: ({ timeoutMs = 0 }) => timeoutMs !== 0,
  params: s.closed({
    ...oneSession,
    message,
    idempotencyKey,
    timeoutMs: s.optional(s.integer({ minimum: 0, maximum: longestWaitMs, default: 0 })),
    queueMode: s.optional(queueMode),
    model: s.optional(model),
    thinking: s.optional(thinkingLevel),
    /** Replaces the agent's system prompt. */
    system: s.optional(systemPrompt),
    runTimeoutSeconds: s.optional(s.integer({ minimum: 0, maximum: 604_800 })),
    attachments: s.optional(attachments),
  }),
  result: SentSchema,
  adminOnly: ["system"],
  isIdempotent: true,
});

/** `entryId` defaults to the leaf. `null` is the position before the root. */
export const sessionsFork = method({
  scope: "write",
  about: "Forks a session: creates a new session that contains the branch up to an entry.",
  params: s.closed({
    ...oneSession,
    entryId: s.optional(s.nullable(id)),
    sessionId: s.optional(sessionId),
    label: s.optional(label),
  }),
  result: ForkedSchema,
});

export const sessionsBranch = method({
  scope: "write",
  about:
    "Moves the leaf, so the conversation continues from this entry. `null` moves the leaf before the root.",
  // Not idempotent: it would move the leaf away from entries that were added after the first call.
  params: s.closed({ ...oneSession, entryId: s.nullable(id) }),
  result: BranchedSchema,
});

/** Labels are bookmarks in the tree. An entry has at most one label. */
export const sessionsLabel = method({
  scope: "write",
  about: "Sets an entry's label. `null` removes the label.",
  params: s.closed({ ...oneSession, entryId: id, label: s.nullable(label) }),
  result: LabeledSchema,
  isIdempotent: true,
});

/** `null` removes the label or the name. */
export const sessionsRename = method({
  scope: "write",
  about: "Sets a session's label, which can be used to refer to it, or its name, which is for display only.",
  params: s.closed(
    {
      ...oneSession,
      label: s.optional(s.nullable(label)),
      name: s.optional(s.nullable(label)),
    },
    exactlyOne("label", "name"),
  ),
  result: SessionStateSchema,
  isIdempotent: true,
});

export const sessionsArchive = method({
  scope: "write",
  about: "Archives a session, which hides it from lists until its next message, or unarchives it.",
  params: s.closed({ ...oneSession, archived: s.optional(s.boolean({ default: true })) }),
  result: SessionStateSchema,
  isIdempotent: true,
});

const clearable = <T>(schema: s.Schema<T>) => s.optional(s.nullable(schema));

/** `null` removes a field. Lineage cannot be changed. */
export const sessionsPatch = method({
  scope: "admin",
  about: "Changes a session's metadata.",
  params: s.closed({
    ...oneSession,
    label: clearable(label),
    displayName: clearable(label),
    model: clearable(model),
    thinkingLevel: clearable(thinkingLevel),
    verboseLevel: clearable(s.choice(["off", "on", "full"])),
    sendPolicy: clearable(s.choice(["allow", "deny"])),
    /** The call fails with `conflict` if this is not the current version. */
    ifVersion: s.optional(s.integer({ minimum: 0 })),
  }),
  result: PatchedSchema,
  isIdempotent: true,
});

export const sessionsReset = method({
  scope: "admin",
  about: "Moves a session's key to a new session. The old session stays readable under a different key.",
  params: s.closed(oneSession),
  result: ResetSchema,
});

/** `purge` permanently removes a session that is in the trash. */
export const sessionsDelete = method({
  scope: "admin",
  about:
    "Moves a session to the trash, or purges a session that is in the trash. Main sessions cannot be deleted.",
  params: s.closed({ ...oneSession, purge: s.optional(s.boolean()) }),
  result: DeletedSchema,
  isDestructive: true,
});

export const sessionsRestore = method({
  scope: "admin",
  about: "Restores a session from the trash.",
  params: s.closed(oneSession),
  result: SessionStateSchema,
});

export const sessionsCompact = method({
  scope: "admin",
  about: "Compacts a session now by summarizing its older part.",
  params: s.closed({ ...oneSession, instructions: s.optional(sentence) }),
  result: CompactedSchema,
});

export const sessionsRedact = method({
  scope: "admin",
  about: "Permanently erases the content of entries, in this session and in every copy.",
  params: s.closed({ ...oneSession, entryIds: s.array(id, { minItems: 1, maxItems: 1000 }) }),
  result: RedactedSchema,
  isIdempotent: true,
  isDestructive: true,
});
