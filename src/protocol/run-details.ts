import * as s from "../core/schema.ts";
import { id, message, user } from "./fields.ts";
import { method } from "./method.ts";
import { LaneSchema, optionalText, optionalTime, RunSchema, UsageSchema } from "./runs.ts";

/** A run's steps, the budget used by its request, and the lanes. */

/** `runs.steps`: the model requests in a run, in order, with their tool calls. */
export const RunStepsSchema = s.closed({
  runId: s.string(),
  steps: s.array(
    s.closed({
      /** Counted from 1. */
      step: s.integer(),
      /** The entry with the answer; absent until it is written. */
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
          /** The entry with the result; absent until it is written. */
          entryId: optionalText,
          isError: s.optional(s.boolean()),
          endedAt: optionalTime,
        }),
      ),
    }),
  ),
  /** `true` if the run has more steps. */
  truncated: s.optional(s.boolean()),
});
export type RunStepsPayload = s.Static<typeof RunStepsSchema>;

export const runsSteps = method({
  scope: "read",
  about: "Returns the model requests and tool calls of a run.",
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
  /** Only includes tokens with a known price. */
  costUsd: BudgetFigureSchema,
  /** `true` if some tokens have no known price. */
  hasUnpriced: s.optional(s.boolean()),
});
export type RunBudgetPayload = s.Static<typeof RunBudgetSchema>;

export const runsBudget = method({
  scope: "read",
  about: "Returns what a request and everything that it started have used of their budget.",
  params: s.closed({ rootId: id, ...user }),
  result: RunBudgetSchema,
  isIdempotent: true,
});

/** `lanes.list`: all users' runs for a token for all users; otherwise only the runs of the token's user. */
export const LaneListSchema = s.closed({
  lanes: s.array(
    s.closed({
      lane: LaneSchema,
      /** The number of runs that it executes at once, for all users together. */
      limit: s.integer(),
      running: s.integer(),
      /** Sessions whose next run only waits for a free slot. */
      queued: s.integer(),
    }),
  ),
});
export type LaneListPayload = s.Static<typeof LaneListSchema>;

export const lanesList = method({
  scope: "read",
  about: "Lists the lanes with their limits and the runs in them.",
  params: s.closed({}),
  result: LaneListSchema,
  isIdempotent: true,
});

/** The message's images are kept. Repeating the call changes nothing. */
export const runsEdit = method({
  scope: "write",
  about: "Replaces the text of a queued message. A run that has started is a conflict.",
  params: s.closed({ runId: id, message, ...user }),
  result: RunSchema,
  isIdempotent: true,
});
