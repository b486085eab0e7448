import type { TurnEvent } from "../agents/contract.ts";
import { cutText } from "../core/text.ts";
import type { HeldRun } from "../runs/contract.ts";
import { isFenced } from "../runs/worker.ts";
import type { App } from "./app.ts";

const everyMs = 1000;
/** It is written whole each time: of an answer without end the beginning is kept. */
const mostCharacters = 400_000;

/** Keeps the answer so far, once a second, so that a crash leaves it for people to see. */
export class PartialKeeper {
  readonly #app: Pick<App, "runs" | "clock" | "report">;
  readonly #held: HeldRun;
  #text: string[] = [];
  #left = mostCharacters;
  #keptAt: number;
  #isKept = false;

  constructor(app: Pick<App, "runs" | "clock" | "report">, held: HeldRun) {
    this.#app = app;
    this.#held = held;
    this.#keptAt = app.clock.now();
  }

  take(event: TurnEvent): void {
    if (event.type === "retry") this.#empty();
    if (event.type !== "delta" || event.kind !== "text") return;
    if (this.#left === 0) return;
    const delta = cutText(event.delta, this.#left);
    this.#left = delta.length < event.delta.length ? 0 : this.#left - delta.length;
    this.#text.push(delta);
    const now = this.#app.clock.now();
    if (now - this.#keptAt < everyMs) return;
    this.#keptAt = now;
    this.#isKept = true;
    this.#app.runs.keepPartial(this.#held, this.#text.join("")).catch(this.#app.report);
  }

  /** What was streamed is left to whoever goes on. */
  async leave(): Promise<void> {
    await this.#app.runs.keepPartial(this.#held, this.#text.join("")).catch((error: unknown) => {
      if (!isFenced(error)) throw error;
    });
  }

  /** What was streamed is written now. */
  async settle(): Promise<void> {
    this.#empty();
    if (!this.#isKept) return;
    this.#isKept = false;
    await this.#app.runs.keepPartial(this.#held, null);
  }

  #empty(): void {
    this.#text = [];
    this.#left = mostCharacters;
  }
}
