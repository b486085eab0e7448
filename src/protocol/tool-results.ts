import * as s from "../core/schema.ts";
import { IndexingSchema, SessionRowSchema } from "./session-list.ts";

/**
 * The results of session tools, for MCP clients that validate them. The objects allow additional fields so that new
 * fields do not break clients. Every tool can return an error instead.
 */

const text = s.string();
const maybeText = s.optional(s.string());
const count = s.integer({ minimum: 0 });
const time = s.integer({ description: "Milliseconds since 1970." });
const texts = s.array(s.string());
const record = s.record(s.unknown());

const refusal = s.object({
  status: s.choice(["error", "forbidden"]),
  code: s.string({ description: "A code for programs." }),
  error: s.string({ description: "A message for people." }),
  retryable: s.optional(s.boolean()),
  runId: maybeText,
  sessionKey: maybeText,
  childSessionKey: maybeText,
  outcome: maybeText,
  action: maybeText,
  threadId: maybeText,
  cycle: s.optional(texts),
  budget: s.optional(record),
});

/** MCP requires a tool's result schema to be an object, so the alternatives are nested in one. */
function either<const Answers extends readonly s.Schema[]>(
  ...answers: Answers
): s.Schema<s.Static<Answers[number]> | s.Static<typeof refusal>> {
  return { type: "object", anyOf: [...answers, refusal] };
}

const message = s.object({
  id: s.optional(
    s.string({ description: "The ID of the message's entry; absent if the message was too large." }),
  ),
  role: text,
  content: s.optional(s.unknown()),
  timestamp: s.optional(s.unknown()),
});

/** Row fields that are shown only to people. The tools omit them. */
const {
  userId: _userId,
  cwd: _cwd,
  summary: _summary,
  state: _state,
  ...rowFields
} = SessionRowSchema.properties;

const visibilityFields = {
  hidden: s.optional(count),
  visibility: s.object({
    mode: s.choice(["self", "tree", "agent", "all"]),
    sandboxed: s.boolean(),
  }),
};

const sessionsList = either(
  s.object({
    count,
    sessions: s.array(
      s.object({
        ...rowFields,
        messages: s.optional(s.array(message)),
        messagesRefused: maybeText,
        messagesError: maybeText,
      }),
    ),
    nextCursor: maybeText,
    indexing: s.optional(IndexingSchema),
    ...visibilityFields,
  }),
);

const sessionsHistory = either(
  s.object({
    sessionKey: text,
    messages: s.array(message),
    hardCapped: s.boolean(),
    totalBytes: count,
    truncated: s.boolean(),
    redacted: s.boolean(),
    dropped: count,
    nextBefore: maybeText,
    nextAfter: maybeText,
    pending: s.optional(s.array(s.object({ runId: text, role: text, state: text }))),
    pendingDropped: s.optional(count),
  }),
);

const sessionsSend = either(
  s.object({
    runId: text,
    status: s.choice(["sent", "ok", "timeout", "error", "aborted"]),
    sessionKey: text,
    reply: maybeText,
    code: maybeText,
    error: maybeText,
    note: maybeText,
    /** The app that the target requires, if none of that app's processes is running. */
    waitsForApp: maybeText,
    delivery: s.optional(s.object({ status: s.literal("pending"), mode: s.literal("announce") })),
  }),
);

const sessionsSpawn = either(
  s.object({
    status: s.literal("ok"),
    runId: text,
    childSessionKey: text,
    label: maybeText,
    mode: s.choice(["run", "session"]),
    note: maybeText,
    code: maybeText,
    threadId: maybeText,
    agentSessionId: s.optional(
      s.string({ description: "For ACP: the ID of the agent's own session, to pass as resumeSessionId." }),
    ),
    attachments: s.optional(s.unknown()),
    result: maybeText,
    outcome: maybeText,
    error: maybeText,
    usage: s.optional(record),
  }),
);

const sessionsYield = either(s.object({ status: s.literal("yielded"), message: text, waitingFor: texts }));

const sessionStatus = either(
  s.object({
    sessionKey: text,
    sessionId: text,
    agentId: text,
    channel: text,
    model: maybeText,
    thinkingLevel: maybeText,
    tools: s.optional(texts),
    policy: s.object({
      visibility: s.unknown(),
      agentToAgent: s.unknown(),
      sandboxed: s.boolean(),
      transcript: s.optional(s.unknown()),
    }),
    context: s.object({
      tokens: s.optional(count),
      window: s.optional(count),
      percent: s.optional(s.number()),
      compactions: s.optional(count),
    }),
    usage: record,
    cost: s.optional(s.number()),
    run: s.optional(record),
    queue: count,
    children: s.array(s.object({ sessionKey: text, label: maybeText, runId: text, status: text })),
    createdAt: time,
    updatedAt: time,
  }),
);

const childRow = s.object({
  runId: text,
  sessionKey: text,
  label: maybeText,
  task: text,
  status: text,
  runtimeMs: s.optional(s.number()),
  model: maybeText,
  totalTokens: s.optional(s.number()),
  startedAt: s.optional(time),
  endedAt: s.optional(time),
  pendingDescendants: count,
});

const subagents = either(
  s.object({
    status: s.literal("ok"),
    action: s.literal("list"),
    total: count,
    active: s.array(childRow),
    recent: s.array(childRow),
    text,
  }),
  s.object({
    status: s.choice(["ok", "done"]),
    action: s.choice(["steer", "kill"]),
    runId: text,
    sessionKey: text,
    label: maybeText,
    mode: maybeText,
    killed: s.optional(count),
    descendants: s.optional(count),
    text: maybeText,
  }),
);

const sessionSearch = either(
  s.object({
    count,
    hits: s.array(s.object({ key: text, sessionId: text, entryId: text, role: text, time, snippet: text })),
    indexing: s.optional(IndexingSchema),
    ...visibilityFields,
  }),
);

const sessionList = either(
  s.object({
    count,
    sessions: s.array(
      s.object({
        key: text,
        sessionId: text,
        channel: maybeText,
        peer: maybeText,
        label: maybeText,
        summary: maybeText,
        updatedAt: time,
      }),
    ),
    more: s.optional(s.boolean()),
    indexing: s.optional(IndexingSchema),
    ...visibilityFields,
  }),
);

const agentsList = either(
  s.object({
    requester: text,
    agents: s.array(
      s.object({
        id: text,
        model: maybeText,
        runtime: s.optional(
          s.literal("acp", { description: "The runtime to pass to sessions_spawn; absent for subagent." }),
        ),
        configured: s.boolean(),
        spawn: s.boolean(),
        message: s.boolean(),
      }),
    ),
    note: maybeText,
  }),
);

export const outputs = {
  sessionsList,
  sessionsHistory,
  sessionsSend,
  sessionsSpawn,
  sessionsYield,
  sessionStatus,
  subagents,
  sessionSearch,
  sessionList,
  agentsList,
} as const;

/** The result of each session tool, by name: its own result, or an error with `status`, `code` and `error`. */
export interface SessionToolResults {
  readonly sessions_list: s.Static<typeof sessionsList>;
  readonly sessions_history: s.Static<typeof sessionsHistory>;
  readonly sessions_send: s.Static<typeof sessionsSend>;
  readonly sessions_spawn: s.Static<typeof sessionsSpawn>;
  readonly sessions_yield: s.Static<typeof sessionsYield>;
  readonly session_status: s.Static<typeof sessionStatus>;
  readonly subagents: s.Static<typeof subagents>;
  readonly session_search: s.Static<typeof sessionSearch>;
  readonly session_list: s.Static<typeof sessionList>;
  readonly agents_list: s.Static<typeof agentsList>;
}
