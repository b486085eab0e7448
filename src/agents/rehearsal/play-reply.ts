import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { present } from "../../core/present.ts";

/** A reply from one of our models and how the AI SDK receives it: in full, streamed, or as a provider error. */

export interface Reply {
  readonly thinking: string;
  readonly text: string;
  readonly calls: readonly ReplyCall[];
  /** The duration of the stream. */
  readonly spreadMs: number;
}

export interface ReplyCall {
  readonly name: string;
  readonly arguments: JSONObject;
}

export interface IdentifiedCall extends ReplyCall {
  readonly id: string;
}

export const say = (text: string): Reply => ({ thinking: "", text, calls: [], spreadMs: 0 });

const maxSpreadMs = 600_000;

/** Converts a duration in a request to milliseconds, up to ten minutes. Units can be in English or Chinese. */
export function readSpreadMs(count = "0", unit = ""): number {
  const unitMs = /^(?:ms|milli|毫)/i.test(unit) ? 1 : /^(?:min|分)/i.test(unit) ? 60_000 : 1000;
  return Math.min(maxSpreadMs, Number(count) * unitMs);
}

export const callTools = (...calls: readonly ReplyCall[]): Reply => ({ ...say(""), calls });

export function finishReasonOf({ calls }: Pick<Reply, "calls">): LanguageModelV4FinishReason {
  return calls.length > 0 ? { unified: "tool-calls", raw: "tool_calls" } : { unified: "stop", raw: "stop" };
}

/** Gives each call an ID that is not yet used in the prompt. The same prompt always produces the same IDs. */
export function identifyCalls(
  prompt: LanguageModelV4Prompt,
  calls: readonly ReplyCall[],
): readonly IdentifiedCall[] {
  const taken = new Set(
    prompt.flatMap(({ role, content }) =>
      role === "assistant"
        ? content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))
        : [],
    ),
  );
  let next = taken.size;
  return calls.map((call) => {
    do next += 1;
    while (taken.has(`call_${next}`));
    return { ...call, id: `call_${next}` };
  });
}

export function contentOf(reply: Reply, calls: readonly IdentifiedCall[]): LanguageModelV4Content[] {
  return [
    ...(reply.thinking === "" ? [] : [{ type: "reasoning" as const, text: reply.thinking }]),
    ...(reply.text === "" ? [] : [{ type: "text" as const, text: reply.text }]),
    ...calls.map(toolCall),
  ];
}

/** Returns the stream parts between `stream-start` and `finish`. */
export function streamParts(reply: Reply, calls: readonly IdentifiedCall[]): LanguageModelV4StreamPart[] {
  const split = (kind: "reasoning" | "text", text: string): LanguageModelV4StreamPart[] => {
    if (text === "") return [];
    // A word, or a few characters of a script without spaces. Never splits a surrogate pair.
    const pieces = text.match(/\s{0,64}\S{1,8}|\s{1,64}/gu) ?? [];
    return [
      { type: `${kind}-start`, id: kind },
      ...pieces.map((delta): LanguageModelV4StreamPart => ({ type: `${kind}-delta`, id: kind, delta })),
      { type: `${kind}-end`, id: kind },
    ];
  };
  const callParts = (call: IdentifiedCall): LanguageModelV4StreamPart[] => {
    const { id, name } = call;
    const made = toolCall(call);
    return [
      { type: "tool-input-start", id, toolName: name },
      { type: "tool-input-delta", id, delta: made.input },
      { type: "tool-input-end", id },
      made,
    ];
  };
  return [
    ...split("reasoning", reply.thinking),
    ...split("text", reply.text),
    ...calls.flatMap((call) => callParts(call)),
  ];
}

function toolCall({ id, name, arguments: given }: IdentifiedCall) {
  return { type: "tool-call" as const, toolCallId: id, toolName: name, input: JSON.stringify(given) };
}

/** Estimates usage at four characters per token. */
export function countUsage(prompt: LanguageModelV4Prompt, reply: Reply): LanguageModelV4Usage {
  const tokens = (values: readonly unknown[]) => {
    const texts = values.map((value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")));
    return Math.ceil(texts.reduce((sum, text) => sum + text.length, 0) / 4);
  };
  const text = tokens([reply.text, ...reply.calls.map((call) => call.arguments)]);
  return usageOf({
    input: tokens(prompt.map(({ content }) => content)),
    text,
    reasoning: tokens([reply.thinking]),
  });
}

export function usageOf(tokens: {
  readonly input: number;
  readonly text: number;
  readonly reasoning?: number;
  readonly cacheRead?: number;
}): LanguageModelV4Usage {
  const { input, text, reasoning = 0, cacheRead = 0 } = tokens;
  return {
    inputTokens: { total: input + cacheRead, noCache: input, cacheRead, cacheWrite: 0 },
    outputTokens: { total: text + reasoning, text, reasoning },
  };
}

/** The clock that a model uses for delays. */
export interface ModelClock {
  now(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const realClock: ModelClock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    waitForAbort(signal, (done) => {
      const timer = setTimeout(done, ms);
      return () => clearTimeout(timer);
    }),
};

/** Rejects when the signal is aborted. Resolves only if `start` calls `done`. */
export function waitForAbort(
  signal: AbortSignal | undefined,
  start: (done: () => void) => () => void = () => () => undefined,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted === true) {
    reject(signal.reason);
    return promise;
  }
  const onAbort = () => {
    cancel();
    reject(signal?.reason);
  };
  const cancel = start(() => {
    signal?.removeEventListener("abort", onAbort);
    resolve();
  });
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}

export type StreamParts = AsyncGenerator<LanguageModelV4StreamPart, void, undefined>;

/** Produces parts only as they are read. Canceling the stream aborts `make`. An abort becomes a stream error. */
export function streamOf(
  make: (signal: AbortSignal) => StreamParts,
  { abortSignal }: Pick<LanguageModelV4CallOptions, "abortSignal">,
) {
  const canceled = new AbortController();
  const signal =
    abortSignal === undefined ? canceled.signal : AbortSignal.any([abortSignal, canceled.signal]);
  const parts = make(signal);
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        signal.throwIfAborted();
        const { done, value } = await parts.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => canceled.abort(reason),
    },
    { highWaterMark: 0 },
  );
}

/** The symbols by which the AI SDK recognizes its errors without their class. */
const errorMarks = [Symbol.for("vercel.ai.error"), Symbol.for("vercel.ai.error.AI_APICallError")];

/** An error that the AI SDK treats as an `APICallError`, without loading a package. */
export class ProviderFailure extends Error {
  override readonly name = "AI_APICallError";
  readonly url = "rehearsal:";
  readonly requestBodyValues: JSONObject = {};
  readonly statusCode: number | undefined;
  readonly responseHeaders: Record<string, string>;
  readonly responseBody: string;
  readonly isRetryable: boolean;

  constructor(failure: {
    readonly message: string;
    /** Absent if the server could not be reached. */
    readonly status?: number;
    /** By default, derived from the status, as in the AI SDK. */
    readonly isRetryable?: boolean;
    /** In seconds, as in the header. */
    readonly retryAfter?: string;
  }) {
    const { status, message, isRetryable, retryAfter } = failure;
    super(message);
    this.statusCode = status;
    this.responseHeaders = present({ "retry-after": retryAfter }) as Record<string, string>;
    this.responseBody = JSON.stringify({ error: { message } });
    const isTransient =
      status === undefined || status === 408 || status === 409 || status === 429 || status >= 500;
    this.isRetryable = isRetryable ?? isTransient;
    for (const mark of errorMarks) Object.defineProperty(this, mark, { value: true });
  }
}
