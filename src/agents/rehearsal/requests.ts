import type { Conversation, Language } from "./conversation.ts";
import { chooseIn, quote } from "./conversation.ts";
import { doTask } from "./do-task.ts";
import type { Reply } from "./play-reply.ts";
import { say } from "./play-reply.ts";
import type { FoundRequest } from "./request-answers.ts";
import {
  answerSlowly,
  fail,
  introduce,
  sendMessage,
  spawnHelpers,
  targetOf,
  useSessionTool,
  useTool,
} from "./request-answers.ts";

/** One request that the rehearsal model understands. `docs/rehearsal.md` shows the table. */
export interface Request {
  readonly id: string;
  readonly examples: Readonly<Record<Language, string>>;
  /** Matches the beginning of the request. */
  readonly begins: Readonly<Record<Language, RegExp>>;
  /** The session tool that the request needs, or `null` if it needs none. */
  readonly tool: string | null;
  /** Returns `null` if the text is a different request. Throws a provider failure if the text asks for one. */
  readonly answer: (found: FoundRequest) => Reply | null;
}

/**
 * Building blocks for the patterns. Every repetition is bounded and every pattern is anchored, so matching time does
 * not depend on the length of the request.
 */
const gap = "\\s{1,9}";
const end = "[\\s.。!！?？]{0,9}$";
const separator = "[\\s,，:：]{0,9}";
const the = `(?:${gap}(?:the|my|your|all))?`;
const number = "\\d{1,9}|[a-z]{1,8}|[一二两三四五六七八九十]";
const helpers = "(?:helpers?|sub-?agents?)";
/** A session by key or label, in quotes if it contains spaces. Pronouns are excluded. */
const target = `(?!(?:me|us|you|the|a|an|your)\\b)(?:"(?<quoted>[^"]{1,512})"|(?<plain>[^\\s"“”「」,，]{1,512}))`;
/** In Chinese, a key does not have to be followed by a space. */
const zhTarget = `(?![我你您他她它])(?:["“「](?<quoted>[^"”」]{1,512})["”」]|(?<plain>[A-Za-z0-9][\\w:.@/#-]{0,511}))`;

function pattern(...parts: readonly string[]): RegExp {
  return new RegExp(`^(?:${parts.join("")})`, "iu");
}

/** In order of precedence: the first match wins. */
export const requests: readonly Request[] = [
  {
    id: "help",
    examples: { en: "what can you do", zh: "你能做什么" },
    begins: {
      en: pattern("(?:help|what can you do|who are you|what are you)", end),
      zh: pattern("(?:帮助|你能做什么|你会做什么|你是谁)", end),
    },
    tool: null,
    answer: help,
  },
  {
    id: "list",
    examples: { en: "list the sessions", zh: "列出会话" },
    begins: {
      en: pattern(`(?:list|show)(?:${gap}me)?${the}${gap}sessions`, end),
      zh: pattern("(?:(?:列出|显示)(?:所有|全部)?的?会话|有哪些会话)", end),
    },
    tool: "sessions_list",
    answer: (found) => useSessionTool(found, "sessions_list", {}),
  },
  {
    id: "read",
    examples: { en: "read the session support", zh: "读会话 support" },
    begins: {
      en: pattern(`(?:read|show)${the}${gap}(?:session|history of)${gap}`, target, end),
      zh: pattern("(?:读取|读|查看)会话\\s{0,9}", zhTarget, end),
    },
    tool: "sessions_history",
    answer: (found) =>
      useSessionTool(found, "sessions_history", { sessionKey: targetOf(found) ?? "", limit: 20 }),
  },
  {
    id: "tell",
    examples: { en: "tell support that the door is open", zh: "告诉 support 门开着" },
    begins: {
      en: pattern(`tell${gap}(?:the session )?`, target, `[\\s,]{1,9}(?:that${gap})?`),
      zh: pattern("告诉\\s{0,9}(?:会话\\s{0,9})?", zhTarget, separator),
    },
    tool: "sessions_send",
    answer: (found) => sendMessage(found, null),
  },
  {
    id: "ask",
    examples: { en: "ask support how it is going and wait", zh: "问 support 现在怎么样并等待" },
    begins: {
      en: pattern(`ask${gap}(?:the session )?`, target, "[\\s,]{1,9}"),
      zh: pattern("问\\s{0,9}(?:会话\\s{0,9})?", zhTarget, separator),
    },
    tool: "sessions_send",
    answer: (found) => sendMessage(found, 60),
  },
  {
    id: "spawn",
    examples: {
      en: "spawn three helpers to describe the gardens of Kyoto and summarize",
      zh: "派三个助手去描述京都的花园并总结",
    },
    begins: {
      en: pattern(
        `(?:spawn|start)${gap}(?:(?<number>${number})${gap})?${helpers}\\b(?:${gap}to\\b)?`,
        separator,
      ),
      zh: pattern(`派出?\\s{0,9}(?:(?<number>${number})\\s{0,9})?个?助手\\s{0,9}[去来]?`, separator),
    },
    tool: "sessions_spawn",
    answer: spawnHelpers,
  },
  {
    id: "search",
    examples: { en: "search for Kyoto", zh: "搜索京都" },
    begins: {
      en: pattern(`search(?:${the}${gap}sessions)?(?:${gap}for)?[\\s:]{1,9}`),
      zh: pattern("(?:搜索|查找)(?:会话)?", separator),
    },
    tool: "session_search",
    answer: (found) => {
      const query = found.rest.trim();
      if (query === "") return say(found.choose("What should I search for?", "要搜索什么？"));
      return useSessionTool(found, "session_search", { query });
    },
  },
  {
    id: "status",
    examples: { en: "status of support", zh: "support 的状态" },
    begins: {
      en: pattern(`(?:show${the}${gap})?status(?:${gap}of${gap}${target})?`, end),
      zh: pattern(`(?:${zhTarget}\\s{0,9}的)?状态`, end),
    },
    tool: "session_status",
    answer: (found) => {
      const sessionKey = targetOf(found);
      return useSessionTool(found, "session_status", sessionKey === null ? {} : { sessionKey });
    },
  },
  {
    id: "use",
    examples: { en: 'use the tool weather with {"city": "Kyoto"}', zh: '用工具 weather {"city": "京都"}' },
    begins: {
      en: pattern(
        `(?:use|call)${gap}(?:the${gap})?tool${gap}(?<tool>[\\w.:/-]{1,128})(?:${gap}with\\b)?`,
        separator,
      ),
      zh: pattern("(?:使用|调用|用)工具\\s{0,9}(?<tool>[\\w.:/-]{1,128})", separator),
    },
    tool: null,
    answer: useTool,
  },
  {
    id: "slow",
    examples: { en: "be slow for 5 seconds", zh: "慢 5 秒" },
    begins: {
      en: pattern(
        `be${gap}slow${gap}(?:for${gap})?(?<number>\\d{1,9}(?:\\.\\d{1,9})?)\\s{0,9}`,
        "(?<unit>milliseconds?|ms|minutes?|seconds?|s)",
        end,
      ),
      zh: pattern("慢\\s{0,9}(?<number>\\d{1,9}(?:\\.\\d{1,9})?)\\s{0,9}(?<unit>毫秒|分钟|秒)", end),
    },
    tool: null,
    answer: answerSlowly,
  },
  {
    id: "fail",
    examples: { en: "fail with status 429", zh: "失败 429" },
    begins: {
      en: pattern(`fail(?:${gap}(?<once>once)|${gap}with(?:${gap}status)?${gap}(?<number>[45]\\d\\d))?`, end),
      zh: pattern("失败(?:(?<once>一次)|\\s{0,9}(?<number>[45]\\d\\d))?", end),
    },
    tool: null,
    answer: fail,
  },
  {
    id: "think",
    examples: { en: "think about the gardens of Kyoto", zh: "想一想京都的花园" },
    begins: { en: pattern(`think${gap}about[\\s:]{1,9}`), zh: pattern("(?:想一想|想想)", separator) },
    tool: null,
    answer: ({ rest, language, choose }) => {
      const subject = quote(rest, language);
      return {
        ...say(choose(`I thought about ${subject}.`, `我想过了${subject}。`)),
        thinking: choose(
          `I was asked to think about ${subject}. That is enough for an answer.`,
          `要我想一想${subject}。这足够回答了。`,
        ),
      };
    },
  },
  {
    id: "repeat",
    examples: { en: "repeat good morning", zh: "重复 早上好" },
    begins: { en: pattern("(?:repeat|say)[\\s:]{1,9}"), zh: pattern("(?:重复|说)", separator) },
    tool: null,
    answer: ({ rest }) => (rest.trim() === "" ? null : say(rest.trim())),
  },
  {
    id: "task",
    examples: { en: "describe the gardens of Kyoto", zh: "描述京都的花园" },
    begins: {
      en: pattern(
        "(?<verb>describe|explain|summari[sz]e|write|plan|compare|research|find|tell me)",
        `[\\s:]{1,9}(?:about${gap})?`,
      ),
      zh: pattern("(?<verb>描述|解释|总结|写|计划|比较|研究|介绍|告诉我)(?:一下)?", separator),
    },
    tool: null,
    answer: ({ groups, rest, language, choose, conversation }) =>
      doTask({ verb: groups.verb, subject: rest, language, choose }, conversation),
  },
];

const politeness = /^(?:please|could you|can you|请|麻烦你?|帮我)[\s,，]{0,9}/iu;
/**
 * The maximum number of paragraphs to skip in search of the request, because a hook can put context before it.
 */
const maxParagraphs = 100;
/** In a group, the name of the sender precedes the message. */
const senderName = /^[^\n:]{1,200}: /;

export type MatchedRequest = Pick<FoundRequest, "language" | "choose" | "rest" | "groups"> &
  Pick<Request, "answer">;

/**
 * Returns the requests that a text might mean, best first. If no request matches at the beginning of the text, uses the
 * first paragraph that matches one, with or without the name of a sender.
 */
export function matchRequests(text: string, source: Conversation["source"]): readonly MatchedRequest[] {
  const breaks = source === null ? [...text.matchAll(/\n[ \t]{0,99}\n/g)].slice(0, maxParagraphs) : [];
  for (const start of [0, ...breaks.map((found) => found.index + found[0].length)]) {
    const paragraph = text.slice(start);
    for (const request of [paragraph, source === null ? paragraph.replace(senderName, "") : ""]) {
      const matched = matchBeginning(request);
      if (matched.length > 0) return matched;
    }
  }
  return [];
}

function matchBeginning(given: string): readonly MatchedRequest[] {
  const text = given.replace(politeness, "") || given;
  return requests.flatMap(({ begins, answer }) =>
    (["en", "zh"] as const).flatMap((language) => {
      const found = begins[language].exec(text);
      if (found === null) return [];
      const rest = text.slice(found[0].length);
      return [{ answer, language, choose: chooseIn(language), rest, groups: found.groups ?? {} }];
    }),
  );
}

/** Lists the table's examples that work with the offered tools. */
function help({ language, choose, conversation }: FoundRequest): Reply {
  const offered = conversation.tools.map(({ name }) => name);
  const isPossible = ({ id, tool }: Request) =>
    tool === null ? id !== "use" || offered.length > 0 : offered.includes(tool);
  const lines = requests
    .filter((request) => request.id !== "help" && isPossible(request))
    .map(({ examples }) => `- ${examples[language]}`);
  return say([`${introduce(choose)} ${choose("I understand:", "我懂得：")}`, ...lines].join("\n"));
}
