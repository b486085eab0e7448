import Type from "typebox";
import {
  agentId,
  atLeastOne,
  attachments,
  closed,
  id,
  idempotencyKey,
  limit,
  message,
  model,
  oneChat,
  queueMode,
  reference,
  systemPrompt,
  thinkingLevel,
  user,
} from "../fields.ts";
import { AcceptedSchema, ChatAbortedSchema, SentSchema } from "../runs.ts";
import { HistorySchema } from "../session-payloads.ts";
import { method } from "./method.ts";

const said = { message, idempotencyKey, attachments: Type.Optional(attachments) };

export const chatHistory = method({
  scope: "read",
  about: "A page of a session's active branch, whole messages up to sizes that a screen can bear.",
  params: Type.Object(
    { ...oneChat, limit: limit(1000, 200), before: Type.Optional(id), after: Type.Optional(id) },
    closed,
  ),
  result: HistorySchema,
  isIdempotent: true,
});

export const chatSend = method({
  scope: "write",
  about: "Says something to a session, which is made if its key is well-formed and new.",
  params: Type.Object({ ...oneChat, ...said, queueMode: Type.Optional(queueMode) }, closed),
  result: AcceptedSchema,
  isIdempotent: true,
});

/** Without a run: all of the session that is open, input that waits for its turn too. */
export const chatAbort = method({
  scope: "write",
  about: "Ends the turn of a session, or one run of it.",
  params: Type.Object({ ...oneChat, runId: Type.Optional(id) }, closed),
  result: ChatAbortedSchema,
  isIdempotent: true,
});

/** Through the inbox like any input, so never into the middle of a turn. */
export const chatInject = method({
  scope: "admin",
  about: "Writes a note into a session as the agent's own words, and starts no turn.",
  params: Type.Object(
    { ...oneChat, message: Type.String({ minLength: 1, maxLength: 1024 * 1024 }), idempotencyKey },
    closed,
  ),
  result: AcceptedSchema,
  isIdempotent: true,
});

const provenance = Type.Object(
  {
    kind: Type.Enum(["external_user", "inter_session", "internal_system"]),
    sourceSessionKey: Type.Optional(reference),
    sourceChannel: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    sourceTool: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  },
  closed,
);

/** `agentId` alone: that agent's main session. `deliver`: the reply goes to the session's channel too. */
export const agent = method({
  scope: "write",
  about: "Has an agent answer a message, with settings for this run.",
  params: Type.Object(
    {
      sessionKey: Type.Optional(reference),
      agentId: Type.Optional(agentId),
      ...said,
      deliver: Type.Optional(Type.Boolean({ default: false })),
      model: Type.Optional(model),
      thinking: Type.Optional(thinkingLevel),
      /** 0: none. */
      runTimeoutSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 604_800 })),
      provenance: Type.Optional(provenance),
      /** Instead of the agent's system prompt. */
      system: Type.Optional(systemPrompt),
      extraSystemPrompt: Type.Optional(systemPrompt),
      ...user,
    },
    atLeastOne("sessionKey", "agentId"),
  ),
  result: AcceptedSchema,
  adminOnly: ["provenance", "system", "extraSystemPrompt"],
  isIdempotent: true,
});

export const agentWait = method({
  scope: "write",
  about: "Waits so long for the end of a run.",
  isLong: () => true,
  params: Type.Object(
    {
      runId: id,
      timeoutMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000, default: 30_000 })),
      ...user,
    },
    closed,
  ),
  result: SentSchema,
  isIdempotent: true,
});
