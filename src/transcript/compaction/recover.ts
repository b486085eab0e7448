import { maxCompactions } from "./limits.ts";

/** The recovery steps, in order, for a context that does not fit. None of them removes entries from a session. */
export type Measure = "truncate_oversized" | "compact" | "truncate" | "prune" | "give_up";

/** The recovery steps that a run has tried so far. */
export interface RecoveryState {
  readonly compaction: "possible" | "spent";
  readonly truncation: "untried" | "tried";
  readonly pruning: "untried" | "tried";
  /** How many times results have been truncated in the session. */
  readonly truncations: number;
  readonly compactions: number;
}

/** Each overflow can reveal a smaller window, which makes more results oversized. */
const maxTruncations = 3;

export const noRecovery: RecoveryState = {
  compaction: "possible",
  truncation: "untried",
  pruning: "untried",
  truncations: 0,
  compactions: 0,
};

/** Returns the next recovery step. Oversized results are truncated before anything is summarized. */
export function nextMeasure(state: RecoveryState, hasOversizedResults: boolean): Measure {
  if (hasOversizedResults && state.truncations < maxTruncations) return "truncate_oversized";
  if (state.compaction === "possible") return "compact";
  if (state.truncation === "untried") return "truncate";
  return state.pruning === "untried" ? "prune" : "give_up";
}

/**
 * Returns the state after a recovery step. Compaction ends after three attempts, or after one that does not shrink the
 * context. Pruning and truncation in memory happen once. A run takes at most eight recovery steps.
 */
export function afterMeasure(state: RecoveryState, measure: Measure, isSmaller: boolean): RecoveryState {
  switch (measure) {
    case "truncate_oversized":
      return { ...state, truncations: isSmaller ? state.truncations + 1 : maxTruncations };
    case "compact": {
      const compactions = state.compactions + 1;
      const isLast = !isSmaller || compactions >= maxCompactions;
      return { ...state, compactions, compaction: isLast ? "spent" : "possible" };
    }
    case "truncate":
      return { ...state, truncation: "tried" };
    case "prune":
      return { ...state, pruning: "tried" };
    case "give_up":
      return state;
  }
}
