import type {
  JSONValue,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { parsedJson } from "./json.ts";

/** What a request comes to, as far as the rehearsal model is concerned. */
export interface Conversation {
  /** What was said last by a person, by another session, or by the system; without the line that says whom it is from. */
  readonly request: string;
  /** The session that said it; `null`: a person, or nobody knows. */
  readonly source: Source | null;
  readonly system: string;
  /** What the tools answered since; empty: the request is new. */
  readonly results: readonly Result[];
  /** How often tools were called for it. */
  readonly rounds: number;
  /** What was said before the request, by whom, oldest first. */
  readonly before: readonly Earlier[];
  /** The request came directly behind a yield: the turn was asleep. */
  readonly isWoken: boolean;
  /** What the spawns of the turn that slept were answered. */
  readonly spawned: readonly Result[];
  readonly tools: readonly LanguageModelV4FunctionTool[];
}

export interface Source {
  readonly session: string;
  readonly tool: string;
  /** Its text was fenced: words of the session itself, and no announcement about it. */
  readonly isQuoted: boolean;
}

export interface Earlier {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly source: Source | null;
  /** The calls of an assistant's message, by name. */
  readonly called: readonly string[];
}

export interface Result {
  readonly name: string;
  readonly text: string;
  /** The same, where it is JSON. */
  readonly value: JSONValue | undefined;
  readonly isError: boolean;
}

export function conversationOf({ prompt, tools = [], toolChoice }: LanguageModelV4CallOptions): Conversation {
  const last = prompt.findLastIndex(({ role }) => role === "user");
  const at = firstOfArrivals(prompt, last);
  const { source } = said(prompt[last]);
  const request = prompt
    .slice(at, last + 1)
    .map((message) => said(message).text)
    .join("\n");
  const behind = prompt.slice(last + 1);
  const earlier = prompt.slice(0, Math.max(0, at)).filter(({ role }) => role !== "system");
  return {
    request,
    source,
    system: prompt.flatMap((each) => (each.role === "system" ? [each.content] : [])).join("\n"),
    results: lastResults(behind),
    rounds: behind.filter(({ role }) => role === "tool").length,
    before: earlier.map(earlierOf),
    isWoken: resultsOf(earlier.at(-1)).some(({ name }) => name === "sessions_yield"),
    spawned: spawnedIn(earlier),
    tools: toolChoice?.type === "none" ? [] : tools.filter((tool) => tool.type === "function"),
  };
}

/** Reports of helpers that came together are one request. */
function firstOfArrivals(prompt: LanguageModelV4Prompt, last: number): number {
  let at = last;
  while (isReport(prompt[at]) && isReport(prompt[at - 1])) at -= 1;
  return Math.max(0, at);
}

/** An announcement of Skein's; what a session says itself is quoted. */
function isReport(message: LanguageModelV4Message | undefined): boolean {
  const source = message?.role === "user" ? said(message).source : null;
  return source?.tool === "sessions_spawn" && !source.isQuoted;
}

/** Since somebody last said something. */
function spawnedIn(earlier: LanguageModelV4Prompt): readonly Result[] {
  const from = earlier.findLastIndex(({ role }) => role === "user") + 1;
  return earlier
    .slice(from)
    .flatMap(resultsOf)
    .filter(({ name }) => name === "sessions_spawn");
}

/** Those of the tool messages at the end. */
function lastResults(behind: LanguageModelV4Prompt): readonly Result[] {
  const from = behind.findLastIndex(({ role }) => role !== "tool") + 1;
  return behind.slice(from).flatMap(resultsOf);
}

export function resultsOf(message: LanguageModelV4Message | undefined): readonly Result[] {
  if (message?.role !== "tool") return [];
  return message.content.flatMap((part) => (part.type === "tool-result" ? [resultOf(part)] : []));
}

function resultOf({ toolName: name, output }: LanguageModelV4ToolResultPart): Result {
  switch (output.type) {
    case "json":
    case "error-json":
      return {
        name,
        text: JSON.stringify(output.value),
        value: output.value,
        isError: output.type !== "json",
      };
    case "execution-denied":
      return { name, text: output.reason ?? "denied", value: undefined, isError: true };
    case "content": {
      const text = output.value
        .map((part) => (part.type === "text" ? part.text : `[${part.type}]`))
        .join("\n");
      return { name, text, value: jsonIn(text), isError: false };
    }
    default:
      return { name, text: output.value, value: jsonIn(output.value), isError: output.type !== "text" };
  }
}

/** What a failed result begins with where a provider has no other way to be told. */
const failed = "The tool failed: ";

function jsonIn(text: string): JSONValue | undefined {
  const json = text.startsWith(failed) ? text.slice(failed.length) : text;
  return /^\s{0,64}[[{]/.test(json) ? parsedJson(json) : undefined;
}

function earlierOf(message: LanguageModelV4Message): Earlier {
  if (message.role === "tool") {
    return {
      role: "tool",
      text: resultsOf(message)
        .map(({ text }) => text)
        .join("\n"),
      source: null,
      called: [],
    };
  }
  const called =
    message.role === "assistant"
      ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolName] : []))
      : [];
  return { role: message.role === "assistant" ? "assistant" : "user", ...said(message), called };
}

function said(message: LanguageModelV4Message | undefined): Pick<Earlier, "text" | "source"> {
  if (message === undefined || message.role === "tool") return { text: "", source: null };
  if (message.role === "system") return { text: message.content.trim(), source: null };
  const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  if (message.role !== "user") return { text: texts.join("\n").trim(), source: null };
  const { text, source } = withoutFirstLine(
    (texts.includes(unanswered) ? texts.slice(-1) : texts).join("\n"),
  );
  return { text: taskIn(text), source };
}

const taskMark = "\n\n[Subagent Task]: ";

/** The task of a spawned session, without what it is told around it. */
function taskIn(text: string): string {
  const at = text.startsWith("[Subagent Context]") ? text.indexOf(taskMark) : -1;
  return at === -1 ? text : text.slice(at + taskMark.length).trim();
}

/** What the transcript puts before a message that nobody answered; the last text is the one to answer. */
const unanswered = "[This message was not answered before the next one came.]";

const mark = "[Inter-session message]";
/** What a Skein whose agent this one is puts before a prompt: a script does not go by it. */
const instructions =
  /^\[Skein\] (?:Instructions for you,.*?\[Skein\] End of the instructions\.|The instructions [^\n]*)\s+/s;

/**
 * The first line that the transcript puts on what another session says. Of one that merely stands in a text, as a Skein has it that is
 * the agent of another Skein, nothing is believed: it is what a person says.
 */
function withoutFirstLine(given: string): Pick<Earlier, "text" | "source"> {
  const whole = given.replace(instructions, "");
  const end = whole.indexOf("\n");
  const shown = end === -1 ? "" : whole.slice(end + 1).trim();
  const quoted = /^(?<fence>`{3,64}|~{3,64})\n(?<text>.*)\n\k<fence>$/s.exec(shown)?.groups?.text;
  const text = quoted?.trim() ?? shown;
  if (whole.startsWith(`\\${mark}`) && end !== -1) return { text, source: null };
  if (!whole.startsWith(mark)) return { text: whole.trim(), source: null };
  const line = end === -1 ? whole : whole.slice(0, end);
  const field = (name: string) => {
    const [, value = ""] =
      new RegExp(` ${name}=("(?:[^"\\\\]|\\\\.){0,2000}"|[^\\s"]{1,2000})`).exec(line) ?? [];
    return value.replace(/^"|"$/g, "");
  };
  return {
    text,
    source: { session: field("sourceSession"), tool: field("sourceTool"), isQuoted: quoted !== undefined },
  };
}
