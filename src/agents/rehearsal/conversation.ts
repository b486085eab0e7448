import type {
  JSONValue,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { cutText } from "../../core/text.ts";
import { parseJson } from "./fit-schema.ts";

/** The parts of a prompt that the rehearsal model uses. */
export interface Conversation {
  /** The last message from a user, another session or Skein, without its header line. */
  readonly request: string;
  /** The session that sent the request, or `null` if a user sent it. */
  readonly source: Source | null;
  readonly system: string;
  /** The last tool results after the request. Empty if the request is new. */
  readonly results: readonly ToolResult[];
  /** The number of tool messages after the request. */
  readonly rounds: number;
  /** The messages before the request, oldest first. */
  readonly before: readonly EarlierMessage[];
  /** `true` if the request directly follows a yield and therefore woke the turn. */
  readonly isWoken: boolean;
  /** The results of `sessions_spawn` in the turn before the request. */
  readonly spawned: readonly ToolResult[];
  readonly tools: readonly LanguageModelV4FunctionTool[];
}

export interface Source {
  readonly session: string;
  readonly tool: string;
  /**
   * `true` if the text was fenced, which means that it is the session's own text rather than an announcement about the
   * session.
   */
  readonly isQuoted: boolean;
}

export interface EarlierMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly source: Source | null;
  /** The names of the tools that the message calls. */
  readonly called: readonly string[];
}

export interface ToolResult {
  readonly name: string;
  readonly text: string;
  /** The parsed text if it is JSON, otherwise `undefined`. */
  readonly value: JSONValue | undefined;
  readonly isError: boolean;
}

export function readConversation(options: LanguageModelV4CallOptions): Conversation {
  const { prompt, tools = [], toolChoice } = options;
  const last = prompt.findLastIndex(({ role }) => role === "user");
  // Sub-agent reports that arrived together are treated as one request.
  let first = Math.max(0, last);
  while (isReport(prompt[first]) && isReport(prompt[first - 1])) first -= 1;
  const requests = prompt.slice(first, last + 1).map(readMessage);
  const after = prompt.slice(last + 1);
  const before = prompt.slice(0, first).filter(({ role }) => role !== "system");
  const turnStart = before.findLastIndex(({ role }) => role === "user") + 1;
  return {
    request: requests.map(({ text }) => text).join("\n"),
    source: requests.at(-1)?.source ?? null,
    system: prompt.flatMap((each) => (each.role === "system" ? [each.content] : [])).join("\n"),
    results: after.slice(after.findLastIndex(({ role }) => role !== "tool") + 1).flatMap(readResults),
    rounds: after.filter(({ role }) => role === "tool").length,
    before: before.map(readMessage),
    isWoken: readResults(before.at(-1)).some(({ name }) => name === "sessions_yield"),
    spawned: before
      .slice(turnStart)
      .flatMap(readResults)
      .filter(({ name }) => name === "sessions_spawn"),
    tools: toolChoice?.type === "none" ? [] : tools.filter((tool) => tool.type === "function"),
  };
}

/** Whether a message is Skein's announcement about a sub-agent. The sub-agent's own text is quoted. */
function isReport(message: LanguageModelV4Prompt[number] | undefined): boolean {
  const source = message?.role === "user" ? readMessage(message).source : null;
  return source?.tool === "sessions_spawn" && !source.isQuoted;
}

function readResults(message: LanguageModelV4Message | undefined): readonly ToolResult[] {
  if (message?.role !== "tool") return [];
  return message.content.flatMap((part) => (part.type === "tool-result" ? [readResult(part)] : []));
}

function readResult({ toolName: name, output }: LanguageModelV4ToolResultPart): ToolResult {
  if (output.type === "execution-denied")
    return { name, text: output.reason ?? "denied", value: undefined, isError: true };
  const isError = output.type === "error-json" || output.type === "error-text";
  if (output.type === "json" || output.type === "error-json")
    return { name, text: JSON.stringify(output.value), value: output.value, isError };
  const text =
    output.type === "content"
      ? output.value.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n")
      : output.value;
  // The transcript adds this prefix to a failed result if the provider has no field for failures.
  const json = text.replace(/^The tool failed: /, "");
  return { name, text, value: /^\s{0,64}[[{]/.test(json) ? parseJson(json) : undefined, isError };
}

function readMessage(message: LanguageModelV4Message): EarlierMessage {
  if (message.role === "system") return { role: "user", text: message.content, source: null, called: [] };
  if (message.role === "tool") {
    const text = readResults(message)
      .map((result) => result.text)
      .join("\n");
    return { role: "tool", text, source: null, called: [] };
  }
  const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  if (message.role === "user") {
    // If the transcript contains this note, only the last text is the request.
    const unanswered = "[This message was not answered before the next one came.]";
    const given = texts.includes(unanswered) ? texts.slice(-1) : texts;
    return { role: "user", ...readHeader(given.join("\n")), called: [] };
  }
  const called = message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolName] : []));
  return { role: "assistant", text: texts.join("\n").trim(), source: null, called };
}

const headerMark = "[Inter-session message]";
/** Matches the instructions from a Skein instance that uses this one as its ACP agent. */
const instructions =
  /^\[Skein\] (?:Instructions for you,.*?\[Skein\] End of the instructions\.|The instructions [^\n]*)\s+/s;
const taskMark = "\n\n[Subagent Task]: ";

/** Matches the prompt of a retried run, which quotes the message to answer because later messages might follow it. */
const retried =
  /^\[Skein\] An earlier message was never answered because its run did not finish\. Answer it now: (?<said>".*")$/s;

/**
 * Removes the header line from a message that another session sent. An escaped header comes from another Skein instance
 * that uses this one as its agent. It is not trusted, and the message is treated as a user's.
 */
function readHeader(given: string): Pick<EarlierMessage, "text" | "source"> {
  const said = parseJson(retried.exec(given.trim())?.groups?.said ?? "");
  const whole = (typeof said === "string" ? said : given).replace(instructions, "");
  const isEscaped = whole.startsWith(`\\${headerMark}`) && whole.includes("\n");
  if (!whole.startsWith(headerMark) && !isEscaped) return { text: readTask(whole.trim()), source: null };
  const end = whole.indexOf("\n");
  const header = end === -1 ? whole : whole.slice(0, end);
  const body = end === -1 ? "" : whole.slice(end + 1).trim();
  const quoted = /^(?<fence>`{3,64}|~{3,64})\n(?<text>.*)\n\k<fence>$/s.exec(body)?.groups?.text;
  const field = (name: string) => {
    const pattern = new RegExp(` ${name}=("(?:[^"\\\\]|\\\\.){0,2000}"|[^\\s"]{1,2000})`);
    return (pattern.exec(header)?.[1] ?? "").replace(/^"|"$/g, "");
  };
  const source = {
    session: field("sourceSession"),
    tool: field("sourceTool"),
    isQuoted: quoted !== undefined,
  };
  return { text: readTask(quoted?.trim() ?? body), source: isEscaped ? null : source };
}

/** Returns the task of a spawned session, without the surrounding context. */
function readTask(text: string): string {
  const at = text.startsWith("[Subagent Context]") ? text.indexOf(taskMark) : -1;
  return at === -1 ? text : text.slice(at + taskMark.length).trim();
}

/** Matches a system prompt that makes the agent a sub-agent, but not one that lets it spawn sub-agents. */
const helperSystem = /\byou are (?:a|an|the) [*_]{0,3}sub-?agent|^#{1,6} sub-?agent/im;

/** Whether this session was spawned for a task. */
export function isHelper({ source, system }: Conversation): boolean {
  return source?.tool === "sessions_spawn" || helperSystem.test(system.slice(0, 20_000));
}

/** Whether the model has already introduced itself. A summary counts, because it might have replaced that answer. */
export function hasIntroduced({ before }: Conversation): boolean {
  return before.some(({ role, text }) =>
    role === "assistant" ? /rehearsal model|排练模型/.test(text) : text.includes("\n<summary>\n"),
  );
}

/** The model understands requests in two languages and answers in the request's language. */
export type Language = "en" | "zh";

/** Returns the text in the language of the answer. */
export type Choose = (en: string, zh: string) => string;

export function chooseIn(language: Language): Choose {
  return (en, zh) => (language === "zh" ? zh : en);
}

export function languageOf(text: string): Language {
  const head = text.slice(0, 2000);
  const han = head.match(/\p{Script=Han}/gu)?.length ?? 0;
  const latin = head.match(/[A-Za-z]+/g)?.length ?? 0;
  return han > 0 && han >= latin ? "zh" : "en";
}

/** Returns the text on one line, with at most `maxLength` characters. */
export function shorten(text: string, maxLength = 300): string {
  const line = text
    .slice(0, maxLength * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= maxLength ? line : `${cutText(line, maxLength)}…`;
}

export function quote(text: string, language: Language, maxLength = 200): string {
  const short = shorten(text, maxLength);
  return language === "zh" ? `「${short}」` : `“${short}”`;
}
