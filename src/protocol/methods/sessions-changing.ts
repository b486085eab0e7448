import Type from "typebox";
import {
  agentId,
  attachments,
  closed,
  exactlyOne,
  id,
  idempotencyKey,
  label,
  message,
  model,
  nullable,
  oneSession,
  queueMode,
  reference,
  sessionId,
  systemPrompt,
  thinkingLevel,
  user,
} from "../fields.ts";
import { SentSchema } from "../runs.ts";
import { BranchedSchema, ForkedSchema, SessionStateSchema } from "../session-changes.ts";
import { method } from "./method.ts";

const longestWaitMs = 600_000;

/** `key`: a key, a short key, `main`, or else the id of a named session. Left out: a new one under a new id. */
export const sessionsCreate = method({
  scope: "write",
  about: "Makes a session, and says nothing in it.",
  params: Type.Object(
    {
      key: Type.Optional(reference),
      sessionId: Type.Optional(sessionId),
      label: Type.Optional(label),
      displayName: Type.Optional(label),
      model: Type.Optional(model),
      thinkingLevel: Type.Optional(thinkingLevel),
      cwd: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
      agentId: Type.Optional(agentId),
      ...user,
    },
    closed,
  ),
  result: SessionStateSchema,
  adminOnly: ["cwd"],
});

/** `chat.send` that waits: `timeoutMs` 0 gives how the run stands at once, as `agent.wait` would. */
export const sessionsSend = method({
  scope: "write",
  about: "Says something to a session, and waits so long for the answer.",
  isLong: ({ timeoutMs = 0 }) => timeoutMs !== 0,
  params: Type.Object(
    {
      ...oneSession,
      message,
      idempotencyKey,
      timeoutMs: Type.Optional(Type.Integer({ minimum: 0, maximum: longestWaitMs, default: 0 })),
      queueMode: Type.Optional(queueMode),
      model: Type.Optional(model),
      thinking: Type.Optional(thinkingLevel),
      /** Instead of the agent's system prompt. */
      system: Type.Optional(systemPrompt),
      runTimeoutSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 604_800 })),
      attachments: Type.Optional(attachments),
    },
    closed,
  ),
  result: SentSchema,
  adminOnly: ["system"],
  isIdempotent: true,
});

/** `entryId` left out: the leaf; `null`: before the root. */
export const sessionsFork = method({
  scope: "write",
  about: "Makes a new session from the path to an entry.",
  params: Type.Object(
    {
      ...oneSession,
      entryId: Type.Optional(nullable(id)),
      sessionId: Type.Optional(sessionId),
      label: Type.Optional(label),
    },
    closed,
  ),
  result: ForkedSchema,
});

export const sessionsBranch = method({
  scope: "write",
  about: "Moves the leaf: the conversation goes on from this entry, or with null from before the root.",
  params: Type.Object({ ...oneSession, entryId: nullable(id) }, closed),
  result: BranchedSchema,
  isIdempotent: true,
});

/** `null` takes the label or the name away. */
export const sessionsRename = method({
  scope: "write",
  about: "Gives a session a label, by which it can be found, or a name, which is only shown.",
  params: Type.Object(
    {
      ...oneSession,
      label: Type.Optional(nullable(label)),
      name: Type.Optional(nullable(label)),
    },
    exactlyOne("label", "name"),
  ),
  result: SessionStateSchema,
  isIdempotent: true,
});

export const sessionsArchive = method({
  scope: "write",
  about: "Hides a session from lists until somebody says something in it, or shows it again.",
  params: Type.Object({ ...oneSession, archived: Type.Optional(Type.Boolean({ default: true })) }, closed),
  result: SessionStateSchema,
  isIdempotent: true,
});
