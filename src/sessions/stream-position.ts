import type { TurnEvent } from "../agents/contract.ts";
import type { SkeinEvent } from "../core/events.ts";

/** A delta's position in the answer that a run is streaming. */
type DeltaPlace = Pick<SkeinEvent<"run.delta">, "step" | "offset">;

/** Tracks how much of an answer has been streamed so that a client that joins midway can apply deltas without gaps. */
export class StreamPosition {
  #step = 0;
  #streamed = { text: 0, thinking: 0 };

  /** Returns a delta's position, or `null` for any other event. */
  take(event: TurnEvent): DeltaPlace | null {
    if (event.type === "step" && event.phase === "asked") this.#step = event.step;
    if (event.type === "step" || event.type === "retry") this.startAnswer();
    if (event.type !== "delta") return null;
    const offset = this.#streamed[event.kind];
    this.#streamed[event.kind] += event.delta.length;
    return { step: this.#step, offset };
  }

  /** Call this after the answer has been written or discarded. The next delta has offset 0. */
  startAnswer(): void {
    this.#streamed = { text: 0, thinking: 0 };
  }
}
