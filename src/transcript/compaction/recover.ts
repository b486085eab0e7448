import { maxCompactions } from "./limits.ts";

/** What is done, and in which order, when a context does not fit; none of it takes an entry out of a session. */
export type Measure = "truncate_oversized" | "compact" | "truncate" | "prune" | "give_up";

/** What a run has done about it so far. */
export interface RecoveryState {
  readonly compaction: "possible" | "spent";
  readonly truncation: "untried" | "tried";
  readonly pruning: "untried" | "tried";
  /** How often results were truncated for good. */
  readonly truncations: number;
  readonly compactions: number;
}

/** Each overflow shows a smaller window, by which other results are oversized. */
const maxTruncations = 3;

/** How a run begins. */
export const noRecovery: RecoveryState = {
  compaction: "possible",
  truncation: "untried",
  pruning: "untried",
  truncations: 0,
  compactions: 0,
};

/** What to do now that the context does not fit. `hasOversizedResults`: before anything is summarized, those are cut. */
export function nextMeasure(state: RecoveryState, hasOversizedResults: boolean): Measure {
  if (hasOversizedResults && state.truncations < maxTruncations) return "truncate_oversized";
  if (state.compaction === "possible") return "compact";
  if (state.truncation === "untried") return "truncate";
  return state.pruning === "untried" ? "prune" : "give_up";
}

/**
 * The state once a measure was taken. A compaction that did not make the context smaller was the last one, and so is
 * the third; pruning and truncation in memory are done once. So a run takes at most eight measures.
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
