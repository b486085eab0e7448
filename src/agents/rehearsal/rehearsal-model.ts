import type { JSONObject, LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { shortHash } from "../../core/short-hash.ts";
import { answerExchange, answerResults, isReport, noteMessage, summarizeReports } from "./answers.ts";
import type { Conversation, Language } from "./conversation.ts";
import { languageOf, readConversation } from "./conversation.ts";
import { fitSchema } from "./fit-schema.ts";
import type { ModelClock, Reply, StreamParts } from "./play-reply.ts";
import {
  callTools,
  contentOf,
  countUsage,
  finishReasonOf,
  identifyCalls,
  realClock,
  say,
  streamOf,
  streamParts,
} from "./play-reply.ts";
import { doTask, explainItself } from "./request-answers.ts";
import { matchRequests } from "./requests.ts";
import { isSummaryPrompt, rehearsedSummary } from "./summary.ts";

/** The number of prompts of `fail once` that are remembered. */
const maxRemembered = 1000;

/** The clock of the rehearsal model. Default: the real one. */
export interface RehearsalOptions {
  readonly now?: () => number;
  /** Rejects with the signal's reason when it is aborted. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * Creates the model `rehearsal/basic`: offline, without a key, and with the same answer to the same request. It
 * understands about a dozen requests in English and Chinese, and calls the tools that it is offered.
 *
 * @example
 * ```ts
 * import { generateText } from "ai";
 * import { rehearsalModel } from "skein/testing";
 * const { text } = await generateText({ model: rehearsalModel(), prompt: "repeat good morning" });
 * console.log(text); // good morning
 * ```
 */
export function rehearsalModel(options: RehearsalOptions = {}): LanguageModelV4 {
  const clock: ModelClock = { ...realClock, ...options };
  const failed = new Set<string>();
  const isFirstTime = (request: LanguageModelV4CallOptions) => () => {
    const name = shortHash(JSON.stringify(request.prompt));
    if (failed.has(name)) return false;
    if (failed.size >= maxRemembered) failed.clear();
    failed.add(name);
    return true;
  };
  const replyTo = (request: LanguageModelV4CallOptions) => {
    request.abortSignal?.throwIfAborted();
    return decideReply(request, isFirstTime(request));
  };
  return {
    specificationVersion: "v4",
    provider: "rehearsal",
    modelId: "basic",
    supportedUrls: {},
    async doGenerate(request) {
      const reply = replyTo(request);
      if (reply.spreadMs > 0) await clock.sleep(reply.spreadMs, request.abortSignal);
      const content = contentOf(reply, identifyCalls(request.prompt, reply.calls));
      const usage = countUsage(request.prompt, reply);
      return { content, finishReason: finishReasonOf(reply), usage, warnings: [] };
    },
    async doStream(request) {
      const reply = replyTo(request);
      return { stream: streamOf((signal) => streamReply(request, reply, clock, signal), request) };
    },
  };
}

/** Each part has its time from the start, so that late timers do not add up. */
async function* streamReply(
  { prompt }: LanguageModelV4CallOptions,
  reply: Reply,
  clock: ModelClock,
  signal: AbortSignal,
): StreamParts {
  const parts = streamParts(reply, identifyCalls(prompt, reply.calls));
  const start = clock.now();
  yield { type: "stream-start", warnings: [] };
  for (const [index, part] of parts.entries()) {
    const delayMs = start + (reply.spreadMs * (index + 1)) / parts.length - clock.now();
    if (reply.spreadMs > 0 && delayMs > 0) await clock.sleep(delayMs, signal);
    yield part;
  }
  yield { type: "finish", finishReason: finishReasonOf(reply), usage: countUsage(prompt, reply) };
}

/** Throws where a provider would fail, if the request asks for it. */
function decideReply(options: LanguageModelV4CallOptions, isFirstTime: () => boolean): Reply {
  const conversation = readConversation(options);
  const { request } = conversation;
  if (isSummaryPrompt(request)) return say(rehearsedSummary(request, options.maxOutputTokens));
  const reply = answerConversation(conversation, options, isFirstTime);
  if (options.responseFormat?.type !== "json" || reply.calls.length > 0) return reply;
  const { schema } = options.responseFormat;
  return {
    ...reply,
    text: JSON.stringify(schema === undefined ? { answer: reply.text } : fitSchema(schema)),
  };
}

function answerConversation(
  conversation: Conversation,
  options: LanguageModelV4CallOptions,
  isFirstTime: () => boolean,
): Reply {
  const { request, results, source } = conversation;
  const language = languageFor(conversation);
  if (results.length > 0) return answerResults(conversation, language);
  const exchange = answerExchange(conversation, language);
  if (exchange !== null) return exchange;
  const matched = matchRequests(request, source);
  if (isReport(conversation, matched.length > 0)) return summarizeReports(conversation, language);
  for (const { answer, ...found } of matched) {
    const reply = answer({ ...found, conversation, isFirstTime });
    if (reply !== null) return reply;
  }
  return callForcedTool(conversation, options) ?? answerOther(conversation);
}

/** The language of the last request of a person. */
function languageFor({ before, request, source }: Conversation): Language {
  const person = before.findLast((message) => message.role === "user" && message.source === null);
  const text = source === null ? request : (person?.text ?? request);
  return matchRequests(text, null)[0]?.language ?? languageOf(text);
}

/** With `toolChoice`, a tool is called with the arguments that it requires. */
function callForcedTool({ tools }: Conversation, { toolChoice }: LanguageModelV4CallOptions): Reply | null {
  if (toolChoice?.type !== "tool" && toolChoice?.type !== "required") return null;
  const tool = toolChoice.type === "tool" ? tools.find(({ name }) => name === toolChoice.toolName) : tools[0];
  if (tool === undefined) return null;
  return callTools({ name: tool.name, arguments: (fitSchema(tool.inputSchema) ?? {}) as JSONObject });
}

/** The system prompt says that the agent is a sub-agent, not that it can have some. */
const childSystem = /\byou are (?:a|an|the) [*_]{0,3}sub-?agent|^#{1,6} sub-?agent/im;

/** A helper does any task; a message of another session is noted. */
function answerOther({ request, source, system }: Conversation): Reply {
  const language = languageOf(request);
  const isChild = source?.tool === "sessions_spawn" || childSystem.test(system.slice(0, 20_000));
  if (isChild) return doTask({ language, rest: request }) ?? explainItself(request, language);
  return source === null ? explainItself(request, language) : noteMessage(request, language);
}
