import type { Measure } from "../transcript/compaction/recover.ts";
import { afterMeasure, nextMeasure, noRecovery } from "../transcript/compaction/recover.ts";

/** What can be done about a context that is too large. Each resolves to whether the next request is smaller now. */
export interface RecoveryMeasures {
  /** Whether truncating results makes the request smaller; asked before the first measure. */
  hasOversizedResults(): boolean | Promise<boolean>;
  /** For good, by branching. */
  truncateOversized(): Promise<boolean>;
  /** `compactions`: how many this run has had. */
  compact(compactions: number): Promise<boolean>;
  truncate(): Promise<boolean>;
  prune(): Promise<boolean>;
}

/**
 * What one run does about a context that is over the threshold, or that its provider refused as too large: measure after
 * measure, each a bounded number of times. No measure takes an entry out of the session.
 */
export class ContextRecovery {
  readonly #measures: RecoveryMeasures;
  #state = noRecovery;

  constructor(measures: RecoveryMeasures) {
    this.#measures = measures;
  }

  /** Takes measures until one has made the next request smaller; `give_up`: none is left. */
  async makeRoom(): Promise<Measure> {
    const hasOversizedResults = await this.#measures.hasOversizedResults();
    for (;;) {
      const measure = nextMeasure(this.#state, hasOversizedResults);
      if (measure === "give_up") return measure;
      const isSmaller = await this.#take(measure, this.#state.compactions);
      this.#state = afterMeasure(this.#state, measure, isSmaller);
      if (isSmaller) return measure;
    }
  }

  #take(measure: Exclude<Measure, "give_up">, compactions: number): Promise<boolean> {
    switch (measure) {
      case "truncate_oversized":
        return this.#measures.truncateOversized();
      case "compact":
        return this.#measures.compact(compactions);
      case "truncate":
        return this.#measures.truncate();
      case "prune":
        return this.#measures.prune();
    }
  }
}
