import * as s from "../core/schema.ts";
import { everyUser, few, id, limit, reader, reference, sentence, user } from "./fields.ts";
import { method } from "./method.ts";

/** Methods for runs and approvals. */

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

export const LaneSchema = s.choice(["main", "subagent", "cron", "nested"]);

export const UsageSchema = s.closed({
  input: s.number(),
  output: s.number(),
  cacheRead: s.number(),
  cacheWrite: s.number(),
  totalTokens: s.number(),
  /** Absent if a price is unknown. */
  costUsd: s.optional(s.number()),
});

const outcome = {
  reply: optionalText,
  output: s.optional(s.unknown()),
  error: s.optional(s.closed({ code: s.string(), message: s.string() })),
};

/** Why a run is not executing, as a sentence and as data for links. */
const WhySchema = s.closed({
  kind: s.choice(["lane", "ahead", "runs", "approval", "retry", "app", "worker", "owner", "stopping"]),
  text: s.string(),
  lane: s.optional(LaneSchema),
  /** The number of runs ahead of this run in its session, up to 1,000. */
  ahead: s.optional(s.integer()),
  runIds: s.optional(s.array(s.string())),
  approvalId: optionalText,
  /** The run continues no later than this. */
  retryAt: optionalTime,
});

/** A process on one of several machines that share a database. */
export const processFields = { host: s.string(), pid: s.integer() };

/** A run as returned by `runs.list` and `runs.get`. */
export const RunRowSchema = s.closed({
  runId: s.string(),
  ...runSession,
  agentId: s.string(),
  state: RunStateSchema,
  kind: s.string(),
  lane: LaneSchema,
  queueMode: s.choice(["steer", "followup", "interrupt"]),
  /** The beginning of the input, without the text that Skein adds to tasks and results for the model. */
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
  /** The runs that this run is waiting for, or the runs ahead of it in the queue. */
  waitsFor: s.optional(s.array(s.string())),
  /** When a sleeping run wakes up even if the runs that it is waiting for have not ended. */
  wakeAt: optionalTime,
  /** Absent for a run that is running or has ended. */
  why: s.optional(WhySchema),
  abortRequested: s.optional(s.boolean()),
  /**
   * `true` if the process that was executing the run no longer exists. The run is continued by the next process of
   * `app` or, if `app` is absent, by the next process that has its agent.
   */
  ownerGone: s.optional(s.boolean()),
  /** The process that executes the run. Only admins see it, and only if several processes share the database. */
  worker: s.optional(s.closed(processFields)),
  /** The number of times that the run lost its owner process. */
  lost: s.optional(s.integer()),
  /** The run that this one retries. */
  retryOf: optionalText,
  /** For a run that did not succeed, the run that retries it. */
  retriedAs: optionalText,
  /** The app that defines the run's agent in code. */
  app: optionalText,
  /** For a queued run, the app whose process must execute it. `runs.release` lets any process execute it. */
  waitsForApp: optionalText,
  /** Tools that the run needs but that the app's process does not offer. */
  missingTools: s.optional(s.array(s.string())),
  ...outcome,
  usage: UsageSchema,
});
export type RunRowPayload = s.Static<typeof RunRowSchema>;

/** A pending or resolved request for approval of a tool call. `approvals.resolve` returns the same object. */
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
  /** A person's reason for a denial, which is shown to the model. */
  note: optionalText,
  /** The root of the requesting session's tree. If the session was not spawned, this is the session itself. */
  rootKey: s.string(),
  /** The sessions from the root to the requesting session, inclusive. */
  path: s.array(s.closed({ key: s.string(), label: optionalText })),
});
export type ApprovalPayload = s.Static<typeof ApprovalSchema>;

/** `runs.list`: newest first, with all pending approvals. */
export const RunListSchema = s.closed({
  count: s.integer(),
  runs: s.array(RunRowSchema),
  approvals: s.array(ApprovalSchema),
  /** The cursor for the next page. */
  nextBefore: optionalTime,
});
export type RunListPayload = s.Static<typeof RunListSchema>;

/** `runs.get`: one run, the full text of its input, and all of its approvals. */
export const RunSchema = s.closed({
  run: RunRowSchema,
  input: s.string(),
  approvals: s.array(ApprovalSchema),
  /** Changes that were made to the run's messages before they were stored. */
  notes: s.array(s.closed({ kind: s.string(), note: s.string() })),
});
export type RunPayload = s.Static<typeof RunSchema>;

/** `runs.abort`: the run's current state. Its owner might not have seen the abort request yet. */
export const AbortedSchema = s.closed({ runId: s.string(), state: RunStateSchema });
export type AbortedPayload = s.Static<typeof AbortedSchema>;

/** `runs.retry`: the new run. */
export const RetriedSchema = s.closed({
  runId: s.string(),
  retryOf: s.string(),
  sessionKey: s.string(),
  state: RunStateSchema,
});
export type RetriedPayload = s.Static<typeof RetriedSchema>;

/** `runs.release`: the run, which any process that has its agent can now execute. */
export const ReleasedSchema = s.closed({
  runId: s.string(),
  sessionKey: s.string(),
  agentId: s.string(),
  state: RunStateSchema,
});
export type ReleasedPayload = s.Static<typeof ReleasedSchema>;

/** `chat.abort`: the runs that will end, with their current states. */
export const ChatAbortedSchema = s.closed({ sessionKey: s.string(), runs: s.array(AbortedSchema) });
export type ChatAbortedPayload = s.Static<typeof ChatAbortedSchema>;

/** `approvals.list`: newest first. */
export const ApprovalListSchema = s.closed({ count: s.integer(), approvals: s.array(ApprovalSchema) });
export type ApprovalListPayload = s.Static<typeof ApprovalListSchema>;

/** `chat.send`, `chat.inject`, `agent`, `send --no-wait`: the input has been stored but not answered yet. */
export const AcceptedSchema = s.closed({
  runId: s.string(),
  status: s.literal("accepted"),
  sessionKey: s.string(),
  /** The app whose process must execute the run, if this process cannot. */
  waitsForApp: optionalText,
});
export type AcceptedPayload = s.Static<typeof AcceptedSchema>;

/** `sessions.send`, `agent.wait`, `send`: the state of a run. */
export const SentSchema = s.closed({
  runId: s.string(),
  sessionKey: s.string(),
  sessionId: s.string(),
  finished: s.boolean(),
  state: RunStateSchema,
  /** For a queued run, the app whose process must execute it. */
  waitsForApp: optionalText,
  ...outcome,
  usage: UsageSchema,
});
export type SentPayload = s.Static<typeof SentSchema>;

/**
 * With `rootId`, returns only the runs of one request and of everything that it started, so that a client can wait
 * until all of them have ended.
 */
export const runsList = method({
  scope: "read",
  about: "Lists runs, newest first, and the pending approvals.",
  params: s.closed({
    states: s.optional(few(RunStateSchema, 9)),
    sessionKey: s.optional(reference),
    rootId: s.optional(id),
    startedBy: s.optional(id),
    /** If `true`, returns only lost runs whose input is waiting for `runs.retry`. */
    lost: s.optional(s.boolean({ default: false })),
    /** If `true`, returns only queued runs that are waiting for an app. */
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
  about: "Returns a run with its approvals.",
  params: s.closed({ runId: id, ...user }),
  result: RunSchema,
  isIdempotent: true,
});

export const runsAbort = method({
  scope: "write",
  about: "Aborts a run. The process that owns the run might take a moment to stop it.",
  params: s.closed({ runId: id, reason: s.optional(sentence), ...user }),
  result: AbortedSchema,
  isIdempotent: true,
});

/** Retrying the same run twice returns the same new run. */
export const runsRetry = method({
  scope: "write",
  about: "Retries a lost, failed, timed-out or aborted run by queueing its input again.",
  params: s.closed({ runId: id, ...user }),
  result: RetriedSchema,
  isIdempotent: true,
});

export const runsRelease = method({
  scope: "admin",
  about: "Lets any process that has the agent execute a run that is waiting for an app.",
  params: s.closed({ runId: id, ...user }),
  result: ReleasedSchema,
  isIdempotent: true,
});

/** With `open: false`, resolved approvals are included. */
export const approvalsList = method({
  scope: "read",
  about: "Lists tool calls that are waiting for approval, newest first.",
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
  about:
    "Approves or denies a tool call. The first answer is final. Fails with a conflict if the approval has expired.",
  params: s.closed({
    approvalId: id,
    answer: s.choice(["approved", "denied"]),
    /** The reason for a denial, which is shown to the model. */
    note: s.optional(sentence),
    ...user,
  }),
  result: ApprovalSchema,
  isIdempotent: true,
});
