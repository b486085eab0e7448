import * as s from "../core/schema.ts";
import { id, message, user } from "./fields.ts";
import { method } from "./method.ts";
import { LaneSchema, optionalText, optionalTime, RunSchema, UsageSchema } from "./runs.ts";

/** What a run did, what its request used, and the lanes. */

/** `runs.steps`: the model requests of a run, in order, with their tool calls. */
export const RunStepsSchema = s.closed({
  runId: s.string(),
  steps: s.array(
    s.closed({
      /** Counted from 1. */
      step: s.integer(),
      /** The answer; absent until it is written. */
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
          /** The result; absent until it is written. */
          entryId: optionalText,
          isError: s.optional(s.boolean()),
          endedAt: optionalTime,
        }),
      ),
    }),
  ),
  /** `true`: the run has more steps. */
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

/** `runs.budget`: what a request and everything that it started have used. */
export const RunBudgetSchema = s.closed({
  rootId: s.string(),
  runs: BudgetFigureSchema,
  hops: BudgetFigureSchema,
  tokens: BudgetFigureSchema,
  /** As far as prices are known. */
  costUsd: BudgetFigureSchema,
  /** `true`: some tokens have no known price. */
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

/** `lanes.list`: for a token for every user, the runs of all users; otherwise those of its user. */
export const LaneListSchema = s.closed({
  lanes: s.array(
    s.closed({
      lane: LaneSchema,
      /** How many runs it executes at once, of all users. */
      limit: s.integer(),
      running: s.integer(),
      /** Sessions whose next run only needs a free place. */
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

/** Images of the message stay. Repeating the call changes nothing. */
export const runsEdit = method({
  scope: "write",
  about: "Replaces the text of a queued message. A run that has started is a conflict.",
  params: s.closed({ runId: id, message, ...user }),
  result: RunSchema,
  isIdempotent: true,
});
