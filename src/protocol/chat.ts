import { ProvenanceSchema } from "../core/messages.ts";
import * as s from "../core/schema.ts";
import {
  agentId,
  atLeastOne,
  attachments,
  branchPage,
  count,
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
  time,
  user,
} from "./fields.ts";
import { method } from "./method.ts";
import { AcceptedSchema, ChatAbortedSchema, SentSchema } from "./runs.ts";
import { branchLeafId, DiagnosticSchema, sessionHead } from "./session-views.ts";

/** Input that has been accepted but is not part of the conversation yet. */
const PendingSchema = s.array(
  s.closed({
    runId: s.string(),
    role: s.string(),
    /** Text and images, truncated in the same way as messages. */
    content: s.unknown(),
    /** `true` if text in `content` was truncated or masked and therefore must not be sent back with `runs.edit`. */
    isPartial: s.optional(s.boolean()),
    timestamp: s.number(),
    state: s.string(),
    /** The source of the input, as in messages. */
    provenance: s.optional(ProvenanceSchema),
  }),
);

/** `chat.history`, `sessions show`. */
export const HistorySchema = s.closed({
  ...sessionHead,
  branchLeafId,
  messages: s.array(s.object({ id: s.string(), role: s.string() })),
  nextBefore: s.optional(s.string()),
  nextAfter: s.optional(s.string()),
  pending: PendingSchema,
  /** `true` if text was truncated or messages were omitted because of their size. */
  truncated: s.boolean(),
  diagnostics: s.optional(s.array(DiagnosticSchema)),
});
export type HistoryPayload = s.Static<typeof HistorySchema>;

/** `chat.live`. */
export const LiveSchema = s.closed({
  ...sessionHead,
  /**
   * The last event of this gateway that is reflected here. Its later events continue the text. Absent outside a gateway.
   */
  seq: s.optional(count),
  runs: s.array(
    s.closed({
      runId: s.string(),
      state: s.choice(["running", "waiting"]),
      /**
       * `false` if another process executes the run, in which case no `run.delta` is sent here. `text` is then the most
       * recently stored answer, which is updated about once a second.
       */
      isStreaming: s.boolean(),
      /** The model request that is being answered, as in `run.step`. Absent before the first one. */
      step: s.optional(count),
      /** The attempt number for this model request, starting at 1. */
      attempt: s.optional(count),
      /** The text since the run's last entry. The next `run.delta` of this kind has the offset `textOffset + text.length`. */
      text: s.string(),
      /** Greater than 0 if the text was too long and its beginning has been dropped. */
      textOffset: count,
      thinking: s.string(),
      thinkingOffset: count,
      /** Tool calls that have no result yet. */
      tools: s.array(
        s.closed({
          toolCallId: s.string(),
          toolName: s.string(),
          /** Absent if the arguments are large. */
          arguments: s.optional(s.record(s.unknown())),
          since: time,
        }),
      ),
    }),
  ),
  pending: PendingSchema,
});
export type LivePayload = s.Static<typeof LiveSchema>;

const said = { message, idempotencyKey, attachments: s.optional(attachments) };

export const chatHistory = method({
  scope: "read",
  about:
    "Returns a page of messages from a session's active branch, or from a different branch, with long messages truncated for display.",
  params: s.closed({ ...oneChat, limit: limit(1000, 200), ...branchPage }),
  result: HistorySchema,
  isIdempotent: true,
});

/** Lets a page that is opened during a streamed answer catch up. */
export const chatLive = method({
  scope: "read",
  about: "Returns what a session's active runs have streamed so far, and the session's pending input.",
  params: s.closed(oneChat),
  result: LiveSchema,
  isIdempotent: true,
});

export const chatSend = method({
  scope: "write",
  about: "Sends a message to a session. A new, well-formed key creates the session.",
  params: s.closed({ ...oneChat, ...said, queueMode: s.optional(queueMode) }),
  result: AcceptedSchema,
  isIdempotent: true,
});

/** If no run is given, aborts all unfinished runs in the session, including queued input. */
export const chatAbort = method({
  scope: "write",
  about: "Aborts all unfinished runs in a session, or a single run.",
  // Not idempotent: without `runId`, it would also abort runs that started after the first call.
  params: s.closed({ ...oneChat, runId: s.optional(id) }),
  result: ChatAbortedSchema,
});

/** The note goes through the inbox like any input, so it is never written in the middle of a turn. */
export const chatInject = method({
  scope: "admin",
  about: "Adds a note to a session as an assistant message, without starting a turn.",
  params: s.closed({
    ...oneChat,
    message: s.string({ minLength: 1, maxLength: 1024 * 1024 }),
    idempotencyKey,
  }),
  result: AcceptedSchema,
  isIdempotent: true,
});

const provenance = s.closed({
  kind: s.choice(["external_user", "inter_session", "internal_system"]),
  sourceSessionKey: s.optional(reference),
  sourceChannel: s.optional(s.string({ minLength: 1, maxLength: 256 })),
  sourceTool: s.optional(s.string({ minLength: 1, maxLength: 256 })),
});

/** `agentId` alone selects that agent's main session. With `deliver`, the reply is also sent to the session's channel. */
export const agent = method({
  scope: "write",
  about: "Sends a message to an agent, optionally with settings for this run.",
  params: s.closed(
    {
      sessionKey: s.optional(reference),
      agentId: s.optional(agentId),
      ...said,
      deliver: s.optional(s.boolean({ default: false })),
      model: s.optional(model),
      thinking: s.optional(thinkingLevel),
      /** 0 means no timeout. */
      runTimeoutSeconds: s.optional(s.integer({ minimum: 0, maximum: 604_800 })),
      provenance: s.optional(provenance),
      /** Replaces the agent's system prompt. */
      system: s.optional(systemPrompt),
      extraSystemPrompt: s.optional(systemPrompt),
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
  about: "Waits for a run to end, up to a timeout.",
  isLong: () => true,
  params: s.closed({
    runId: id,
    timeoutMs: s.optional(s.integer({ minimum: 0, maximum: 600_000, default: 30_000 })),
    ...user,
  }),
  result: SentSchema,
  isIdempotent: true,
});
