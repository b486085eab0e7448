import Type from "typebox";
import {
  agentId,
  closed,
  fileContent,
  id,
  label,
  model,
  nullable,
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

const clearable = <T extends Type.TSchema>(schema: T) => Type.Optional(nullable(schema));
const flag = Type.Optional(Type.Boolean());

/** `null` takes a field away. Lineage is written once, and is not here. */
export const sessionsPatch = method({
  scope: "admin",
  about: "Changes what is known of a session.",
  params: Type.Object(
    {
      ...oneSession,
      label: clearable(label),
      displayName: clearable(label),
      model: clearable(model),
      thinkingLevel: clearable(thinkingLevel),
      verboseLevel: clearable(Type.Enum(["off", "on", "full"])),
      sendPolicy: clearable(Type.Enum(["allow", "deny"])),
      /** A conflict unless this is its version now. */
      ifVersion: Type.Optional(Type.Integer({ minimum: 0 })),
    },
    closed,
  ),
  result: PatchedSchema,
  isIdempotent: true,
});

export const sessionsReset = method({
  scope: "admin",
  about: "Moves the key on to a new session; the old one stays readable under a key of its own.",
  params: Type.Object(oneSession, closed),
  result: ResetSchema,
});

/** `purge`: out of the trash, where it has to be, for good. */
export const sessionsDelete = method({
  scope: "admin",
  about: "Puts a session into the trash, or takes it out of there for good. Main sessions are refused.",
  params: Type.Object({ ...oneSession, purge: flag }, closed),
  result: DeletedSchema,
  isDestructive: true,
});

export const sessionsRestore = method({
  scope: "admin",
  about: "Takes a session back out of the trash.",
  params: Type.Object(oneSession, closed),
  result: SessionStateSchema,
});

export const sessionsCompact = method({
  scope: "admin",
  about: "Has the older part of a session summarised now.",
  params: Type.Object({ ...oneSession, instructions: Type.Optional(sentence) }, closed),
  result: CompactedSchema,
});

/**
 * The contents of files, never their paths on the gateway's machine; a list of OpenClaw's is one of the files. What a file
 * states about its session takes effect with `keepMetadata` alone; the other settings hold for every imported session.
 */
export const sessionsImport = method({
  scope: "admin",
  about: "Takes in sessions of pi, OpenClaw, Claude Code or Codex.",
  params: Type.Object(
    {
      files: Type.Array(
        Type.Object({ name: Type.String({ minLength: 1, maxLength: 1024 }), content: fileContent }, closed),
        { minItems: 1, maxItems: 1000 },
      ),
      /** Left out: found out from each file. */
      from: Type.Optional(Type.Enum(["pi", "openclaw", "claude-code", "codex"])),
      dryRun: flag,
      /** For one session only. */
      key: Type.Optional(reference),
      /** For one session only. */
      label: Type.Optional(label),
      cwd: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
      model: Type.Optional(model),
      sendPolicy: Type.Optional(Type.Enum(["allow", "deny"])),
      delivery: Type.Optional(
        Type.Object(
          {
            channel: label,
            to: Type.Optional(label),
            accountId: Type.Optional(label),
            threadId: Type.Optional(label),
          },
          closed,
        ),
      ),
      /** Applies the keys, working directories and metadata that the files state. */
      keepMetadata: flag,
      agentId: Type.Optional(agentId),
      ...user,
    },
    closed,
  ),
  result: ImportSchema,
  isIdempotent: true,
});

export const sessionsRedact = method({
  scope: "admin",
  about: "Makes tombstones of entries, here and in every copy. For good.",
  params: Type.Object({ ...oneSession, entryIds: Type.Array(id, { minItems: 1, maxItems: 1000 }) }, closed),
  result: RedactedSchema,
  isIdempotent: true,
  isDestructive: true,
});
