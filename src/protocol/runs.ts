import * as s from "../core/schema.ts";
import { everyUser, few, id, limit, reader, reference, sentence, user } from "./fields.ts";
import { method } from "./method.ts";

/** What methods about runs and the outbox answer. */

export const optionalText = s.optional(s.string());
export const optionalTime = s.optional(s.integer());
export const runSession = { sessionKey: s.string(), sessionId: s.string(), userId: optionalText };

export const RunStateSchema = s.choice([
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

const UsageSchema = s.closed({
  input: s.number(),
  output: s.number(),
  cacheRead: s.number(),
  cacheWrite: s.number(),
  totalTokens: s.number(),
  /** Absent: the price of something is not known. */
  costUsd: s.optional(s.number()),
});

const outcome = {
  reply: optionalText,
  output: s.optional(s.unknown()),
  error: s.optional(s.closed({ code: s.string(), message: s.string() })),
};

/** A run, as `runs.list` and `runs.get` show it. */
export const RunRowSchema = s.closed({
  runId: s.string(),
  ...runSession,
  agentId: s.string(),
  state: RunStateSchema,
  kind: s.string(),
  lane: s.choice(["main", "subagent", "cron", "nested"]),
  queueMode: s.choice(["steer", "followup", "interrupt"]),
  /** The beginning of what was said. */
  preview: s.string(),
  seq: s.integer(),
  rootId: s.string(),
  hops: s.integer(),
  createdAt: s.integer(),
  startedAt: optionalTime,
  endedAt: optionalTime,
  deadline: optionalTime,
  model: optionalText,
  startedBy: optionalText,
  mergedInto: optionalText,
  keptFor: optionalText,
  /** The runs that it waits for, or that stand before it. */
  waitsFor: s.optional(s.array(s.string())),
  /** When a sleeping run wakes without what it waits for. */
  wakeAt: optionalTime,
  abortRequested: s.optional(s.boolean()),
  /** `true`: the process that ran it is gone. The next process of `app`, or else any that has its agent, continues it. */
  ownerGone: s.optional(s.boolean()),
  /** How often its owner was lost. */
  lost: s.optional(s.integer()),
  /** The lost run whose input it takes up again. */
  retryOf: optionalText,
  /** Of a lost run: the run that took up its input. */
  retriedAs: optionalText,
  /** The app that defines its agent in code. */
  app: optionalText,
  /** Of a queued run: the app whose process it waits for; `runs.release` lets any process run it. */
  waitsForApp: optionalText,
  /** The tools of the run that the app's process does not offer. */
  missingTools: s.optional(s.array(s.string())),
  ...outcome,
  usage: UsageSchema,
});
export type RunRowPayload = s.Static<typeof RunRowSchema>;

/** A tool call that needs approval, answered or not. `approvals.resolve` gives the same. */
export const ApprovalSchema = s.closed({
  approvalId: s.string(),
  runId: s.string(),
  ...runSession,
  toolCallId: s.string(),
  toolName: s.string(),
  arguments: s.record(s.unknown()),
  requestedAt: s.integer(),
  expiresAt: s.integer(),
  answer: s.optional(s.choice(["approved", "denied", "expired"])),
  resolvedAt: optionalTime,
  by: optionalText,
});
export type ApprovalPayload = s.Static<typeof ApprovalSchema>;

/** `runs.list`: newest first, and the approvals that are open. */
export const RunListSchema = s.closed({
  count: s.integer(),
  runs: s.array(RunRowSchema),
  approvals: s.array(ApprovalSchema),
  /** For the next page. */
  nextBefore: optionalTime,
});
export type RunListPayload = s.Static<typeof RunListSchema>;

/** `runs.get`: one run, the whole text of its input, and every approval that it asked for. */
export const RunSchema = s.closed({
  run: RunRowSchema,
  input: s.string(),
  approvals: s.array(ApprovalSchema),
  /** What was changed of its messages on their way into the session. */
  notes: s.array(s.closed({ kind: s.string(), note: s.string() })),
});
export type RunPayload = s.Static<typeof RunSchema>;

/** `runs.abort`: the state that it has now; its owner may be yet to hear of it. */
export const AbortedSchema = s.closed({ runId: s.string(), state: RunStateSchema });
export type AbortedPayload = s.Static<typeof AbortedSchema>;

/** `runs.retry`: the run that takes up the input of a lost run. */
export const RetriedSchema = s.closed({
  runId: s.string(),
  retryOf: s.string(),
  sessionKey: s.string(),
  state: RunStateSchema,
});
export type RetriedPayload = s.Static<typeof RetriedSchema>;

/** `runs.release`: any process that has the agent may run it now. */
export const ReleasedSchema = s.closed({
  runId: s.string(),
  sessionKey: s.string(),
  agentId: s.string(),
  state: RunStateSchema,
});
export type ReleasedPayload = s.Static<typeof ReleasedSchema>;

/** `chat.abort`: the runs that were asked to end, with the states that they have now. */
export const ChatAbortedSchema = s.closed({ sessionKey: s.string(), runs: s.array(AbortedSchema) });
export type ChatAbortedPayload = s.Static<typeof ChatAbortedSchema>;

/** `approvals.list`: newest first. */
export const ApprovalListSchema = s.closed({ count: s.integer(), approvals: s.array(ApprovalSchema) });
export type ApprovalListPayload = s.Static<typeof ApprovalListSchema>;

/** `chat.send`, `chat.inject`, `agent`, `send --no-wait`: durable, and not yet answered. */
export const AcceptedSchema = s.closed({
  runId: s.string(),
  status: s.literal("accepted"),
  sessionKey: s.string(),
  /** The app whose process runs it: this one cannot. */
  waitsForApp: optionalText,
});
export type AcceptedPayload = s.Static<typeof AcceptedSchema>;

/** `sessions.send`, `agent.wait`, `send`: how a run stands, and of which. */
export const SentSchema = s.closed({
  runId: s.string(),
  sessionKey: s.string(),
  sessionId: s.string(),
  finished: s.boolean(),
  state: RunStateSchema,
  /** Of a queued run: the app whose process it waits for. */
  waitsForApp: optionalText,
  ...outcome,
  usage: UsageSchema,
});
export type SentPayload = s.Static<typeof SentSchema>;

/** `rootId`: one request and all that it set off, for whoever waits until that has ended. */
export const runsList = method({
  scope: "read",
  about: "Lists runs, the last accepted first, and the approvals that are open.",
  params: s.closed({
    states: s.optional(few(RunStateSchema, 9)),
    sessionKey: s.optional(reference),
    rootId: s.optional(id),
    startedBy: s.optional(id),
    /** `true`: only lost runs whose input waits for `runs.retry`. */
    lost: s.optional(s.boolean({ default: false })),
    /** `true`: only queued runs that wait for an app. */
    waitsForApp: s.optional(s.boolean({ default: false })),
    limit: limit(500, 50),
    before: s.optional(s.integer({ minimum: 0 })),
    ...reader,
    ...everyUser,
  }),
  result: RunListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const runsGet = method({
  scope: "read",
  about: "One run, and every approval that it asked for.",
  params: s.closed({ runId: id, ...user }),
  result: RunSchema,
  isIdempotent: true,
});

export const runsAbort = method({
  scope: "write",
  about: "Ends a run; its owner may be yet to hear of it.",
  params: s.closed({ runId: id, reason: s.optional(sentence), ...user }),
  result: AbortedSchema,
  isIdempotent: true,
});

/** The same run again gives the same retry. */
export const runsRetry = method({
  scope: "write",
  about: "Queues the input of a lost run again.",
  params: s.closed({ runId: id, ...user }),
  result: RetriedSchema,
  isIdempotent: true,
});

export const runsRelease = method({
  scope: "admin",
  about: "Lets any process that has the agent run what waits for an app.",
  params: s.closed({ runId: id, ...user }),
  result: ReleasedSchema,
  isIdempotent: true,
});

/** `open: false`: those that were answered too. Newest first. */
export const approvalsList = method({
  scope: "read",
  about: "Lists tool calls that wait for an approval.",
  params: s.closed({
    runId: s.optional(id),
    sessionKey: s.optional(reference),
    open: s.optional(s.boolean({ default: true })),
    limit: limit(500, 100),
    ...reader,
    ...everyUser,
  }),
  result: ApprovalListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const approvalsResolve = method({
  scope: "write",
  about: "Lets a tool call happen, or does not. The first answer stands.",
  params: s.closed({ approvalId: id, answer: s.choice(["approved", "denied"]), ...user }),
  result: ApprovalSchema,
  isIdempotent: true,
});
