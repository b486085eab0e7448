import type { Held } from "../../runs/contract.ts";
import { isFenced } from "../../runs/worker.ts";
import type { TurnEvent } from "../../runtimes/contract.ts";
import type { RunningDeps } from "./contract.ts";

type Deps = Pick<RunningDeps, "runs" | "clock" | "report">;

const everyMs = 1000;

/** Keeps the answer so far, once a second, so that a crash leaves it for people to see. */
export class PartialKeeper {
  readonly #deps: Deps;
  readonly #held: Held;
  #text: string[] = [];
  #keptAt: number;
  #isKept = false;

  constructor(deps: Deps, held: Held) {
    this.#deps = deps;
    this.#held = held;
    this.#keptAt = deps.clock.now();
  }

  take(event: TurnEvent): void {
    if (event.type === "retry") this.#text = [];
    if (event.type !== "delta" || event.kind !== "text") return;
    this.#text.push(event.delta);
    const now = this.#deps.clock.now();
    if (now - this.#keptAt < everyMs) return;
    this.#keptAt = now;
    this.#isKept = true;
    this.#deps.runs.keepPartial(this.#held, this.#text.join("")).catch(this.#deps.report);
  }

  /** What was streamed is left to whoever goes on. */
  async leave(): Promise<void> {
    await this.#deps.runs.keepPartial(this.#held, this.#text.join("")).catch((error: unknown) => {
      if (!isFenced(error)) throw error;
    });
  }

  /** What was streamed is written now. */
  async settle(): Promise<void> {
    this.#text = [];
    if (!this.#isKept) return;
    this.#isKept = false;
    await this.#deps.runs.keepPartial(this.#held, null);
  }
}
