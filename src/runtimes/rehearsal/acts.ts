import type { JSONObject, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { argumentsIn } from "./arguments.ts";
import type { Conversation } from "./conversation.ts";
import { partEnding, targetOf } from "./patterns.ts";
import type { Reply, ReplyCall } from "./reply.ts";
import { calls, says } from "./reply.ts";
import type { Language } from "./words.ts";
import { numberIn, quoted } from "./words.ts";

/** What is done about a request that is understood, by the tools of a session. */

/** A request as the list has understood it. */
export interface Asked {
  readonly language: Language;
  /** What stands behind the words that it was known by. */
  readonly rest: string;
  readonly groups: Readonly<Record<string, string | undefined>>;
  readonly conversation: Pick<Conversation, "request" | "tools">;
  /** `true` once for each request. */
  readonly isFirstTime: () => boolean;
}

/** `null`: it is not meant after all. May throw as a provider does. */
export type Act = (asked: Asked) => Reply | null;

/** In the language of the request. */
export const inWords = ({ language }: Pick<Asked, "language">, en: string, zh: string) =>
  language === "zh" ? zh : en;

export function toolNamed({ conversation }: Asked, name: string): LanguageModelV4FunctionTool | null {
  return conversation.tools.find((tool) => tool.name === name) ?? null;
}

/** The calls, or in plain words that there is no such tool. */
function withTool(asked: Asked, ...made: readonly [ReplyCall, ...ReplyCall[]]): Reply {
  const { name } = made[0];
  return toolNamed(asked, name) === null ? notOffered(asked, name) : calls(...made);
}

function notOffered(asked: Asked, name: string): Reply {
  const names = asked.conversation.tools.map((tool) => tool.name).slice(0, 40);
  const offered = names.join(", ");
  return says(
    inWords(
      asked,
      `I need the tool ${name} for this, and it is not offered to me here. ${offered === "" ? "No tool is." : `Offered are: ${offered}.`} Give the agent one of this name, or see agents.<id>.tools for what is allowed.`,
      `这需要工具 ${name}，但这里没有提供给我。${offered === "" ? "现在没有任何工具。" : `现有的工具：${offered}。`}请给代理这个名字的工具，或查看 agents.<id>.tools 允许了什么。`,
    ),
  );
}

const missing = (asked: Asked, en: string, zh: string) => says(inWords(asked, en, zh));

export const list: Act = (asked) => withTool(asked, { name: "sessions_list", arguments: {} });

export const read: Act = (asked) => {
  const sessionKey = targetOf(asked.groups);
  return sessionKey === null
    ? null
    : withTool(asked, { name: "sessions_history", arguments: { sessionKey, limit: 20 } });
};

/** A key has colons, a label hardly ever; `main` is the short key that everybody knows. */
function addressOf(target: string): JSONObject {
  return target.includes(":") || target === "main" ? { sessionKey: target } : { label: target };
}

export const tell: Act = (asked) => {
  const target = targetOf(asked.groups);
  const message = asked.rest.trim();
  if (target === null) return null;
  if (message === "") return missing(asked, `What am I to tell ${target}?`, `要告诉 ${target} 什么？`);
  return withTool(asked, { name: "sessions_send", arguments: { ...addressOf(target), message } });
};

const waitEnding =
  /[\s,]{1,3}and wait(?: for)?(?: (?:the|an|its))?(?: (?:answer|reply))?(?: (?:for |up to )?(?<number>\d{1,5}) ?(?<unit>seconds?|s|minutes?|min))?[.!?]?$/iu;
const zhWaitEnding =
  /[，,\s]{0,3}(?:并且?|然后)等(?:待|候)?(?:回复|答复|回答)?\s{0,3}(?:(?<number>\d{1,5})\s{0,3}(?<unit>秒|分钟))?[。！？]?$/u;
const usualWaitSeconds = 60;

export const ask: Act = (asked) => {
  const target = targetOf(asked.groups);
  if (target === null) return null;
  const [message, ending] = partEnding(
    asked.rest.trim(),
    asked.language === "zh" ? zhWaitEnding : waitEnding,
  );
  if (message === "") return missing(asked, `What am I to ask ${target}?`, `要问 ${target} 什么？`);
  const { number, unit = "" } = ending?.groups ?? {};
  const count = numberIn(number) ?? usualWaitSeconds;
  const timeoutSeconds = /^(?:min|分)/i.test(unit) ? count * 60 : count;
  return withTool(asked, {
    name: "sessions_send",
    arguments: { ...addressOf(target), message, timeoutSeconds },
  });
};

const mostHelpers = 20;
const spawnEnding = /[\s,]{1,3}and(?: then)? (?:summari[sz]e|wait|report)[^.;]{0,40}[.!]?$/iu;
const zhSpawnEnding = /[，,\s]{0,3}(?:并且?|然后|再|最后)(?:总结|汇总|等)[^。；]{0,20}[。！]?$/u;

/** All in one message; several tasks, parted by semicolons, go one to each. */
export const spawn: Act = (asked) => {
  const named = numberIn(asked.groups.number);
  if (asked.groups.number !== undefined && named === null) return null;
  const count = Math.min(mostHelpers, Math.max(1, Math.floor(named ?? 1)));
  const [task] = partEnding(asked.rest.trim(), asked.language === "zh" ? zhSpawnEnding : spawnEnding);
  if (task === "") return missing(asked, "What are the helpers to do?", "助手要做什么？");
  const parts = task.split(/[;；]/, mostHelpers + 1).map((part) => part.trim());
  const isParted = parts.length === count && parts.every((part) => part !== "");
  const made = Array.from({ length: count }, (_, index) => ({
    name: "sessions_spawn",
    arguments: { task: isParted ? (parts[index] ?? task) : task, label: `helper-${index + 1}` },
  }));
  const [first, ...others] = made;
  return first === undefined ? null : withTool(asked, first, ...others);
};

export const listHelpers: Act = (asked) =>
  withTool(asked, { name: "subagents", arguments: { action: "list" } });

export const stopHelper: Act = (asked) =>
  withTool(asked, {
    name: "subagents",
    arguments: { action: "kill", target: targetOf(asked.groups) ?? "last" },
  });

export const search: Act = (asked) => {
  const query = asked.rest.trim();
  if (query === "") return missing(asked, "What am I to search for?", "要搜索什么？");
  return withTool(asked, { name: "session_search", arguments: { query } });
};

export const status: Act = (asked) => {
  const sessionKey = targetOf(asked.groups);
  return withTool(asked, { name: "session_status", arguments: sessionKey === null ? {} : { sessionKey } });
};

export const useTool: Act = (asked) => {
  const { tool: name = "" } = asked.groups;
  const tool = toolNamed(asked, name);
  if (tool === null) return notOffered(asked, name);
  const given = argumentsIn(asked.rest.trim(), tool.inputSchema);
  if (given !== null) return calls({ name, arguments: given });
  return missing(
    asked,
    `I cannot read ${quoted(asked.rest, "en")} as arguments. Give a JSON object, or key=value.`,
    `我无法把${quoted(asked.rest, "zh")}读作参数。请给出 JSON 对象，或者 key=value。`,
  );
};
