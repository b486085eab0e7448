import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { SkeinError } from "../../core/errors.ts";
import type { NamedCall } from "./play.ts";
import { contentOf, countedUsage, finishOf, streamParts, usageOf, withIds } from "./play.ts";
import { ProviderFailure } from "./provider-failure.ts";
import type { Reply } from "./reply.ts";
import type { Parts, Waiting } from "./waiting.ts";
import { realWaiting, stalled, streamOf } from "./waiting.ts";

/** What a scripted model does at one request. Thinking comes first, then the text, then the calls, then what goes wrong. */
export interface ModelStep {
  readonly thinking?: string;
  readonly text?: string;
  readonly calls?: readonly {
    readonly name: string;
    readonly arguments?: JSONObject;
    /** Left out: one that is not yet in the conversation. */
    readonly id?: string;
  }[];
  /** Tokens; left out: four characters are one. */
  readonly usage?: { readonly input: number; readonly output: number; readonly cacheRead?: number };
  /** Left out: `tool-calls` where there are calls, else `stop`. */
  readonly finish?: "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other";
  /** Between two parts of a stream. */
  readonly delayMs?: number;
  /** With nothing said before it the request itself fails, else the stream. Without a status, the network. */
  readonly error?: {
    readonly message: string;
    readonly status?: number;
    /** Left out: by the status. */
    readonly retryable?: boolean;
    readonly retryAfter?: string;
  };
  /** Says what it has to say and then nothing more, until it is aborted. */
  readonly stall?: boolean;
  /** The stream ends without its end. */
  readonly cut?: boolean;
}

/** A model that plays a script, with every request that it got. */
export interface ScriptedModel extends LanguageModelV4 {
  readonly requests: readonly LanguageModelV4CallOptions[];
}

/**
 * A model for tests, `rehearsal/script`: one step for each request, or a function that decides on the request. A script
 * that has come to its end is an error.
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
  waiting: Partial<Waiting> = {},
): ScriptedModel {
  const requests: LanguageModelV4CallOptions[] = [];
  const time = { ...realWaiting, ...waiting };
  const take = (options: LanguageModelV4CallOptions): Taken => {
    const index = requests.push(options) - 1;
    options.abortSignal?.throwIfAborted();
    const step = typeof script === "function" ? script(options, index) : script[index];
    if (step === undefined) throw exhausted(requests.length);
    const taken = takenOf(step, options);
    if (step.error !== undefined && taken.content.length === 0) throw failureOf(step.error);
    return taken;
  };
  return {
    specificationVersion: "v4",
    provider: "rehearsal",
    modelId: "script",
    supportedUrls: {},
    requests,
    async doGenerate(options) {
      const { step, content, end } = take(options);
      if (step.stall === true) await stalled(options.abortSignal);
      if (step.error !== undefined) throw failureOf(step.error);
      if (step.cut === true) throw new ProviderFailure({ message: "The connection was cut." });
      return { content, ...end, warnings: [] };
    },
    async doStream(options) {
      const taken = take(options);
      return { stream: streamOf((signal) => played(taken, time, signal), options.abortSignal) };
    },
  };
}

interface Taken {
  readonly step: ModelStep;
  readonly content: ReturnType<typeof contentOf>;
  readonly parts: readonly LanguageModelV4StreamPart[];
  readonly end: Pick<Extract<LanguageModelV4StreamPart, { type: "finish" }>, "usage" | "finishReason">;
}

function takenOf(step: ModelStep, options: LanguageModelV4CallOptions): Taken {
  const asked = (step.calls ?? []).map((call) => ({ ...call, arguments: call.arguments ?? {} }));
  const reply: Reply = { thinking: step.thinking ?? "", text: step.text ?? "", calls: asked, spreadMs: 0 };
  const named: NamedCall[] = withIds(options.prompt, asked).map((call, at) => ({
    ...call,
    id: asked[at]?.id ?? call.id,
  }));
  const { usage, finish } = step;
  return {
    step,
    content: contentOf(reply, named),
    parts: streamParts(reply, named),
    end: {
      usage:
        usage === undefined
          ? usageOf(options, reply)
          : countedUsage(usage.input, usage.output, 0, usage.cacheRead),
      finishReason: finish === undefined ? finishOf(reply) : { unified: finish, raw: finish },
    },
  };
}

async function* played({ step, parts, end }: Taken, time: Waiting, signal: AbortSignal): Parts {
  yield { type: "stream-start", warnings: [] };
  for (const part of parts) {
    if (step.delayMs !== undefined) await time.sleep(step.delayMs, signal);
    yield part;
  }
  if (step.stall === true) await stalled(signal);
  if (step.cut === true) return;
  if (step.error === undefined) yield { type: "finish", ...end };
  else yield { type: "error", error: failureOf(step.error) };
}

function failureOf({ retryable, ...error }: NonNullable<ModelStep["error"]>): ProviderFailure {
  return new ProviderFailure({ ...error, ...(retryable === undefined ? {} : { isRetryable: retryable }) });
}

function exhausted(request: number): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: `The script of the model has ${request - 1} steps, and this is request ${request}`,
    advice: "Add a step, or find out why the model is asked once more",
  });
}
