import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { TurnModel } from "../../src/agents/contract.ts";
import { resolveTranscriptPolicy } from "../../src/index.ts";

/** An AI SDK model that plays scripted parts, without a server. */

type Part = LanguageModelV4StreamPart;
/** Parts, a request error, or a function that decides based on the request. */
export type Scene =
  | readonly Part[]
  | Error
  | ((options: LanguageModelV4CallOptions) => readonly Part[] | Error);

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

export function finish(unified: LanguageModelV4FinishReason["unified"] = "stop", raw?: string): Part {
  return { type: "finish", finishReason: { unified, raw }, usage };
}

export const said = (words: string, id = "1"): Part[] => [
  { type: "text-start", id },
  { type: "text-delta", id, delta: words },
  { type: "text-end", id },
];

export const says = (words: string): Part[] => [...said(words), finish()];

export const call = (toolCallId: string, toolName: string, input: unknown = {}): Part => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: typeof input === "string" ? input : JSON.stringify(input),
});

export const callsFor = (...parts: Part[]): Part[] => [...parts, finish("tool-calls")];

/** Errors as the SDK throws them. */
export function apiError(
  statusCode: number,
  message: string,
  more: { responseHeaders?: Record<string, string>; responseBody?: string } = {},
): Error {
  return Object.assign(new Error(message), { name: "AI_APICallError", statusCode, ...more });
}

/** A stream that stays silent forever after its parts. */
export const silent: Part = { type: "raw", rawValue: "silent" };

export interface ScriptedModel extends TurnModel {
  readonly asked: LanguageModelV4CallOptions[];
}

export function scriptedModel(scenes: readonly Scene[], more: Partial<TurnModel> = {}): ScriptedModel {
  const asked: LanguageModelV4CallOptions[] = [];
  const waiting = [...scenes];
  const doStream: LanguageModelV4["doStream"] = async (options) => {
    asked.push(options);
    const next = waiting.shift() ?? says("The script has ended.");
    const scene = typeof next === "function" ? next(options) : next;
    if (scene instanceof Error) throw scene;
    return { stream: streamOf(scene as readonly Part[]) };
  };
  const policy = resolveTranscriptPolicy({ provider: "anthropic", model: "claude-sonnet-4-5" });
  return {
    asked,
    provider: policy.provider,
    model: policy.model,
    policy,
    info: {},
    price: null,
    open: async () => ({ doStream }),
    ...more,
  };
}

/** One part per pull, so that an abort finds the stream in the expected state. */
function streamOf(parts: readonly Part[]): ReadableStream<Part> {
  const waiting = [...parts];
  return new ReadableStream<Part>(
    {
      pull: (controller) => {
        const part = waiting.shift();
        if (part === silent) return new Promise(() => undefined);
        if (part === undefined) controller.close();
        else controller.enqueue(part);
        return undefined;
      },
    },
    { highWaterMark: 0 },
  );
}
