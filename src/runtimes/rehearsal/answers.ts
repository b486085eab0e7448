import type { JSONObject, JSONValue } from "@ai-sdk/provider";
import type { Conversation, Result } from "./conversation.ts";
import { isJsonObject } from "./json.ts";
import type { Reply } from "./reply.ts";
import { calls, says } from "./reply.ts";
import type { Language } from "./words.ts";
import { quoted, shortText } from "./words.ts";

/** What is said about what the tools answered. There is always something: a turn ends here, or it sleeps. */

const mostRows = 20;

export function afterResults(conversation: Conversation, language: Language): Reply {
  const { results, rounds, tools } = conversation;
  const spawned = results.filter(({ name }) => name === "sessions_spawn");
  const mayWait = tools.some(({ name }) => name === "sessions_yield") && rounds === 1;
  if (mayWait && spawned.some((result) => !hasFailed(result) && !isOver(result))) {
    return calls({ name: "sessions_yield", arguments: {} });
  }
  return says(results.map((result) => answer(result, language)).join("\n"));
}

function answer(result: Result, language: Language): string {
  if (hasFailed(result)) return failureText(result, language);
  const render = Object.hasOwn(renderers, result.name) ? renderers[result.name] : undefined;
  const value = objectOf(result.value);
  const text = render === undefined || value === null ? null : render(value, language);
  if (text !== null) return text;
  const short = shortText(result.text, 1000);
  return language === "zh" ? `${result.name} 的回答：${short}` : `${result.name} answered: ${short}`;
}

function objectOf(value: JSONValue | undefined): JSONObject | null {
  return isJsonObject(value) ? value : null;
}

function textOf(value: JSONValue | undefined): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

function rowsOf(value: JSONValue | undefined): readonly JSONObject[] {
  return (Array.isArray(value) ? value : []).filter(isJsonObject);
}

function hasFailed({ isError, value }: Result): boolean {
  const status = objectOf(value)?.status;
  return isError || status === "error" || status === "forbidden";
}

/** A child that was waited for: there is nothing to sleep for. */
function isOver({ value }: Result): boolean {
  return objectOf(value)?.outcome !== undefined;
}

function failureText({ name, text, value }: Result, language: Language): string {
  const why = shortText(textOf(objectOf(value)?.error) || text, 500);
  return language === "zh" ? `工具 ${name} 没有成功：${why}` : `The tool ${name} did not succeed: ${why}`;
}

type Renderer = (value: JSONObject, language: Language) => string | null;

/** By the tool's name, from the fields of its result. */
const renderers: Readonly<Record<string, Renderer>> = {
  sessions_list: (value, language) => {
    const rows = rowsOf(value.sessions);
    const lines = rows.slice(0, mostRows).map((row) => {
      const names = [row.label, row.displayName].map(textOf).filter((name) => name !== "");
      return `- ${[textOf(row.key), ...names.slice(0, 1), textOf(row.status)].filter(Boolean).join(" · ")}`;
    });
    const title =
      language === "zh"
        ? `有 ${rows.length} 个会话：`
        : rows.length === 1
          ? "There is one session:"
          : `There are ${rows.length} sessions:`;
    if (rows.length === 0)
      return language === "zh" ? "没有看得到的会话。" : "There is no session that I may see.";
    return [title, ...lines].join("\n");
  },
  sessions_history: (value, language) => {
    const rows = rowsOf(value.messages);
    const key = textOf(value.sessionKey);
    const lines = rows
      .slice(-mostRows)
      .map((row) => `- ${textOf(row.role)}: ${shortText(saidIn(row.content), 200)}`);
    const title =
      language === "zh" ? `${key} 有 ${rows.length} 条消息：` : `${key} has ${rows.length} messages:`;
    return [title, ...lines].join("\n");
  },
  sessions_send: (value, language) => {
    const key = textOf(value.sessionKey);
    const reply = textOf(value.reply);
    if (value.status === "ok")
      return language === "zh" ? `${key} 回答：${reply}` : `${key} answered: ${reply}`;
    if (value.status === "sent") return language === "zh" ? `已告诉 ${key}。` : `I have told ${key}.`;
    const status = textOf(value.status);
    return language === "zh" ? `${key} 没有回答（${status}）。` : `${key} has not answered (${status}).`;
  },
  sessions_spawn: (value, language) => {
    const name = textOf(value.label) || textOf(value.childSessionKey);
    const [result, outcome] = [textOf(value.result), textOf(value.outcome)];
    if (outcome !== "" && outcome !== "ok") {
      const why = [textOf(value.error), result].filter(Boolean).join(" · ");
      const said = why === "" ? "" : `${language === "zh" ? "：" : ": "}${shortText(why, 500)}`;
      return language === "zh"
        ? `${name} 没有做完（${outcome}）${said}`
        : `${name} is not done (${outcome})${said}`;
    }
    if (outcome !== "" || result !== "")
      return language === "zh" ? `${name} 的结果：${result}` : `${name} is done: ${result}`;
    return language === "zh"
      ? `助手 ${name} 已经开始，结束时会报告。`
      : `The helper ${name} has started, and will report when it is done.`;
  },
  sessions_yield: (_, language) => (language === "zh" ? "我等待助手们。" : "I wait for the helpers."),
  session_search: (value, language) => {
    const rows = rowsOf(value.hits);
    const lines = rows
      .slice(0, mostRows)
      .map((row) => `- ${textOf(row.key)}: ${shortText(textOf(row.snippet), 200)}`);
    if (rows.length === 0) return language === "zh" ? "没有找到。" : "Nothing was found.";
    const title = language === "zh" ? `找到 ${rows.length} 处：` : `Found ${rows.length}:`;
    return [title, ...lines].join("\n");
  },
  session_status: (value, language) => {
    const context = objectOf(value.context);
    const parts = [textOf(value.sessionKey), textOf(value.model)].filter(Boolean);
    const tokens = textOf(context?.tokens);
    if (tokens !== "")
      parts.push(language === "zh" ? `上下文 ${tokens} 个 token` : `${tokens} tokens in the context`);
    return `${language === "zh" ? "状态：" : "Status: "}${parts.join(" · ")}`;
  },
  subagents: (value, language) => {
    const name = nameOf(value);
    const isOver = value.status === "done";
    if (value.action === "kill" && isOver)
      return language === "zh" ? `${name} 已经结束了。` : `${name} had ended already.`;
    if (value.action === "kill") return language === "zh" ? `已停止 ${name}。` : `I have stopped ${name}.`;
    const rows = [value.active, value.recent].flatMap(rowsOf);
    if (rows.length === 0) return language === "zh" ? "没有助手。" : "There are no helpers.";
    const lines = rows
      .slice(0, mostRows)
      .map((row) => `- ${[nameOf(row), textOf(row.status)].filter(Boolean).join(" · ")}`);
    return [language === "zh" ? "助手：" : "The helpers:", ...lines].join("\n");
  },
};

function nameOf(row: JSONObject): string {
  return textOf(row.label ?? row.sessionKey ?? row.runId);
}

function saidIn(content: JSONValue | undefined): string {
  if (!Array.isArray(content)) return textOf(content);
  return content.map((block) => textOf(objectOf(block)?.text)).join(" ");
}

/** What came in while the turn slept, put together, and why there are not as many as were asked for. */
export function arrivalsText(text: string, spawned: readonly Result[], language: Language): string {
  const found = resultsIn(text);
  const lines = found.slice(0, mostRows).map((result, index) => `${index + 1}. ${shortText(result, 300)}`);
  const title =
    language === "zh"
      ? `总结：收到 ${found.length} 份结果。`
      : `In summary, ${found.length === 1 ? "one result is" : `${found.length} results are`} in:`;
  const refusals = new Set(spawned.filter(hasFailed).map((result) => failureText(result, language)));
  return [title, ...lines, ...refusals].join("\n");
}

/** What a session answered to a message, once that is told. */
export function repliedText(session: string, text: string, language: Language): string {
  const [reply = ""] = resultsIn(text);
  const said = shortText(reply, 300);
  return language === "zh" ? `${session} 后来回答：${said}` : `${session} has answered: ${said}`;
}

/** What stands between fences, else the whole. */
function resultsIn(text: string): readonly string[] {
  const results: string[] = [];
  let fence: string | null = null;
  let inside: string[] = [];
  for (const line of text.split("\n")) {
    const [mark] = /^(?:`{3,64}|~{3,64})/.exec(line) ?? [];
    if (fence === null && mark !== undefined) [fence, inside] = [mark, []];
    else if (fence !== null && line.trim() === fence) {
      results.push(inside.join("\n"));
      fence = null;
    } else if (fence !== null) inside.push(line);
  }
  return results.length > 0 ? results : [text];
}

/** The words in which a message of another session is taken note of. */
export function notedText(text: string, language: Language): string {
  return language === "zh" ? `收到：${quoted(text, "zh")}。` : `Noted: ${quoted(text, "en")}.`;
}

export const isNoted = (text: string) => /^(?:Noted: “|收到：「)/.test(text);
