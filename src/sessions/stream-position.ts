import type { TurnEvent } from "../agents/contract.ts";
import type { SkeinEvent } from "../core/events.ts";

/** The place of a delta in the answer that a run is streaming. */
type DeltaPlace = Pick<SkeinEvent<"run.delta">, "step" | "offset">;

/** Counts how much of an answer was streamed, so that a reader who joins in the middle can apply deltas without gaps. */
export class StreamPosition {
  #step = 0;
  #streamed = { text: 0, thinking: 0 };

  /** Returns the place of a delta; `null` for any other event. */
  take(event: TurnEvent): DeltaPlace | null {
    if (event.type === "step" && event.phase === "asked") this.#step = event.step;
    if (event.type === "step" || event.type === "retry") this.startAnswer();
    if (event.type !== "delta") return null;
    const offset = this.#streamed[event.kind];
    this.#streamed[event.kind] += event.delta.length;
    return { step: this.#step, offset };
  }

  /** The answer was written or discarded: the next delta has the offset 0. */
  startAnswer(): void {
    this.#streamed = { text: 0, thinking: 0 };
  }
}
