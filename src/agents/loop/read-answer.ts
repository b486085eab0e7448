import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { isContextOverflow } from "../ai-sdk/context-overflow.ts";
import type { ResponseFacts } from "../ai-sdk/from-response.ts";
import { errorMessageOf } from "../ai-sdk/usage.ts";
import type { Delta, PartCollector } from "./collect-parts.ts";
import { StreamFailure } from "./failure.ts";
import type { LoopDeps } from "./waits.ts";
import { unlessAborted } from "./waits.ts";

const longestBreathMs = 50;

export interface ReadOptions {
  readonly signal: AbortSignal;
  /** A stream that says nothing for so long is given up. */
  readonly stallMs: number;
  readonly onDelta: (delta: Delta) => void;
}

/**
 * Asks once, and reads the answer to its end. What was streamed is in the collector whatever happens; a stream that
 * stalls, breaks off or ends badly throws. An abort leaves at once, whether or not the model's package heeds it.
 */
export async function readAnswer(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
  collector: PartCollector,
  { signal, stallMs, onDelta }: ReadOptions,
  deps: LoopDeps,
): Promise<ResponseFacts> {
  const request = new AbortController();
  const stop = () => request.abort(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  const watch = new Watch(stallMs, deps, request);
  try {
    const asked = model.doStream({ ...options, abortSignal: request.signal });
    const { stream } = await unlessAborted(asked, request.signal);
    const reader = stream.getReader();
    try {
      for (let breathed = performance.now(); ; ) {
        // A stream that always has more ready would let no timer, lease or abort through.
        if (performance.now() - breathed > longestBreathMs) {
          await immediately();
          breathed = performance.now();
        }
        const { done, value } = await unlessAborted(reader.read(), request.signal);
        if (done) break;
        watch.heard();
        if (value.type === "error") throw value.error;
        const delta = collector.add(value);
        if (delta !== null) onDelta(delta);
      }
    } catch (error) {
      // The connection is let go, whatever the stream thinks of it.
      reader.cancel(error).catch(() => undefined);
      throw error;
    }
    return ended(collector.facts);
  } finally {
    signal.removeEventListener("abort", stop);
    watch.end();
  }
}

function immediately(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** A reason for ending that is none is a failure, even where the stream came to its end. */
function ended(facts: ResponseFacts | null): ResponseFacts {
  if (facts === null) throw new StreamFailure("cut", "The answer ended before it was complete.");
  const { unified, raw = "" } = facts.finishReason;
  // Some servers accept a request that is too long, and end the answer at once with this reason.
  if (unified !== "length" && isContextOverflow(null, [raw]))
    throw new StreamFailure("overflow", `The provider ended the answer with ${raw}.`);
  const problem = errorMessageOf(facts.finishReason);
  if (problem === undefined) return facts;
  const isFiltered = unified === "content-filter";
  throw new StreamFailure(isFiltered ? "filtered" : "cut", problem);
}

/** Gives a request up when nothing has been heard for too long. One timer at a time, however many parts come. */
class Watch {
  readonly #deps: LoopDeps;
  readonly #over = new AbortController();
  #last: number;

  constructor(stallMs: number, deps: LoopDeps, request: AbortController) {
    this.#deps = deps;
    this.#last = deps.clock.now();
    this.#run(stallMs, request).catch(() => undefined);
  }

  heard(): void {
    this.#last = this.#deps.clock.now();
  }

  end(): void {
    // With a reason of its own: without one a new error is made, with its stack, for nobody.
    this.#over.abort("over");
  }

  async #run(stallMs: number, request: AbortController): Promise<void> {
    for (;;) {
      const left = this.#last + stallMs - this.#deps.clock.now();
      if (left <= 0) break;
      await this.#deps.sleep(left, this.#over.signal);
    }
    const seconds = Math.round(stallMs / 1000);
    request.abort(new StreamFailure("stalled", `The model said nothing for ${seconds} seconds.`));
  }
}
