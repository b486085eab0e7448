import { cutText } from "../../core/text.ts";

/** What is understood is said in two languages, and answered in the one that it was said in. */
export type Language = "en" | "zh";

const mostLooked = 2000;

export function languageOf(text: string): Language {
  const head = text.slice(0, mostLooked);
  const han = head.match(/\p{Script=Han}/gu)?.length ?? 0;
  const latin = head.match(/[A-Za-z]+/g)?.length ?? 0;
  return han > 0 && han >= latin ? "zh" : "en";
}

/** On one line, and not longer than that. */
export function shortText(text: string, longest = 300): string {
  const line = text
    .slice(0, longest * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= longest ? line : `${cutText(line, longest)}…`;
}

export function quoted(text: string, language: Language, longest = 200): string {
  const short = shortText(text, longest);
  return language === "zh" ? `「${short}」` : `“${short}”`;
}

const numbers: Readonly<Record<string, number>> = {
  a: 1,
  an: 1,
  one: 1,
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  nine: 9,
  ten: 10,
  some: 2,
  several: 3,
  few: 3,
  一: 1,
  二: 2,
  两: 2,
  三: 3,
  四: 4,
  五: 5,
  六: 6,
  七: 7,
  八: 8,
  九: 9,
  十: 10,
  几: 3,
};

/** Digits, or a word of either language. */
export function numberIn(text: string | undefined): number | null {
  if (text === undefined || text === "") return null;
  const word = text.toLowerCase();
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(word)) return Number(word);
  return Object.hasOwn(numbers, word) ? (numbers[word] ?? null) : null;
}

/** Words of scripts with blanks; of Chinese each character. */
export function wordsOf(text: string): readonly string[] {
  return text.match(/\p{Script=Han}|[\p{L}\p{N}_'’-]{1,64}/gu) ?? [];
}

/** The first few words that say something, each once. */
export function keyWords(text: string, most = 5): readonly string[] {
  const runs = text.slice(0, mostLooked).match(/\p{Script=Han}{2,8}|[\p{L}\p{N}_-]{4,64}/gu) ?? [];
  return [...new Set(runs)].slice(0, most);
}
