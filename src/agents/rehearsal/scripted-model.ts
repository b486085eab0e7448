import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { SkeinError } from "../../core/errors.ts";
import type { ModelClock, Reply, StreamParts } from "./play-reply.ts";
import {
  contentOf,
  countUsage,
  finishReasonOf,
  identifyCalls,
  ProviderFailure,
  realClock,
  streamOf,
  streamParts,
  usageOf,
  waitForAbort,
} from "./play-reply.ts";

/** A scripted model's answer to one request: thinking, then text, then calls, then a failure. */
export interface ModelStep {
  readonly thinking?: string;
  readonly text?: string;
  readonly calls?: readonly {
    readonly name: string;
    readonly arguments?: JSONObject;
    /** Defaults to an ID that is not yet in the conversation. */
    readonly id?: string;
  }[];
  /** In tokens. By default, estimated at four characters per token. */
  readonly usage?: { readonly input: number; readonly output: number; readonly cacheRead?: number };
  /** Defaults to `tool-calls` if there are calls, otherwise to `stop`. */
  readonly finish?: "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other";
  /** The delay before each part of a stream. */
  readonly delayMs?: number;
  /**
   * Fails the stream after the step's content. If the answer is not streamed or the step has no content, fails the
   * request. Without a status, the failure is a network error.
   */
  readonly error?: {
    readonly message: string;
    readonly status?: number;
    /** By default, derived from the status. */
    readonly retryable?: boolean;
    readonly retryAfter?: string;
  };
  /** `true` if the stream stays open after the answer until the request is aborted. */
  readonly stall?: boolean;
  /** `true` if the stream ends without a `finish` part. */
  readonly cut?: boolean;
}

/** A model that plays a script and records its requests. */
export interface ScriptedModel extends LanguageModelV4 {
  readonly requests: readonly LanguageModelV4CallOptions[];
}

/**
 * Creates the model `rehearsal/script`, for tests. It answers each request with the next step, or with the result of a
 * function. A request after the last step is an error.
 *
 * @example
 * ```ts
 * import { generateText } from "ai";
 * import { scriptedModel } from "skein/testing";
 * const model = scriptedModel([{ text: "Good morning." }, { error: { status: 503, message: "Busy" } }]);
 * const { text } = await generateText({ model, prompt: "Hello" });
 * console.log(text, model.requests[0]?.prompt);
 * ```
 */
export function scriptedModel(
  script: readonly ModelStep[] | ((request: LanguageModelV4CallOptions, index: number) => ModelStep),
  clock: Partial<ModelClock> = {},
): ScriptedModel {
  const requests: LanguageModelV4CallOptions[] = [];
  const time = { ...realClock, ...clock };
  const nextStep = (options: LanguageModelV4CallOptions): PlayedStep => {
    const index = requests.push(options) - 1;
    options.abortSignal?.throwIfAborted();
    const step = typeof script === "function" ? script(options, index) : script[index];
    if (step === undefined) throw scriptEnded(requests.length);
    const played = readStep(step, options);
    if (step.error !== undefined && played.content.length === 0) throw failureOf(step.error);
    return played;
  };
  return {
    specificationVersion: "v4",
    provider: "rehearsal",
    modelId: "script",
    supportedUrls: {},
    requests,
    async doGenerate(options) {
      const { step, content, end } = nextStep(options);
      if (step.stall === true) await waitForAbort(options.abortSignal);
      if (step.error !== undefined) throw failureOf(step.error);
      if (step.cut === true) throw new ProviderFailure({ message: "The connection was cut." });
      return { content, ...end, warnings: [] };
    },
    async doStream(options) {
      const played = nextStep(options);
      return { stream: streamOf((signal) => playStep(played, time, signal), options) };
    },
  };
}

interface PlayedStep {
  readonly step: ModelStep;
  readonly content: ReturnType<typeof contentOf>;
  readonly parts: readonly LanguageModelV4StreamPart[];
  readonly end: Pick<Extract<LanguageModelV4StreamPart, { type: "finish" }>, "usage" | "finishReason">;
}

function readStep(step: ModelStep, options: LanguageModelV4CallOptions): PlayedStep {
  const calls = (step.calls ?? []).map((call) => ({ ...call, arguments: call.arguments ?? {} }));
  const reply: Reply = { thinking: step.thinking ?? "", text: step.text ?? "", calls, spreadMs: 0 };
  const identified = identifyCalls(options.prompt, calls).map((call, at) => ({
    ...call,
    id: calls[at]?.id ?? call.id,
  }));
  const { usage, finish } = step;
  return {
    step,
    content: contentOf(reply, identified),
    parts: streamParts(reply, identified),
    end: {
      usage:
        usage === undefined ? countUsage(options.prompt, reply) : usageOf({ ...usage, text: usage.output }),
      finishReason: finish === undefined ? finishReasonOf(reply) : { unified: finish, raw: finish },
    },
  };
}

async function* playStep(
  { step, parts, end }: PlayedStep,
  time: ModelClock,
  signal: AbortSignal,
): StreamParts {
  yield { type: "stream-start", warnings: [] };
  for (const part of parts) {
    if (step.delayMs !== undefined) await time.sleep(step.delayMs, signal);
    yield part;
  }
  if (step.stall === true) await waitForAbort(signal);
  if (step.cut === true) return;
  if (step.error === undefined) yield { type: "finish", ...end };
  else yield { type: "error", error: failureOf(step.error) };
}

function failureOf({ retryable, ...error }: NonNullable<ModelStep["error"]>): ProviderFailure {
  return new ProviderFailure({ ...error, ...(retryable === undefined ? {} : { isRetryable: retryable }) });
}

function scriptEnded(request: number): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: `The model's script has ${request - 1} steps, but this is request ${request}`,
    advice: "Add a step, or find out why the model received another request",
  });
}
