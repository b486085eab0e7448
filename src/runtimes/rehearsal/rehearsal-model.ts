import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { shortHash } from "../../core/short-hash.ts";
import { decide } from "./decide.ts";
import { contentOf, finishOf, streamParts, usageOf, withIds } from "./play.ts";
import type { Reply } from "./reply.ts";
import type { Parts, Waiting } from "./waiting.ts";
import { realWaiting, streamOf } from "./waiting.ts";

/** How many requests to fail once are remembered. */
const mostRemembered = 1000;

/** How the time passes for the rehearsal model; left out: as it does. */
export interface RehearsalOptions {
  readonly now?: () => number;
  /** Rejects with the signal's reason when it is aborted. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * The model `rehearsal/basic`: offline, without a key, and the same answer to the same request. It understands about a
 * dozen requests in English and Chinese, and does them by calling the tools that it is offered.
 *
 * @example
 * ```ts
 * import { generateText } from "ai";
 * import { rehearsalModel } from "skein/testing";
 * const { text } = await generateText({ model: rehearsalModel(), prompt: "count the words in one two three" });
 * console.log(text); // 3 words, 13 characters.
 * ```
 */
export function rehearsalModel(options: RehearsalOptions = {}): LanguageModelV4 {
  const time: Waiting = { ...realWaiting, ...options };
  const failed = new Set<string>();
  const isFirstTime = (request: LanguageModelV4CallOptions) => () => {
    const name = shortHash(JSON.stringify(request.prompt));
    if (failed.has(name)) return false;
    if (failed.size >= mostRemembered) failed.clear();
    failed.add(name);
    return true;
  };
  const replyTo = (request: LanguageModelV4CallOptions) => {
    request.abortSignal?.throwIfAborted();
    return decide(request, isFirstTime(request));
  };
  return {
    specificationVersion: "v4",
    provider: "rehearsal",
    modelId: "basic",
    supportedUrls: {},
    async doGenerate(request) {
      const reply = replyTo(request);
      if (reply.spreadMs > 0) await time.sleep(reply.spreadMs, request.abortSignal);
      const content = contentOf(reply, withIds(request.prompt, reply.calls));
      return { content, finishReason: finishOf(reply), usage: usageOf(request, reply), warnings: [] };
    },
    async doStream(request) {
      const reply = replyTo(request);
      return { stream: streamOf((signal) => played(request, reply, time, signal), request.abortSignal) };
    },
  };
}

/** Each part at its time from the beginning on, so that late timers do not add up. */
async function* played(
  request: LanguageModelV4CallOptions,
  reply: Reply,
  time: Waiting,
  signal: AbortSignal,
): Parts {
  const parts = streamParts(reply, withIds(request.prompt, reply.calls));
  const began = time.now();
  yield { type: "stream-start", warnings: [] };
  for (const [index, part] of parts.entries()) {
    const due = began + (reply.spreadMs * (index + 1)) / parts.length;
    const left = due - time.now();
    if (reply.spreadMs > 0 && left > 0) await time.sleep(left, signal);
    yield part;
  }
  yield { type: "finish", finishReason: finishOf(reply), usage: usageOf(request, reply) };
}
