import type { JSONObject, LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { shortHash } from "../../core/short-hash.ts";
import { cutText } from "../../core/text.ts";
import { readSections, sections } from "../../transcript/compaction/check-summary.ts";
import { textTokens } from "../../transcript/text-tokens.ts";
import { answerExchange, answerResults, isReport, noteMessage, summarizeReports } from "./answers.ts";
import type { Conversation, Language } from "./conversation.ts";
import { chooseIn, isHelper, languageOf, readConversation } from "./conversation.ts";
import { doTask } from "./do-task.ts";
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
import { explainItself } from "./request-answers.ts";
import { matchRequests } from "./requests.ts";

/** The number of `fail once` prompts to remember. */
const maxRemembered = 1000;

/** The rehearsal model's clock. Defaults to the real one. */
export interface RehearsalOptions {
  readonly now?: () => number;
  /** Rejects with the signal's reason when it is aborted. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * Creates the model `rehearsal/basic`, which works offline without a key and always gives the same answer to the same
 * request. It understands about a dozen requests in English and Chinese and calls the tools it is offered.
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

/** Schedules each part relative to the start so that timer delays do not add up. */
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

/** Decides on the reply. Throws a provider failure if the request asks for one. */
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
  const choose = chooseIn(languageFor(conversation));
  if (results.length > 0) return answerResults(conversation, choose);
  const exchange = answerExchange(conversation, choose);
  if (exchange !== null) return exchange;
  const matched = matchRequests(request, source);
  if (isReport(conversation, matched.length > 0)) return summarizeReports(conversation, choose);
  for (const { answer, ...found } of matched) {
    const reply = answer({ ...found, conversation, isFirstTime });
    if (reply !== null) return reply;
  }
  return callForcedTool(conversation, options) ?? answerOther(conversation);
}

/** Returns the language of the user's last request. */
function languageFor({ before, request, source }: Conversation): Language {
  const person = before.findLast((message) => message.role === "user" && message.source === null);
  const text = source === null ? request : (person?.text ?? request);
  return matchRequests(text, null)[0]?.language ?? languageOf(text);
}

/** If `toolChoice` is set, calls a tool with the arguments it requires. */
function callForcedTool({ tools }: Conversation, { toolChoice }: LanguageModelV4CallOptions): Reply | null {
  if (toolChoice?.type !== "tool" && toolChoice?.type !== "required") return null;
  const tool = toolChoice.type === "tool" ? tools.find(({ name }) => name === toolChoice.toolName) : tools[0];
  if (tool === undefined) return null;
  return callTools({ name: tool.name, arguments: (fitSchema(tool.inputSchema) ?? {}) as JSONObject });
}

/**
 * In a sub-agent, writes an outline for the task. Otherwise, acknowledges a session's message or explains to a user
 * what the model can do.
 */
function answerOther(conversation: Conversation): Reply {
  const { request, source } = conversation;
  const language = languageOf(request);
  const choose = chooseIn(language);
  if (isHelper(conversation)) {
    const done = doTask({ subject: request, language, choose }, conversation);
    if (done !== null) return done;
  }
  return source === null ? explainItself(conversation, choose) : noteMessage(request, choose);
}

/**
 * Writes the summary for a compaction from lines of the conversation, with every section and within the requested size.
 */

const defaultCharacters = 4000;
const maxCharacters = 6000;
const nothing = "None.";

/** Whether a prompt was built by `summaryPrompt`. */
function isSummaryPrompt(text: string): boolean {
  return (
    text.startsWith("<conversation>") &&
    text.includes("\n## Goal\n") &&
    text.includes("Use exactly these headings")
  );
}

function rehearsedSummary(prompt: string, maxTokens = Number.POSITIVE_INFINITY): string {
  const end = prompt.indexOf("\n</conversation>");
  const conversation = prompt.slice(0, end === -1 ? prompt.length : end).slice("<conversation>\n".length);
  const after = prompt.slice(conversation.length);
  const [, size] = /at most (\d{1,9}) characters/.exec(after) ?? [];
  const asks = messagesOf(conversation, "[User]: ");
  const before = readNotes(after);
  const facts: Readonly<Record<string, readonly string[]>> = {
    goal: [before("goal"), asks[0] ?? ""],
    decisions: [before("decisions")],
    openWork: [messagesOf(conversation, "[Assistant]: ").at(-1) ?? "", before("open work")],
    constraints: [before("constraints")],
    pendingAsks: [asks.at(-1) ?? "", before("pending asks")],
    identifiers: [findIdentifiers(conversation).join(", "), before("exact identifiers")],
    files: [readTag(after, "known-files"), before("files touched")],
  };
  const write = (each: number) =>
    sections.map(({ id, heading }) => `## ${heading}\n${writeFacts(facts[id] ?? [], each)}`).join("\n\n");
  const most = Math.min(Number(size ?? defaultCharacters), maxCharacters);
  let each = Math.floor(most / sections.length);
  let text = write(each);
  while (each > 0 && (text.length > most || textTokens(text) > maxTokens)) {
    each = Math.floor(each * 0.7);
    text = write(each);
  }
  return text;
}

/** Returns a list of at most `longest` characters, divided evenly among the facts. */
function writeFacts(facts: readonly string[], longest: number): string {
  const known = [...new Set(facts.map(toLine).filter((fact) => fact !== "" && fact !== nothing))];
  const share = Math.floor(longest / Math.max(1, known.length));
  const lines = known
    .map((fact) => cutText(fact, Math.max(0, share - 4)).trim())
    .filter((line) => line !== "");
  return lines.length === 0 ? nothing : lines.map((line) => `- ${line}`).join("\n");
}

/** Returns the text on one line, without characters that would start a heading or a nested list. */
function toLine(text: string): string {
  return text
    .slice(0, maxCharacters)
    .replace(/\s+/g, " ")
    .replace(/^(?:[-#>] ?)+/, "")
    .trim();
}

/** Returns the messages with this mark. A message ends where the next one begins. */
function messagesOf(conversation: string, mark: string): readonly string[] {
  const texts: string[] = [];
  let isOpen = false;
  for (const line of conversation.split("\n")) {
    const isMark = /^\[[^\]]{1,200}\]: /.test(line);
    if (isMark) isOpen = line.startsWith(mark);
    if (!isOpen) continue;
    if (isMark) texts.push(line.slice(mark.length));
    else if ((texts.at(-1)?.length ?? 0) < maxCharacters) texts.push(`${texts.pop() ?? ""}\n${line}`);
  }
  return texts;
}

/** Returns the sections of the previous summary, by heading. */
function readNotes(after: string): (heading: string) => string {
  const found = readSections(readTag(after, "previous-summary") || readTag(after, "later-summary"));
  return (heading) => found.get(heading)?.trim() ?? "";
}

function readTag(text: string, tag: string): string {
  const from = text.indexOf(`<${tag}>\n`);
  const to = text.indexOf(`\n</${tag}>`);
  return from === -1 || to < from ? "" : text.slice(from + tag.length + 3, to);
}

/** Finds paths, versions, numbers, and other words that contain more than letters. */
function findIdentifiers(conversation: string): readonly string[] {
  const words = conversation.slice(-20_000).match(/[\w./:@-]{3,80}/g) ?? [];
  const names = words.filter((word) => /\d|\w[./:@_]\w/.test(word));
  return [...new Set(names)].slice(-20);
}
