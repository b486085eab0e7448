import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";

/** How the time passes for a model of ours. */
export interface Waiting {
  now(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const realWaiting: Waiting = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    untilAborted(signal, (done) => {
      const timer = setTimeout(done, ms);
      return () => clearTimeout(timer);
    }),
};

/** Never comes back but by the signal. */
export function stalled(signal: AbortSignal | undefined): Promise<void> {
  return untilAborted(signal, () => () => undefined);
}

function untilAborted(
  signal: AbortSignal | undefined,
  start: (done: () => void) => () => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted === true) {
    reject(signal.reason);
    return promise;
  }
  const onAbort = () => {
    stop();
    reject(signal?.reason);
  };
  const stop = start(() => {
    signal?.removeEventListener("abort", onAbort);
    resolve();
  });
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}

export type Parts = AsyncGenerator<LanguageModelV4StreamPart, void, undefined>;

/** Read as fast as it is taken. A reader that leaves stops what makes the parts; an abort is an error of the stream. */
export function streamOf(make: (signal: AbortSignal) => Parts, given?: AbortSignal) {
  const left = new AbortController();
  const signal = given === undefined ? left.signal : AbortSignal.any([given, left.signal]);
  const parts = make(signal);
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        signal.throwIfAborted();
        const { done, value } = await parts.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => left.abort(reason),
    },
    { highWaterMark: 0 },
  );
}
