import * as s from "../core/schema.ts";
import { id, message, user } from "./fields.ts";
import { method } from "./method.ts";
import { LaneSchema, optionalText, optionalTime, processFields, RunSchema, UsageSchema } from "./runs.ts";

/** Methods for a run's steps, its request's budget and the lanes. */

/** `runs.steps`: the model requests in a run, in order, with their tool calls. */
export const RunStepsSchema = s.closed({
  runId: s.string(),
  steps: s.array(
    s.closed({
      /** The step's number, starting at 1. */
      step: s.integer(),
      /** The entry that contains the answer. Absent until it has been written. */
      entryId: optionalText,
      model: optionalText,
      askedAt: optionalTime,
      answeredAt: optionalTime,
      stopReason: optionalText,
      error: optionalText,
      usage: s.optional(UsageSchema),
      tools: s.array(
        s.closed({
          toolCallId: s.string(),
          toolName: s.string(),
          /** The entry that contains the result. Absent until it has been written. */
          entryId: optionalText,
          isError: s.optional(s.boolean()),
          endedAt: optionalTime,
        }),
      ),
    }),
  ),
  /** `true` if the run has more steps than are returned. */
  truncated: s.optional(s.boolean()),
});
export type RunStepsPayload = s.Static<typeof RunStepsSchema>;

export const runsSteps = method({
  scope: "read",
  about: "Returns a run's model requests and tool calls.",
  params: s.closed({ runId: id, ...user }),
  result: RunStepsSchema,
  isIdempotent: true,
});

/** `allowed` is absent if there is no limit. */
const BudgetFigureSchema = s.closed({ used: s.number(), allowed: s.optional(s.number()) });

/** `runs.budget`: how much a request and everything that it started have used. */
export const RunBudgetSchema = s.closed({
  rootId: s.string(),
  runs: BudgetFigureSchema,
  hops: BudgetFigureSchema,
  tokens: BudgetFigureSchema,
  /** Covers only tokens with a known price. */
  costUsd: BudgetFigureSchema,
  /** `true` if some tokens have no known price. */
  hasUnpriced: s.optional(s.boolean()),
});
export type RunBudgetPayload = s.Static<typeof RunBudgetSchema>;

export const runsBudget = method({
  scope: "read",
  about: "Returns how much of its budget a request has used, including everything that it started.",
  params: s.closed({ rootId: id, ...user }),
  result: RunBudgetSchema,
  isIdempotent: true,
});

/** `lanes.list`. A token for all users sees every user's runs. Any other token sees only its own user's runs. */
export const LaneListSchema = s.closed({
  lanes: s.array(
    s.closed({
      lane: LaneSchema,
      /** The maximum number of runs that execute at the same time, across all users. */
      limit: s.integer(),
      running: s.integer(),
      /** The number of sessions whose next run is waiting only for a free slot. */
      queued: s.integer(),
    }),
  ),
  /** The processes that share the database, if there are several. Returned only for an admin token for all users. */
  processes: s.optional(
    s.array(
      s.closed({
        ...processFields,
        version: s.string(),
        startedAt: s.integer(),
        /** `false` for a gateway without workers. */
        executesRuns: s.boolean(),
        /** The number of runs that the process executes. */
        runs: s.integer(),
      }),
    ),
  ),
});
export type LaneListPayload = s.Static<typeof LaneListSchema>;

export const lanesList = method({
  scope: "read",
  about: "Lists the lanes with their limits and runs.",
  params: s.closed({}),
  result: LaneListSchema,
  isIdempotent: true,
});

/** The message's images are kept. Retrying the call has no further effect. */
export const runsEdit = method({
  scope: "write",
  about:
    "Replaces the text of a queued message. Fails with a conflict if its run has already started or if its text is not `expectedText`.",
  params: s.closed({
    runId: id,
    message,
    /** The text that the change is based on. Without it, the last change wins. */
    expectedText: s.optional(message),
    ...user,
  }),
  result: RunSchema,
  isIdempotent: true,
});
