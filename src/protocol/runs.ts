import type { Static } from "typebox";
import Type from "typebox";

/** What methods about runs and the outbox answer. */

const strict = { additionalProperties: false };
const optionalText = Type.Optional(Type.String());
const optionalTime = Type.Optional(Type.Integer());
const session = { sessionKey: Type.String(), sessionId: Type.String(), userId: optionalText };

export const RunStateSchema = Type.Enum([
  "queued",
  "running",
  "waiting",
  "sleeping",
  "ok",
  "error",
  "timeout",
  "aborted",
  "merged",
]);

const UsageSchema = Type.Object(
  {
    input: Type.Number(),
    output: Type.Number(),
    cacheRead: Type.Number(),
    cacheWrite: Type.Number(),
    totalTokens: Type.Number(),
    /** Absent: the price of something is not known. */
    costUsd: Type.Optional(Type.Number()),
  },
  strict,
);

const outcome = {
  reply: optionalText,
  output: Type.Optional(Type.Unknown()),
  error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() }, strict)),
};

/** A run, as `runs.list` and `runs.get` show it. */
export const RunRowSchema = Type.Object(
  {
    runId: Type.String(),
    ...session,
    agentId: Type.String(),
    state: RunStateSchema,
    kind: Type.String(),
    lane: Type.Enum(["main", "subagent", "cron", "nested"]),
    queueMode: Type.Enum(["steer", "followup", "interrupt"]),
    /** The beginning of what was said. */
    preview: Type.String(),
    seq: Type.Integer(),
    rootId: Type.String(),
    hops: Type.Integer(),
    createdAt: Type.Integer(),
    startedAt: optionalTime,
    endedAt: optionalTime,
    deadline: optionalTime,
    model: optionalText,
    startedBy: optionalText,
    mergedInto: optionalText,
    keptFor: optionalText,
    /** The runs that it waits for, or that stand before it. */
    waitsFor: Type.Optional(Type.Array(Type.String())),
    /** When a sleeping run wakes without what it waits for. */
    wakeAt: optionalTime,
    abortRequested: Type.Optional(Type.Boolean()),
    /** `true`: the process that ran it is gone. The next process of `app`, or else any that has its agent, continues it. */
    ownerGone: Type.Optional(Type.Boolean()),
    /** How often its owner was lost. */
    lost: Type.Optional(Type.Integer()),
    /** The lost run whose input it takes up again. */
    retryOf: optionalText,
    /** Of a lost run: the run that took up its input. */
    retriedAs: optionalText,
    /** The app that defines its agent in code. */
    app: optionalText,
    /** Of a queued run: the app whose process it waits for; `runs.release` lets any process run it. */
    waitsForApp: optionalText,
    /** The tools of the run that the app's process does not offer. */
    missingTools: Type.Optional(Type.Array(Type.String())),
    ...outcome,
    usage: UsageSchema,
  },
  strict,
);
export type RunRowPayload = Static<typeof RunRowSchema>;

/** A tool call that needs approval, answered or not. `approvals.resolve` gives the same. */
export const ApprovalSchema = Type.Object(
  {
    approvalId: Type.String(),
    runId: Type.String(),
    ...session,
    toolCallId: Type.String(),
    toolName: Type.String(),
    arguments: Type.Record(Type.String(), Type.Unknown()),
    requestedAt: Type.Integer(),
    expiresAt: Type.Integer(),
    answer: Type.Optional(Type.Enum(["approved", "denied", "expired"])),
    resolvedAt: optionalTime,
    by: optionalText,
  },
  strict,
);
export type ApprovalPayload = Static<typeof ApprovalSchema>;

/** `runs.list`: newest first, and the approvals that are open. */
export const RunListSchema = Type.Object(
  {
    count: Type.Integer(),
    runs: Type.Array(RunRowSchema),
    approvals: Type.Array(ApprovalSchema),
    /** For the next page. */
    nextBefore: optionalTime,
  },
  strict,
);
export type RunListPayload = Static<typeof RunListSchema>;

/** `runs.get`: one run, the whole text of its input, and every approval that it asked for. */
export const RunSchema = Type.Object(
  {
    run: RunRowSchema,
    input: Type.String(),
    approvals: Type.Array(ApprovalSchema),
    /** What was changed of its messages on their way into the session. */
    notes: Type.Array(Type.Object({ kind: Type.String(), note: Type.String() }, strict)),
  },
  strict,
);
export type RunPayload = Static<typeof RunSchema>;

/** `runs.abort`: the state that it has now; its owner may be yet to hear of it. */
export const AbortedSchema = Type.Object({ runId: Type.String(), state: RunStateSchema }, strict);
export type AbortedPayload = Static<typeof AbortedSchema>;

/** `runs.retry`: the run that takes up the input of a lost run. */
export const RetriedSchema = Type.Object(
  { runId: Type.String(), retryOf: Type.String(), sessionKey: Type.String(), state: RunStateSchema },
  strict,
);
export type RetriedPayload = Static<typeof RetriedSchema>;

/** `runs.release`: any process that has the agent may run it now. */
export const ReleasedSchema = Type.Object(
  { runId: Type.String(), sessionKey: Type.String(), agentId: Type.String(), state: RunStateSchema },
  strict,
);
export type ReleasedPayload = Static<typeof ReleasedSchema>;

/** `chat.abort`: the runs that were asked to end, with the states that they have now. */
export const ChatAbortedSchema = Type.Object(
  { sessionKey: Type.String(), runs: Type.Array(AbortedSchema) },
  strict,
);
export type ChatAbortedPayload = Static<typeof ChatAbortedSchema>;

/** `approvals.list`: newest first. */
export const ApprovalListSchema = Type.Object(
  { count: Type.Integer(), approvals: Type.Array(ApprovalSchema) },
  strict,
);
export type ApprovalListPayload = Static<typeof ApprovalListSchema>;

/** `chat.send`, `chat.inject`, `agent`, `send --no-wait`: durable, and not yet answered. */
export const AcceptedSchema = Type.Object(
  {
    runId: Type.String(),
    status: Type.Literal("accepted"),
    sessionKey: Type.String(),
    /** The app whose process runs it: this one cannot. */
    waitsForApp: optionalText,
  },
  strict,
);
export type AcceptedPayload = Static<typeof AcceptedSchema>;

/** `sessions.send`, `agent.wait`, `send`: how a run stands, and of which. */
export const SentSchema = Type.Object(
  {
    runId: Type.String(),
    sessionKey: Type.String(),
    sessionId: Type.String(),
    finished: Type.Boolean(),
    state: RunStateSchema,
    /** Of a queued run: the app whose process it waits for. */
    waitsForApp: optionalText,
    ...outcome,
    usage: UsageSchema,
  },
  strict,
);
export type SentPayload = Static<typeof SentSchema>;

/** A message on its way to a channel; `outbox.retry` and `outbox.drop` give it as it is then. */
export const OutboxRowSchema = Type.Object(
  {
    outboxId: Type.String(),
    ...session,
    runId: optionalText,
    target: Type.Object(
      { channel: Type.String(), to: optionalText, accountId: optionalText, threadId: optionalText },
      strict,
    ),
    text: Type.String(),
    state: Type.Enum(["queued", "delivered", "dead", "dropped"]),
    attempts: Type.Integer(),
    createdAt: Type.Integer(),
    /** Of one that waits. */
    nextAt: optionalTime,
    endedAt: optionalTime,
    lastError: optionalText,
    receipt: Type.Optional(Type.Unknown()),
    /** The app whose code brings the channel. */
    app: optionalText,
    /** It is queued, and waits for a process that has its channel. */
    waitsForChannel: Type.Optional(Type.Boolean()),
  },
  strict,
);
export type OutboxRowPayload = Static<typeof OutboxRowSchema>;

/** `outbox.list`: newest first. */
export const OutboxListSchema = Type.Object(
  { count: Type.Integer(), messages: Type.Array(OutboxRowSchema) },
  strict,
);
export type OutboxListPayload = Static<typeof OutboxListSchema>;
