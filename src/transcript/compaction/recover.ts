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

type Pruning = Readonly<Record<RecoveryState["pruning"], Measure>>;
type Truncation = Readonly<Record<RecoveryState["truncation"], Pruning>>;
type Compaction = Readonly<Record<RecoveryState["compaction"], Truncation>>;

const first: Truncation = {
  untried: { untried: "truncate_oversized", tried: "truncate_oversized" },
  tried: { untried: "truncate_oversized", tried: "truncate_oversized" },
};

const measures: Readonly<Record<RecoveryState["oversized"], Compaction>> = {
  waiting: { possible: first, spent: first },
  settled: {
    possible: {
      untried: { untried: "compact", tried: "compact" },
      tried: { untried: "compact", tried: "compact" },
    },
    spent: {
      untried: { untried: "truncate", tried: "truncate" },
      tried: { untried: "prune", tried: "give_up" },
    },
  },
};

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
  return measures[state.oversized][state.compaction][state.truncation][state.pruning];
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
