import { Session } from "node:inspector/promises";

/**
 * Counts how often blocks of the product's own code run, using V8's precise coverage. The count is the same on every
 * run, no matter how busy the machine is. Work inside V8 itself, such as in a regular expression, is not counted.
 *
 * V8 counts only code that it compiles after the start, so import the code to be counted after calling `start`.
 */
export class StepCounter {
  readonly #session: Session;

  private constructor(session: Session) {
    this.#session = session;
  }

  static async start(): Promise<StepCounter> {
    const session = new Session();
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    return new StepCounter(session);
  }

  /** Returns the number of blocks that ran during `act`. */
  async count(act: () => unknown): Promise<number> {
    await this.#take();
    await act();
    return this.#take();
  }

  async stop(): Promise<void> {
    await this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }

  /** Returns the blocks that have run since the last call. */
  async #take(): Promise<number> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    let steps = 0;
    for (const { url, functions } of result.filter((script) => script.url.includes("/src/"))) {
      for (const { functionName, isBlockCoverage, ranges } of functions) {
        const count = ranges.reduce((sum, range) => sum + range.count, 0);
        if (count > 0 && !isBlockCoverage)
          throw new Error(`${functionName} of ${url} was compiled before the step counter was started`);
        steps += count;
      }
    }
    return steps;
  }
}
