import type { JSONObject } from "@ai-sdk/provider";
import type { Choose, Conversation, Language } from "./conversation.ts";
import { hasIntroduced, quote } from "./conversation.ts";
import { readArguments } from "./fit-schema.ts";
import type { Reply } from "./play-reply.ts";
import { callTools, ProviderFailure, readSpreadMs, say } from "./play-reply.ts";

/** Answers the requests in the table in `requests.ts`. */

/** A request from the table, as matched in a text. */
export interface FoundRequest {
  readonly language: Language;
  readonly choose: Choose;
  /** The text after the matched beginning. */
  readonly rest: string;
  readonly groups: Readonly<Record<string, string | undefined>>;
  readonly conversation: Conversation;
  /** Returns `true` once per prompt. */
  readonly isFirstTime: () => boolean;
}

export function introduce(choose: Choose): string {
  return choose(
    "I am the rehearsal model: I work offline, need no key, and always give the same answers.",
    "我是排练模型：离线、不需要密钥，而且总是给出同样的回答。",
  );
}

/** Answers a request that the model does not understand. The model introduces itself only once. */
export function explainItself(conversation: Conversation, choose: Choose): Reply {
  const { request } = conversation;
  const said = choose(`You said: ${quote(request, "en")}.`, `你说：${quote(request, "zh")}。`);
  const help = choose("Say “what can you do” to see what I understand", "说「你能做什么」可以看到我懂得什么");
  if (hasIntroduced(conversation)) return say(choose(`${said} ${help}.`, `${said}${help}。`));
  const keys = choose(
    "for a real model, set a key such as ANTHROPIC_API_KEY, or set agents.<id>.model in skein.yaml.",
    "要用真正的模型，请设置密钥（例如 ANTHROPIC_API_KEY）或 skein.yaml 中的 agents.<id>.model。",
  );
  return say(
    choose(`${introduce(choose)} ${said} ${help}; ${keys}`, `${introduce(choose)} ${said}${help}；${keys}`),
  );
}

export function targetOf({ groups }: FoundRequest): string | null {
  const name = groups.quoted?.trim() ?? groups.plain?.replace(/[:.。!！?？]{1,9}$/u, "");
  return name === undefined || name === "" ? null : name;
}

/** Calls the tool once per item in `each`, or answers that the tool is not offered. */
export function useSessionTool(found: FoundRequest, name: string, ...each: readonly JSONObject[]): Reply {
  const offered = found.conversation.tools.map((tool) => tool.name);
  if (offered.includes(name)) return callTools(...each.map((given) => ({ name, arguments: given })));
  const names = offered.slice(0, 40).join(", ");
  return say(
    found.choose(
      `I need the tool ${name} for this, but it is not available to me here. ${names === "" ? "No tools are available." : `The available tools are: ${names}.`} Give the agent a tool with this name, or see agents.<id>.tools for what is allowed.`,
      `这需要工具 ${name}，但这里没有提供给我。${names === "" ? "现在没有任何工具。" : `现有的工具：${names}。`}请给代理这个名字的工具，或查看 agents.<id>.tools 允许了什么。`,
    ),
  );
}

const waitEnding =
  /[\s,]{1,3}and wait(?: (?:for )?(?:up to )?(?<number>\d{1,5}) ?(?<unit>seconds?|s|minutes?|min))?[.!?]?$/iu;
const zhWaitEnding =
  /[，,\s]{0,3}并?等待(?:回复)?\s{0,3}(?:(?<number>\d{1,5})\s{0,3}(?<unit>秒|分钟))?[。！？]?$/u;

/** Sends a message to a session. A key contains colons or is `main`. Any other name is a label. */
export function sendMessage(found: FoundRequest, defaultWaitSeconds: number | null): Reply | null {
  const name = targetOf(found);
  if (name === null) return null;
  const isAsked = defaultWaitSeconds !== null;
  const [message, ending] = isAsked ? splitEnding(found, waitEnding, zhWaitEnding) : [found.rest.trim(), {}];
  if (message === "") return say(found.choose(`What should I tell ${name}?`, `要告诉 ${name} 什么？`));
  const address = name.includes(":") || name === "main" ? { sessionKey: name } : { label: name };
  if (!isAsked) return useSessionTool(found, "sessions_send", { ...address, message });
  const count = readNumber(ending.number) ?? defaultWaitSeconds;
  const timeoutSeconds = /^(?:min|分)/i.test(ending.unit ?? "") ? count * 60 : count;
  return useSessionTool(found, "sessions_send", { ...address, message, timeoutSeconds });
}

/** Examines only the last characters, so that the time does not depend on the length of the text. */
function splitEnding(
  { rest, language }: FoundRequest,
  en: RegExp,
  zh: RegExp,
): readonly [text: string, groups: FoundRequest["groups"]] {
  const text = rest.trim();
  const from = Math.max(0, text.length - 100);
  const found = (language === "zh" ? zh : en).exec(text.slice(from));
  return found === null ? [text, {}] : [text.slice(0, from + found.index).trimEnd(), found.groups ?? {}];
}

const englishNumbers = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/** Reads digits, or a number word in either language. */
function readNumber(text: string | undefined): number | null {
  if (text === undefined) return null;
  const word = text.toLowerCase();
  if (/^[\d.]+$/.test(word)) return Number(word);
  if (word === "a" || word === "an") return 1;
  if (word === "两") return 2;
  const index = Math.max(englishNumbers.indexOf(word), [..."一二三四五六七八九十"].indexOf(word));
  return index === -1 ? null : index + 1;
}

const maxHelpers = 20;
const spawnEnding = /[\s,]{1,3}and(?: then)? (?:summari[sz]e|wait|report)[^.;]{0,40}[.!]?$/iu;
const zhSpawnEnding = /[，,\s]{0,3}(?:并|然后|再)(?:总结|汇总|等)[^。；]{0,20}[。！]?$/u;

/**
 * Spawns sub-agents. If the text contains one task per sub-agent, separated by semicolons, each sub-agent gets its own
 * task.
 */
export function spawnHelpers(found: FoundRequest): Reply | null {
  const given = readNumber(found.groups.number);
  if (found.groups.number !== undefined && given === null) return null;
  const count = Math.min(maxHelpers, Math.max(1, given ?? 1));
  const [task] = splitEnding(found, spawnEnding, zhSpawnEnding);
  if (task === "") return say(found.choose("What should the helpers do?", "助手要做什么？"));
  const tasks = task.split(/[;；]/, maxHelpers + 1).map((each) => each.trim());
  const isSplit = tasks.length === count && tasks.every((each) => each !== "");
  const spawns = Array.from({ length: count }, (_, index) => ({
    task: isSplit ? (tasks[index] ?? task) : task,
    label: `helper-${index + 1}`,
  }));
  return useSessionTool(found, "sessions_spawn", ...spawns);
}

export function useTool(found: FoundRequest): Reply {
  const { tool: name = "" } = found.groups;
  const tool = found.conversation.tools.find((each) => each.name === name);
  if (tool === undefined) return useSessionTool(found, name);
  const given = readArguments(found.rest.trim(), tool.inputSchema);
  if (given !== null) return callTools({ name, arguments: given });
  return say(
    found.choose(
      `I cannot read ${quote(found.rest, "en")} as arguments. Use a JSON object or key=value pairs.`,
      `我无法把${quote(found.rest, "zh")}读作参数。请给出 JSON 对象，或者 key=value。`,
    ),
  );
}

export function answerSlowly(found: FoundRequest): Reply {
  const spreadMs = readSpreadMs(found.groups.number, found.groups.unit);
  const seconds = spreadMs / 1000;
  const text = found.choose(
    `This answer was spread evenly over ${seconds} seconds, word by word, so that there was time to watch or stop it.`,
    `这个回答均匀地用了 ${seconds} 秒，一个词一个词地说出来，这样就有时间看着它，或者让它停下。`,
  );
  return { ...say(text), spreadMs };
}

export function fail(found: FoundRequest): Reply {
  const { number: status = "400", once } = found.groups;
  if (once === undefined) {
    const message = found.choose("The rehearsal model was asked to fail.", "排练模型按要求失败了。");
    throw new ProviderFailure({ status: Number(status), message });
  }
  if (!found.isFirstTime())
    return say(found.choose("The first attempt failed, and this one did not.", "第一次失败了，这一次没有。"));
  const message = found.choose(
    "The rehearsal model was asked to fail once; try again.",
    "排练模型按要求失败一次，请重试。",
  );
  throw new ProviderFailure({ status: 503, message });
}
