import * as s from "../../core/schema.ts";
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

/** `chat.send` that waits: `timeoutMs` 0 gives how the run stands at once, as `agent.wait` would. */
export const sessionsSend = method({
  scope: "write",
  about: "Says something to a session, and waits so long for the answer.",
  isLong: ({ timeoutMs = 0 }) => timeoutMs !== 0,
  params: s.closed({
    ...oneSession,
    message,
    idempotencyKey,
    timeoutMs: s.optional(s.integer({ minimum: 0, maximum: longestWaitMs, default: 0 })),
    queueMode: s.optional(queueMode),
    model: s.optional(model),
    thinking: s.optional(thinkingLevel),
    /** Instead of the agent's system prompt. */
    system: s.optional(systemPrompt),
    runTimeoutSeconds: s.optional(s.integer({ minimum: 0, maximum: 604_800 })),
    attachments: s.optional(attachments),
  }),
  result: SentSchema,
  adminOnly: ["system"],
  isIdempotent: true,
});

/** `entryId` left out: the leaf; `null`: before the root. */
export const sessionsFork = method({
  scope: "write",
  about: "Makes a new session from the path to an entry.",
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
  about: "Moves the leaf: the conversation goes on from this entry, or with null from before the root.",
  params: s.closed({ ...oneSession, entryId: s.nullable(id) }),
  result: BranchedSchema,
  isIdempotent: true,
});

/** `null` takes the label or the name away. */
export const sessionsRename = method({
  scope: "write",
  about: "Gives a session a label, by which it can be found, or a name, which is only shown.",
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
  about: "Hides a session from lists until somebody says something in it, or shows it again.",
  params: s.closed({ ...oneSession, archived: s.optional(s.boolean({ default: true })) }),
  result: SessionStateSchema,
  isIdempotent: true,
});
