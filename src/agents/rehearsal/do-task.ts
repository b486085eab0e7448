import { shortHash } from "../../core/short-hash.ts";
import type { Choose, Conversation, Language } from "./conversation.ts";
import { hasIntroduced, isHelper, shorten } from "./conversation.ts";
import type { Reply } from "./play-reply.ts";
import { readSpreadMs, say } from "./play-reply.ts";
import type { TaskKind, Wording } from "./task-wordings.ts";
import { englishWordings } from "./task-wordings.ts";
import { chineseWordings } from "./task-wordings-zh.ts";

export interface Task {
  /** The verb at the beginning of the request. Absent if the request can begin with any text. */
  readonly verb?: string | undefined;
  readonly subject: string;
  readonly language: Language;
  readonly choose: Choose;
}

const longestSubject = 120;
/** Only seconds are recognized, because a task such as “explain the plan in 5 minutes” refers to its subject. */
const timeEnding =
  /[\s,，]{0,3}(?:\b(?:in|within) (?<en>\d{1,3}(?:\.\d{1,3})?) ?(?:seconds?|s)|用\s?(?<zh>\d{1,3}(?:\.\d{1,3})?)\s?秒)[.!。！]?$/iu;

/**
 * Returns an outline that depends only on the task's text. Notes once, for users, that a real model would fill it in.
 * A task that ends with a time is answered over that time.
 */
export function doTask(
  { verb, subject: whole, language, choose }: Task,
  conversation: Conversation,
): Reply | null {
  const [given, spreadMs] = splitTime(whole.trim());
  const subject = toTitle(given);
  if (subject === "") return null;
  const kind = kindOf(verb);
  const { lead, points, close } = pickWording(
    (language === "zh" ? chineseWordings : englishWordings)[kind],
    given,
  );
  const days = kind === "plan" ? planDays(given, choose) : [];
  const list = days.length > 0 ? days : points.map((point) => `- ${point}`);
  const isNoted = isHelper(conversation) || conversation.source !== null || hasIntroduced(conversation);
  const note = choose(
    "*I am the rehearsal model and know no facts, so this is an outline; a real model would fill it in.*",
    "*我是排练模型，不掌握事实，所以这只是提纲；真正的模型会把它写完整。*",
  );
  const paragraphs = [
    choose(`**${subject}**: ${lead}`, `**${subject}**：${lead}`),
    list.join("\n"),
    ...(close === undefined || days.length > 0 ? [] : [close]),
    ...(isNoted ? [] : [note]),
  ];
  return { ...say(paragraphs.join("\n\n")), spreadMs };
}

/** Examines only the last characters, so that the time does not depend on the length of the text. */
function splitTime(text: string): readonly [task: string, spreadMs: number] {
  const from = Math.max(0, text.length - 40);
  const found = timeEnding.exec(text.slice(from));
  if (found === null) return [text, 0];
  return [text.slice(0, from + found.index), readSpreadMs(found.groups?.en ?? found.groups?.zh)];
}

const kinds: readonly (readonly [RegExp, TaskKind])[] = [
  [/^(?:describe|tell me|描述|介绍|告诉我)/iu, "describe"],
  [/^(?:explain|解释)/iu, "explain"],
  [/^(?:compare|比较)/iu, "compare"],
  [/^(?:plan|计划)/iu, "plan"],
  [/^(?:write|写)/iu, "write"],
  [/^(?:summari[sz]e|总结)/iu, "summarize"],
  [/^(?:research|find|研究)/iu, "research"],
];

function kindOf(verb = ""): TaskKind {
  return kinds.find(([pattern]) => pattern.test(verb))?.[1] ?? "other";
}

/** Always picks the same wording for the same text. */
function pickWording(choices: readonly Wording[], text: string): Wording {
  return choices[hashOf(text) % choices.length] as Wording;
}

function hashOf(text: string): number {
  return Number.parseInt(shortHash(text).slice(0, 8), 16);
}

/** Returns the text on one line and capitalized, without characters that would end the bold text. */
function toTitle(text: string): string {
  const line = shorten(text.replace(/[*`\\]/g, ""), longestSubject).replace(
    /[\s.。!！?？:：;；,，]{1,9}$/u,
    "",
  );
  return line.charAt(0).toLocaleUpperCase("en") + line.slice(1);
}

const dayCount =
  /\b(?<digits>\d|two|three|four|five|six|seven)[ -]days?\b|(?<han>[2-7二两三四五六七])\s?天/iu;
const dayNumbers = [
  ["two", "二", "两"],
  ["three", "三"],
  ["four", "四"],
  ["five", "五"],
  ["six", "六"],
  ["seven", "七"],
];

/** Returns one line per day if the task names two to seven days, otherwise nothing. */
function planDays(text: string, choose: Choose): readonly string[] {
  const { digits, han } = dayCount.exec(text.slice(0, 2000))?.groups ?? {};
  const word = (digits ?? han ?? "").toLowerCase();
  const index = dayNumbers.findIndex((names) => names.includes(word));
  const count = index === -1 ? Number(word) : index + 2;
  if (!(count >= 2 && count <= 7)) return [];
  const seed = hashOf(text);
  return Array.from({ length: count }, (_, day) => {
    const choices = day === 0 ? firstDays : day === count - 1 ? lastDays : middleDays;
    const [en, zh] = choices[(seed + day) % choices.length] as DayText;
    return choose(`- **Day ${day + 1}**: ${en}`, `- **第 ${day + 1} 天**：${zh}`);
  });
}

type DayText = readonly [en: string, zh: string];
const firstDays: readonly DayText[] = [
  ["arrival, one thing before noon, an early evening.", "到达，上午一件事，早点休息。"],
  ["a slow morning, a walk to look around, a long dinner.", "慢慢开始，四处走走，好好吃顿晚饭。"],
  ["settle in, ask what has changed, decide nothing yet.", "安顿下来，问问有什么变化，先不做决定。"],
];
const middleDays: readonly DayText[] = [
  ["the main thing in the morning, nothing fixed after four.", "上午做最主要的事，下午四点以后不安排。"],
  ["the longest way, with a break where it is quiet.", "走最远的路，在安静的地方休息。"],
];
const lastDays: readonly DayText[] = [
  ["what was left out so far, then an unhurried end.", "补上之前没做的，然后从容结束。"],
  ["the favorite once more, and time to pack.", "再做一次最喜欢的，留出收拾的时间。"],
  ["one surprise, one photograph, an early way home.", "一个惊喜，一张照片，早点回家。"],
];
