import type { Static } from "typebox";
import Type from "typebox";
import { IndexingSchema, SearchSchema, SessionRowSchema } from "./session-list.ts";

/**
 * What each session tool answers, for whoever checks results: programs over MCP. Open: a field that is new breaks nobody. A
 * refusal is an answer of every tool.
 */

/** A JSON Schema. The result's type is for the compiler alone, so that declarations hold plain types. */
export type ResultSchema<Result> = Readonly<Record<string, unknown>> & { readonly "~result"?: Result };

const text = Type.String();
const maybeText = Type.Optional(Type.String());
const count = Type.Integer({ minimum: 0 });
const time = Type.Integer({ description: "Milliseconds since 1970." });
const texts = Type.Array(Type.String());
const record = Type.Record(Type.String(), Type.Unknown());

const refusal = Type.Object({
  status: Type.Enum(["error", "forbidden"]),
  code: Type.String({ description: "For programs." }),
  error: Type.String({ description: "For people." }),
  retryable: Type.Optional(Type.Boolean()),
  runId: maybeText,
  sessionKey: maybeText,
  childSessionKey: maybeText,
  outcome: maybeText,
  action: maybeText,
  threadId: maybeText,
  cycle: Type.Optional(texts),
  budget: Type.Optional(record),
});

/** A tool must answer an object: the choice stands inside of one. */
function either<const Answers extends readonly Type.TSchema[]>(
  ...answers: Answers
): ResultSchema<Static<Answers[number]> | Static<typeof refusal>> {
  const anyOf = [...answers, refusal];
  return JSON.parse(JSON.stringify({ type: "object", anyOf }));
}

const message = Type.Object({
  id: Type.Optional(Type.String({ description: "Of its entry; absent where the message was too large." })),
  role: text,
  content: Type.Optional(Type.Unknown()),
  timestamp: Type.Optional(Type.Unknown()),
});

const { userId: _userId, cwd: _cwd, summary: _summary, ...rowFields } = SessionRowSchema.properties;

const visibilityFields = {
  hidden: Type.Optional(count),
  visibility: Type.Object({
    mode: Type.Enum(["self", "tree", "agent", "all"]),
    sandboxed: Type.Boolean(),
  }),
};

const sessionsList = either(
  Type.Object({
    count,
    sessions: Type.Array(
      Type.Object({
        ...rowFields,
        messages: Type.Optional(Type.Array(message)),
        messagesRefused: maybeText,
        messagesError: maybeText,
      }),
    ),
    nextCursor: maybeText,
    indexing: Type.Optional(IndexingSchema),
    ...visibilityFields,
  }),
);

const sessionsHistory = either(
  Type.Object({
    sessionKey: text,
    messages: Type.Array(message),
    hardCapped: Type.Boolean(),
    totalBytes: count,
    truncated: Type.Boolean(),
    redacted: Type.Boolean(),
    dropped: count,
    nextBefore: maybeText,
    nextAfter: maybeText,
    pending: Type.Optional(Type.Array(Type.Object({ runId: text, role: text, state: text }))),
    pendingDropped: Type.Optional(count),
  }),
);

const sessionsSend = either(
  Type.Object({
    runId: text,
    status: Type.Enum(["sent", "ok", "timeout", "error", "aborted"]),
    sessionKey: text,
    reply: maybeText,
    code: maybeText,
    error: maybeText,
    note: maybeText,
    /** The app without which the target cannot run; no process of it does now. */
    waitsForApp: maybeText,
    delivery: Type.Optional(Type.Object({ status: Type.Literal("pending"), mode: Type.Literal("announce") })),
  }),
);

const sessionsSpawn = either(
  Type.Object({
    status: Type.Literal("ok"),
    runId: text,
    childSessionKey: text,
    label: maybeText,
    mode: Type.Enum(["run", "session"]),
    note: maybeText,
    code: maybeText,
    threadId: maybeText,
    agentSessionId: Type.Optional(
      Type.String({ description: "Over ACP: the agent's own session, as resumeSessionId takes it." }),
    ),
    attachments: Type.Optional(Type.Unknown()),
    result: maybeText,
    outcome: maybeText,
    error: maybeText,
    usage: Type.Optional(record),
  }),
);

const sessionsYield = either(
  Type.Object({ status: Type.Literal("yielded"), message: text, waitingFor: texts }),
);

const sessionStatus = either(
  Type.Object({
    sessionKey: text,
    sessionId: text,
    agentId: text,
    channel: text,
    model: maybeText,
    thinkingLevel: maybeText,
    tools: Type.Optional(texts),
    policy: Type.Object({
      visibility: Type.Unknown(),
      agentToAgent: Type.Unknown(),
      sandboxed: Type.Boolean(),
      transcript: Type.Optional(Type.Unknown()),
    }),
    context: Type.Object({
      tokens: Type.Optional(count),
      window: Type.Optional(count),
      percent: Type.Optional(Type.Number()),
      compactions: Type.Optional(count),
    }),
    usage: record,
    cost: Type.Optional(Type.Number()),
    run: Type.Optional(record),
    queue: count,
    children: Type.Array(Type.Object({ sessionKey: text, label: maybeText, runId: text, status: text })),
    createdAt: time,
    updatedAt: time,
  }),
);

const childRow = Type.Object({
  runId: text,
  sessionKey: text,
  label: maybeText,
  task: text,
  status: text,
  runtimeMs: Type.Optional(Type.Number()),
  model: maybeText,
  totalTokens: Type.Optional(Type.Number()),
  startedAt: Type.Optional(time),
  endedAt: Type.Optional(time),
  pendingDescendants: count,
});

const subagents = either(
  Type.Object({
    status: Type.Literal("ok"),
    action: Type.Literal("list"),
    total: count,
    active: Type.Array(childRow),
    recent: Type.Array(childRow),
    text,
  }),
  Type.Object({
    status: Type.Enum(["ok", "done"]),
    action: Type.Enum(["steer", "kill"]),
    runId: text,
    sessionKey: text,
    label: maybeText,
    mode: maybeText,
    killed: Type.Optional(count),
    descendants: Type.Optional(count),
    text: maybeText,
  }),
);

const sessionSearch = either(Type.Object({ ...SearchSchema.properties, ...visibilityFields }));

const sessionList = either(
  Type.Object({
    count,
    sessions: Type.Array(
      Type.Object({
        key: text,
        sessionId: text,
        channel: maybeText,
        peer: maybeText,
        label: maybeText,
        summary: maybeText,
        updatedAt: time,
      }),
    ),
    more: Type.Optional(Type.Boolean()),
    indexing: Type.Optional(IndexingSchema),
    ...visibilityFields,
  }),
);

const agentsList = either(
  Type.Object({
    requester: text,
    agents: Type.Array(
      Type.Object({
        id: text,
        model: maybeText,
        runtime: Type.Optional(
          Type.Literal("acp", { description: "What sessions_spawn takes; left out: subagent." }),
        ),
        configured: Type.Boolean(),
        spawn: Type.Boolean(),
        message: Type.Boolean(),
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

type ResultOf<Schema> = Schema extends ResultSchema<infer Result> ? Result : never;

/** What each session tool answers, by its name: its result, or a refusal with `status`, `code` and `error`. */
export interface SessionToolResults {
  readonly sessions_list: ResultOf<typeof sessionsList>;
  readonly sessions_history: ResultOf<typeof sessionsHistory>;
  readonly sessions_send: ResultOf<typeof sessionsSend>;
  readonly sessions_spawn: ResultOf<typeof sessionsSpawn>;
  readonly sessions_yield: ResultOf<typeof sessionsYield>;
  readonly session_status: ResultOf<typeof sessionStatus>;
  readonly subagents: ResultOf<typeof subagents>;
  readonly session_search: ResultOf<typeof sessionSearch>;
  readonly session_list: ResultOf<typeof sessionList>;
  readonly agents_list: ResultOf<typeof agentsList>;
}
