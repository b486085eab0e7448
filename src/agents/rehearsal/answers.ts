import type { JSONObject, JSONValue } from "@ai-sdk/provider";
import type { Conversation, Language, ToolResult } from "./conversation.ts";
import { quote, shorten } from "./conversation.ts";
import { isJsonObject } from "./fit-schema.ts";
import type { Reply } from "./play-reply.ts";
import { callTools, say } from "./play-reply.ts";

/** Answers to tool results, and to turns that another session or Skein started. */

const maxRows = 20;

/** A turn ends after the results of its tools, or sleeps once for the helpers that it spawned. */
export function answerResults({ results, rounds, tools }: Conversation, language: Language): Reply {
  const canYield = tools.some(({ name }) => name === "sessions_yield") && rounds === 1;
  const isRunning = (result: ToolResult) =>
    result.name === "sessions_spawn" && !hasFailed(result) && fieldsOf(result.value).outcome === undefined;
  if (canYield && results.some(isRunning)) return callTools({ name: "sessions_yield", arguments: {} });
  return say(results.map((result) => describeResult(result, language)).join("\n"));
}

function describeResult(result: ToolResult, language: Language): string {
  if (hasFailed(result)) return describeFailure(result, language);
  const describe = Object.hasOwn(descriptions, result.name) ? descriptions[result.name] : undefined;
  if (describe !== undefined && isJsonObject(result.value)) return describe[language](result.value);
  const short = shorten(result.text, 1000);
  return language === "zh" ? `${result.name} 的回答：${short}` : `${result.name} answered: ${short}`;
}

function hasFailed({ isError, value }: ToolResult): boolean {
  const { status } = fieldsOf(value);
  return isError || status === "error" || status === "forbidden";
}

function describeFailure({ name, text, value }: ToolResult, language: Language): string {
  const why = shorten(textOf(fieldsOf(value).error) || text, 500);
  return language === "zh" ? `工具 ${name} 没有成功：${why}` : `The tool ${name} did not succeed: ${why}`;
}

function fieldsOf(value: JSONValue | undefined): JSONObject {
  return isJsonObject(value) ? value : {};
}

function textOf(value: JSONValue | undefined): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

/** `title`, then one line for each object of a list. */
function listRows(title: string, list: JSONValue | undefined, describe: (row: JSONObject) => string): string {
  const rows = (Array.isArray(list) ? list : []).filter(isJsonObject);
  return [title, ...rows.slice(0, maxRows).map((row) => `- ${describe(row)}`)].join("\n");
}

const countOf = (list: JSONValue | undefined) => (Array.isArray(list) ? list.length : 0);
const joinTexts = (...values: readonly (JSONValue | undefined)[]) =>
  values.map(textOf).filter(Boolean).join(" · ");

const describeSession = (row: JSONObject) => joinTexts(row.key, row.label ?? row.displayName, row.status);
const describeHit = (row: JSONObject) => `${textOf(row.key)}: ${shorten(textOf(row.snippet), 200)}`;
function describeMessage({ role, content }: JSONObject): string {
  const text = Array.isArray(content)
    ? content.map((block) => textOf(fieldsOf(block).text)).join(" ")
    : textOf(content);
  return `${textOf(role)}: ${shorten(text, 200)}`;
}
const helperName = (value: JSONObject) => textOf(value.label) || textOf(value.childSessionKey);
const helperProblem = (value: JSONObject) => shorten(joinTexts(value.error, value.result), 500);

type Describe = Readonly<Record<Language, (value: JSONObject) => string>>;

/** The results of the session tools in words. */
const descriptions: Readonly<Record<string, Describe>> = {
  sessions_list: {
    en: ({ sessions }) => {
      const count = countOf(sessions);
      if (count === 0) return "There is no session that I may see.";
      const title = count === 1 ? "There is one session:" : `There are ${count} sessions:`;
      return listRows(title, sessions, describeSession);
    },
    zh: ({ sessions }) =>
      countOf(sessions) === 0
        ? "没有看得到的会话。"
        : listRows(`有 ${countOf(sessions)} 个会话：`, sessions, describeSession),
  },
  sessions_history: {
    en: ({ sessionKey, messages }) =>
      listRows(`${textOf(sessionKey)} has ${countOf(messages)} messages:`, messages, describeMessage),
    zh: ({ sessionKey, messages }) =>
      listRows(`${textOf(sessionKey)} 有 ${countOf(messages)} 条消息：`, messages, describeMessage),
  },
  sessions_send: {
    en: ({ sessionKey, status, reply }) => {
      const key = textOf(sessionKey);
      if (status === "ok") return `${key} answered: ${textOf(reply)}`;
      return status === "sent" ? `I have told ${key}.` : `${key} has not answered (${textOf(status)}).`;
    },
    zh: ({ sessionKey, status, reply }) => {
      const key = textOf(sessionKey);
      if (status === "ok") return `${key} 回答：${textOf(reply)}`;
      return status === "sent" ? `已告诉 ${key}。` : `${key} 没有回答（${textOf(status)}）。`;
    },
  },
  sessions_spawn: {
    en: (value) => {
      const name = helperName(value);
      const outcome = textOf(value.outcome);
      const problem = helperProblem(value);
      if (outcome === "ok") return `${name} is done: ${textOf(value.result)}`;
      if (outcome !== "") return `${name} is not done (${outcome})${problem === "" ? "" : `: ${problem}`}`;
      return `The helper ${name} has started, and will report when it is done.`;
    },
    zh: (value) => {
      const name = helperName(value);
      const outcome = textOf(value.outcome);
      const problem = helperProblem(value);
      if (outcome === "ok") return `${name} 的结果：${textOf(value.result)}`;
      if (outcome !== "") return `${name} 没有做完（${outcome}）${problem === "" ? "" : `：${problem}`}`;
      return `助手 ${name} 已经开始，结束时会报告。`;
    },
  },
  sessions_yield: { en: () => "I wait for the helpers.", zh: () => "我等待助手们。" },
  session_search: {
    en: ({ hits }) =>
      countOf(hits) === 0 ? "Nothing was found." : listRows(`Found ${countOf(hits)}:`, hits, describeHit),
    zh: ({ hits }) =>
      countOf(hits) === 0 ? "没有找到。" : listRows(`找到 ${countOf(hits)} 处：`, hits, describeHit),
  },
  session_status: {
    en: ({ sessionKey, model, context }) => {
      const { tokens = null } = fieldsOf(context);
      return `Status: ${joinTexts(sessionKey, model, tokens === null ? "" : `${tokens} tokens in the context`)}`;
    },
    zh: ({ sessionKey, model, context }) => {
      const { tokens = null } = fieldsOf(context);
      return `状态：${joinTexts(sessionKey, model, tokens === null ? "" : `上下文 ${tokens} 个 token`)}`;
    },
  },
};

const replyAnnounced =
  /^(?:The session (?<replied>\S{1,5000}), which you sent a message to, has ended its turn|Your exchange with the session (?<exchanged>\S{1,5000}) is over)\./;
const announceWish = /\bannounce\b|\bpublish\b|宣布|公布/iu;
const isNote = (text: string) => /^(?:Noted: “|收到：「)/.test(text);

/** The answer to a late reply, an announce step, or the second turn of an exchange. `null`: none of these. */
export function answerExchange(conversation: Conversation, language: Language): Reply | null {
  const { request, source, system, before } = conversation;
  const announced = source === null || source.isQuoted ? null : replyAnnounced.exec(request);
  if (announced !== null) {
    const session = announced.groups?.replied ?? announced.groups?.exchanged;
    const reply = shorten(fencedTexts(request)[0] ?? "");
    return say(language === "zh" ? `${session} 后来回答：${reply}` : `${session} has answered: ${reply}`);
  }
  if (request.includes("ANNOUNCE_SKIP") || system.includes("ANNOUNCE_SKIP")) {
    const isWished = before.some(
      ({ role, text }) => role === "user" && announceWish.test(text.slice(0, 4000)),
    );
    const last = before.findLast(
      ({ role, text }) => role === "assistant" && text !== "" && text !== "REPLY_SKIP",
    );
    return say(isWished && last !== undefined ? last.text : "ANNOUNCE_SKIP");
  }
  const isNoted = source !== null && isNote(request);
  const canSkip = request.includes("REPLY_SKIP") || (source !== null && system.includes("REPLY_SKIP"));
  if (!canSkip && !isNoted) return null;
  const hasSpoken = before.some(
    ({ role, called, source: from }) =>
      (role === "assistant" && called.includes("sessions_send")) ||
      (role === "user" && from !== null && from.session === source?.session),
  );
  return hasSpoken || isNote(request) ? say("REPLY_SKIP") : null;
}

/** Whether the request is a report of helpers that this session spawned. */
export function isReport({ source, before, isWoken }: Conversation, isUnderstood: boolean): boolean {
  if (!before.some(({ called }) => called.includes("sessions_spawn"))) return false;
  if (isWoken && !isUnderstood) return true;
  if (source === null) return false;
  const isChild = before.some(
    ({ role, text }) => role === "tool" && source.session !== "" && text.includes(source.session),
  );
  return isChild || /spawn|subagent|announce/.test(source.tool);
}

/** Puts the results of helpers together, with the reasons why some were not spawned. */
export function summarizeReports({ request, spawned }: Conversation, language: Language): Reply {
  const found = fencedTexts(request);
  const count = found.length;
  const title =
    language === "zh"
      ? `总结：收到 ${count} 份结果。`
      : `In summary, ${count === 1 ? "one result is" : `${count} results are`} in:`;
  const lines = found.slice(0, maxRows).map((result, index) => `${index + 1}. ${shorten(result)}`);
  const refusals = new Set(spawned.filter(hasFailed).map((result) => describeFailure(result, language)));
  return say([title, ...lines, ...refusals].join("\n"));
}

/** The texts between fences, else the whole text. */
function fencedTexts(text: string): readonly string[] {
  const texts: string[] = [];
  let fence: string | null = null;
  let lines: string[] = [];
  for (const line of text.split("\n")) {
    const [mark] = /^(?:`{3,64}|~{3,64})/.exec(line) ?? [];
    if (fence === null && mark !== undefined) [fence, lines] = [mark, []];
    else if (fence !== null && line.trim() === fence) {
      texts.push(lines.join("\n"));
      fence = null;
    } else if (fence !== null) lines.push(line);
  }
  return texts.length > 0 ? texts : [text];
}

/** The answer to a message of another session that is not understood. */
export function noteMessage(text: string, language: Language): Reply {
  return say(language === "zh" ? `收到：${quote(text, "zh")}。` : `Noted: ${quote(text, "en")}.`);
}
