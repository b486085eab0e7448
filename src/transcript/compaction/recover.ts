import { mostCompactions } from "./limits.ts";

/** What is done, and in which order, when a context does not fit; none of it takes an entry out of a session. */
export type Measure = "truncate_oversized" | "compact" | "truncate" | "prune" | "give_up";

/** What a run has done about it so far. */
export interface RecoveryState {
  /** Whether results that are likely too large wait to be truncated for good, before anything is summarised. */
  readonly oversized: "waiting" | "settled";
  readonly compaction: "possible" | "spent";
  readonly truncation: "untried" | "tried";
  readonly pruning: "untried" | "tried";
  readonly compactions: number;
}

/** How a run begins. */
export function recoveryFor({
  hasOversizedResults,
}: {
  readonly hasOversizedResults: boolean;
}): RecoveryState {
  return {
    oversized: hasOversizedResults ? "waiting" : "settled",
    compaction: "possible",
    truncation: "untried",
    pruning: "untried",
    compactions: 0,
  };
}

/** What to do now that the context does not fit. */
export function nextMeasure(state: RecoveryState): Measure {
  if (state.oversized === "waiting") return "truncate_oversized";
  if (state.compaction === "possible") return "compact";
  if (state.truncation === "untried") return "truncate";
  return state.pruning === "untried" ? "prune" : "give_up";
}

/**
 * The state once a measure was taken. A compaction that did not make the context smaller was the last one, and so is
 * the third; everything else is done once. So a run takes at most six measures.
 */
export function afterMeasure(state: RecoveryState, measure: Measure, isSmaller: boolean): RecoveryState {
  switch (measure) {
    case "truncate_oversized":
      return { ...state, oversized: "settled" };
    case "compact": {
      const compactions = state.compactions + 1;
      const isLast = !isSmaller || compactions >= mostCompactions;
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
