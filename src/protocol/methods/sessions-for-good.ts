import * as s from "../../core/schema.ts";
import {
  agentId,
  fileContent,
  id,
  label,
  model,
  oneSession,
  reference,
  sentence,
  thinkingLevel,
  user,
} from "../fields.ts";
import { ImportSchema } from "../interchange.ts";
import {
  CompactedSchema,
  DeletedSchema,
  PatchedSchema,
  RedactedSchema,
  ResetSchema,
  SessionStateSchema,
} from "../session-changes.ts";
import { method } from "./method.ts";

const clearable = <T>(schema: s.Schema<T>) => s.optional(s.nullable(schema));
const flag = s.optional(s.boolean());

/** `null` takes a field away. Lineage is written once, and is not here. */
export const sessionsPatch = method({
  scope: "admin",
  about: "Changes what is known of a session.",
  params: s.closed({
    ...oneSession,
    label: clearable(label),
    displayName: clearable(label),
    model: clearable(model),
    thinkingLevel: clearable(thinkingLevel),
    verboseLevel: clearable(s.choice(["off", "on", "full"])),
    sendPolicy: clearable(s.choice(["allow", "deny"])),
    /** A conflict unless this is its version now. */
    ifVersion: s.optional(s.integer({ minimum: 0 })),
  }),
  result: PatchedSchema,
  isIdempotent: true,
});

export const sessionsReset = method({
  scope: "admin",
  about: "Moves the key on to a new session; the old one stays readable under a key of its own.",
  params: s.closed(oneSession),
  result: ResetSchema,
});

/** `purge`: out of the trash, where it has to be, for good. */
export const sessionsDelete = method({
  scope: "admin",
  about: "Puts a session into the trash, or takes it out of there for good. Main sessions are refused.",
  params: s.closed({ ...oneSession, purge: flag }),
  result: DeletedSchema,
  isDestructive: true,
});

export const sessionsRestore = method({
  scope: "admin",
  about: "Takes a session back out of the trash.",
  params: s.closed(oneSession),
  result: SessionStateSchema,
});

export const sessionsCompact = method({
  scope: "admin",
  about: "Has the older part of a session summarised now.",
  params: s.closed({ ...oneSession, instructions: s.optional(sentence) }),
  result: CompactedSchema,
});

/**
 * The contents of files, never their paths on the gateway's machine; a list of OpenClaw's is one of the files. What a file
 * states about its session takes effect with `keepMetadata` alone; the other settings hold for every imported session.
 */
export const sessionsImport = method({
  scope: "admin",
  about: "Takes in sessions of pi, OpenClaw, Claude Code or Codex.",
  params: s.closed({
    files: s.array(s.closed({ name: s.string({ minLength: 1, maxLength: 1024 }), content: fileContent }), {
      minItems: 1,
      maxItems: 1000,
    }),
    /** Left out: found out from each file. */
    from: s.optional(s.choice(["pi", "openclaw", "claude-code", "codex"])),
    dryRun: flag,
    /** For one session only. */
    key: s.optional(reference),
    /** For one session only. */
    label: s.optional(label),
    cwd: s.optional(s.string({ minLength: 1, maxLength: 4096 })),
    model: s.optional(model),
    sendPolicy: s.optional(s.choice(["allow", "deny"])),
    delivery: s.optional(
      s.closed({
        channel: label,
        to: s.optional(label),
        accountId: s.optional(label),
        threadId: s.optional(label),
      }),
    ),
    /** Applies the keys, working directories and metadata that the files state. */
    keepMetadata: flag,
    agentId: s.optional(agentId),
    ...user,
  }),
  result: ImportSchema,
  isIdempotent: true,
});

export const sessionsRedact = method({
  scope: "admin",
  about: "Makes tombstones of entries, here and in every copy. For good.",
  params: s.closed({ ...oneSession, entryIds: s.array(id, { minItems: 1, maxItems: 1000 }) }),
  result: RedactedSchema,
  isIdempotent: true,
  isDestructive: true,
});
