import type { JSONObject, JSONValue } from "@ai-sdk/provider";
import { isRecord } from "../../core/is-record.ts";
import { cutText } from "../../core/text.ts";
import type { Choose, Conversation, ToolResult } from "./conversation.ts";
import { quote, shorten } from "./conversation.ts";
import { parseJson } from "./fit-schema.ts";
import type { Reply } from "./play-reply.ts";
import { callTools, say } from "./play-reply.ts";

/** Answers to tool results, and to turns that another session or Skein started. */

const maxRows = 20;
const longestReply = 2000;

/** Answers a turn's tool results, or sleeps once while the sub-agents that the turn spawned are running. */
export function answerResults({ results, rounds, tools }: Conversation, choose: Choose): Reply {
  const canYield = tools.some(({ name }) => name === "sessions_yield") && rounds === 1;
  const isRunning = (result: ToolResult) =>
    result.name === "sessions_spawn" && !hasFailed(result) && fieldsOf(result.value).outcome === undefined;
  if (canYield && results.some(isRunning)) return callTools({ name: "sessions_yield", arguments: {} });
  const texts = results.map((result) => describeResult(result, choose));
  return say(texts.join(texts.some((text) => text.includes("\n")) ? "\n\n" : "\n"));
}

function describeResult(result: ToolResult, choose: Choose): string {
  if (hasFailed(result)) return describeFailure(result, choose);
  const { name, value, text } = result;
  const describe = Object.hasOwn(descriptions, name) ? descriptions[name] : undefined;
  if (describe !== undefined && isRecord(value)) return describe(value, choose);
  const short = shorten(text, 1000);
  return choose(`${name} answered: ${short}`, `${name} 的回答：${short}`);
}

function hasFailed({ isError, value }: ToolResult): boolean {
  const { status } = fieldsOf(value);
  return isError || status === "error" || status === "forbidden";
}

function describeFailure({ name, text, value }: ToolResult, choose: Choose): string {
  const why = shorten(textOf(fieldsOf(value).error) || text, 500);
  return choose(`The tool ${name} did not succeed: ${why}`, `工具 ${name} 没有成功：${why}`);
}

function fieldsOf(value: JSONValue | undefined): JSONObject {
  return isRecord(value) ? value : {};
}

function textOf(value: JSONValue | undefined): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

/** Formats a reply after a colon: on the same line if it is a single line, otherwise as a block quote. */
function cite(reply: string): string {
  const text = reply.trim();
  if (!text.includes("\n")) return ` ${text}`;
  const lines = cutText(text, longestReply).split("\n");
  return `\n\n${lines.map((line) => `> ${line}`.trimEnd()).join("\n")}`;
}

/** Returns `title`, then one line for each object in a list. */
function listRows(title: string, list: JSONValue | undefined, describe: (row: JSONObject) => string): string {
  const rows = (Array.isArray(list) ? list : []).filter((row): row is JSONObject => isRecord(row));
  return [title, "", ...rows.slice(0, maxRows).map((row) => `- ${describe(row)}`)].join("\n");
}

const countOf = (list: JSONValue | undefined) => (Array.isArray(list) ? list.length : 0);
const joinTexts = (...values: readonly (JSONValue | undefined)[]) =>
  values.map(textOf).filter(Boolean).join(" · ");

const bold = (text: string) => `**${text}**`;
const describeSession = (row: JSONObject) =>
  joinTexts(bold(textOf(row.key)), row.label ?? row.displayName, row.status);
const describeHit = (row: JSONObject) => `${bold(textOf(row.key))}: ${shorten(textOf(row.snippet), 200)}`;
function describeMessage({ role, content }: JSONObject): string {
  const text = Array.isArray(content)
    ? content.map((block) => textOf(fieldsOf(block).text)).join(" ")
    : textOf(content);
  return `${bold(textOf(role))}: ${shorten(text, 200)}`;
}

/** Describes the results of the session tools in plain language. */
const descriptions: Readonly<Record<string, (value: JSONObject, choose: Choose) => string>> = {
  sessions_list: ({ sessions }, choose) => {
    const count = countOf(sessions);
    if (count === 0) return choose("There are no sessions that I can see.", "没有看得到的会话。");
    const title = count === 1 ? "There is one session:" : `There are ${count} sessions:`;
    return listRows(choose(title, `有 ${count} 个会话：`), sessions, describeSession);
  },
  sessions_history: ({ sessionKey, messages }, choose) => {
    const [key, count] = [textOf(sessionKey), countOf(messages)];
    const title = choose(`${key} has ${count} messages:`, `${key} 有 ${count} 条消息：`);
    return listRows(title, messages, describeMessage);
  },
  sessions_send: ({ sessionKey, status, reply }, choose) => {
    const key = textOf(sessionKey);
    const answer = cite(textOf(reply));
    if (status === "ok") return choose(`${key} answered:${answer}`, `${key} 回答：${answer.trimStart()}`);
    if (status === "sent")
      return choose(
        `I have told ${key}. If it answers, its answer will arrive here.`,
        `已告诉 ${key}。如果它回答，回答会送到这里。`,
      );
    return choose(`${key} has not answered (${textOf(status)}).`, `${key} 没有回答（${textOf(status)}）。`);
  },
  sessions_spawn: (value, choose) => {
    const name = textOf(value.label) || textOf(value.childSessionKey);
    const outcome = textOf(value.outcome);
    const result = cite(textOf(value.result));
    const problem = shorten(joinTexts(value.error, value.result), 500);
    if (outcome === "ok") return choose(`${name} is done:${result}`, `${name} 的结果：${result.trimStart()}`);
    if (outcome === "")
      return choose(
        `The helper ${name} has started, and will report when it is done.`,
        `助手 ${name} 已经开始，结束时会报告。`,
      );
    const failure = choose(`${name} did not finish (${outcome})`, `${name} 没有做完（${outcome}）`);
    return problem === "" ? failure : `${failure}${choose(": ", "：")}${problem}`;
  },
  sessions_yield: (_, choose) => choose("Waiting for the helpers.", "我等待助手们。"),
  session_search: ({ hits }, choose) => {
    const count = countOf(hits);
    if (count === 0) return choose("Nothing was found.", "没有找到。");
    return listRows(choose(`Found ${count}:`, `找到 ${count} 处：`), hits, describeHit);
  },
  session_status: ({ sessionKey, model, context }, choose) => {
    const { tokens = null } = fieldsOf(context);
    const size =
      tokens === null ? "" : choose(`${tokens} tokens in the context`, `上下文 ${tokens} 个 token`);
    return `${choose("Status: ", "状态：")}${joinTexts(sessionKey, model, size)}`;
  },
};

const replyAnnounced =
  /^(?:The session (?<replied>\S{1,5000}), which you sent a message to, has ended its turn|Your exchange with the session (?<exchanged>\S{1,5000}) has ended)\./;
const announceWish = /\bannounce\b|\bpublish\b|宣布|公布/iu;
const isNote = (text: string) => /^(?:Noted: “|收到：「)/.test(text);

/** Answers a late reply, an announce step, or the second turn of an exchange. Returns `null` for anything else. */
export function answerExchange(conversation: Conversation, choose: Choose): Reply | null {
  const { request, source, system, before } = conversation;
  const announced = source === null || source.isQuoted ? null : replyAnnounced.exec(request);
  if (announced !== null) {
    const session = announced.groups?.replied ?? announced.groups?.exchanged;
    const reply = cite(readReports(request)[0]?.text ?? "");
    return say(choose(`${session} has answered:${reply}`, `${session} 后来回答：${reply.trimStart()}`));
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

/** Whether the request is a report from sub-agents that this session spawned. */
export function isReport({ request, source, before, isWoken }: Conversation, isUnderstood: boolean): boolean {
  const [firstLine = ""] = request.split("\n", 1);
  // A user might also have spawned the sub-agent on behalf of this session.
  if (source?.isQuoted === false && endedLine.test(firstLine)) return true;
  if (!before.some(({ called }) => called.includes("sessions_spawn"))) return false;
  if (isWoken && !isUnderstood) return true;
  if (source === null) return false;
  const isChild = before.some(
    ({ role, text }) => role === "tool" && source.session !== "" && text.includes(source.session),
  );
  return isChild || /spawn|subagent|announce/.test(source.tool);
}

/** Returns one line per sub-agent, plus the reasons why some were not spawned. */
export function summarizeReports({ request, spawned }: Conversation, choose: Choose): Reply {
  // Sub-agents finish in any order.
  const reports = readReports(request).toSorted((a, b) => collator.compare(a.name, b.name));
  const count = reports.length;
  const number = countWords[count] ?? String(count);
  const title =
    count === 1
      ? choose("The helper is back:", "助手回来了：")
      : choose(`${number} helpers are back:`, `${count} 个助手回来了：`);
  const lines = reports.slice(0, maxRows).map((report, index) => `${index + 1}. ${summarizeReport(report)}`);
  const refusals = new Set(spawned.filter(hasFailed).map((result) => describeFailure(result, choose)));
  const where = choose("The full answers are in the helpers' sessions.", "完整的回答在各个助手的会话里。");
  const isShortened = reports.some(({ text }) => text.trim().includes("\n"));
  return say([title, lines.join("\n"), ...refusals, ...(isShortened ? [where] : [])].join("\n\n"));
}

const collator = new Intl.Collator("en", { numeric: true });
const countWords = ["", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];

/** Summarizes a report, using the first line of its result. */
function summarizeReport({ name, status, text }: HelperReport): string {
  const [first = ""] = text.trim().split("\n", 1);
  const problem = status.startsWith("completed") ? "" : status;
  return joinTexts(name === "" ? "" : bold(name), problem, shorten(first.replaceAll("**", "")));
}

interface HelperReport {
  /** The label, or the key if there is no label. Empty if the text contains neither. */
  readonly name: string;
  readonly status: string;
  readonly text: string;
}

const endedLine = /^A session that you spawned has ended: (?<key>\S{1,5000})(?: \(label: (?<label>".*")\))?$/;

/**
 * Returns each fenced text together with the preceding lines that identify its sub-agent. If there are no fences,
 * returns the whole text.
 */
function readReports(text: string): readonly HelperReport[] {
  const reports: HelperReport[] = [];
  let fence: string | null = null;
  let lines: string[] = [];
  let name = "";
  let status = "completed";
  for (const line of text.split("\n")) {
    const [mark] = /^(?:`{3,64}|~{3,64})/.exec(line) ?? [];
    if (fence === null && mark !== undefined) [fence, lines] = [mark, []];
    else if (fence !== null && line.trim() === fence) {
      reports.push({ name, status, text: lines.join("\n") });
      [fence, name, status] = [null, "", "completed"];
    } else if (fence !== null) lines.push(line);
    else {
      const { key, label } = endedLine.exec(line)?.groups ?? {};
      if (key !== undefined) name = label === undefined ? key : textOf(parseJson(label)) || key;
      if (line.startsWith("Status: ")) status = line.slice("Status: ".length);
    }
  }
  return reports.length > 0 ? reports : [{ name, status, text }];
}

/** Acknowledges another session's message if the model does not understand it. `isNote` recognizes the answer. */
export function noteMessage(text: string, choose: Choose): Reply {
  const quoted = choose(quote(text, "en"), quote(text, "zh"));
  const end = /[.!?。！？][”」]$/u.test(quoted) ? "" : choose(".", "。");
  return say(choose(`Noted: ${quoted}${end}`, `收到：${quoted}${end}`));
}
