import { SkeinError } from "../core/errors.ts";
import type { ContextSize } from "../transcript/compaction/limits.ts";
import type { Measure, RecoveryState } from "../transcript/compaction/recover.ts";
import { afterMeasure, nextMeasure, recoveryFor } from "../transcript/compaction/recover.ts";
import type { CompactionOutcome } from "./compaction-outcome.ts";

/** What can be done about a context that is too large. Each says whether the context is smaller now. */
export interface RecoveryMeasures {
  /** Whether results are likely that are too large on their own; asked once, when the first measure is needed. */
  hasOversizedResults(): boolean | Promise<boolean>;
  /** For good, by branching. */
  truncateOversized(): Promise<boolean>;
  /** `compactions`: how many this run has had. */
  compact(compactions: number): Promise<CompactionOutcome>;
  truncate(): Promise<boolean>;
  prune(): Promise<boolean>;
}

/**
 * What one run does about a context that is over the threshold, or that its provider refused as too large: measure after
 * measure, each a bounded number of times, and then `context_overflow`. No measure takes an entry out of the session.
 */
export class ContextRecovery {
  readonly #sessionId: string;
  readonly #measures: RecoveryMeasures;
  #state: RecoveryState | null = null;

  constructor(sessionId: string, measures: RecoveryMeasures) {
    this.#sessionId = sessionId;
    this.#measures = measures;
  }

  /**
   * Takes measures until one has made the context smaller, or another one. Whoever asks looks again whether it fits, and
   * whether the run goes on.
   */
  async makeRoom({ tokens, contextWindow }: ContextSize): Promise<Measure> {
    let state =
      this.#state ?? recoveryFor({ hasOversizedResults: await this.#measures.hasOversizedResults() });
    for (;;) {
      const measure = nextMeasure(state);
      if (measure === "give_up") {
        const sessionId = this.#sessionId;
        throw new SkeinError("context_overflow", { sessionId, tokens, contextWindow });
      }
      const isSmaller = await this.#take(measure, state.compactions);
      state = afterMeasure(state, measure, isSmaller);
      this.#state = state;
      if (isSmaller) return measure;
    }
  }

  #take(measure: Exclude<Measure, "give_up">, compactions: number): Promise<boolean> {
    switch (measure) {
      case "truncate_oversized":
        return this.#measures.truncateOversized();
      case "compact":
        return this.#measures.compact(compactions).then(isWorthALook);
      case "truncate":
        return this.#measures.truncate();
      case "prune":
        return this.#measures.prune();
    }
  }
}

/**
 * A compaction that is done has shrunk it. Where somebody else came first it is another one, and worth a look; whoever
 * aborted one does not want the next measure either.
 */
function isWorthALook(outcome: CompactionOutcome): boolean {
  return outcome.done || outcome.reason === "conflict" || outcome.reason === "aborted";
}
