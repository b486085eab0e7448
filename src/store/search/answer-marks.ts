import { stemWord } from "./stem-word.ts";

/**
 * Describes what a text contains. Marks are determined when the text is indexed, so that ranking does not need the
 * text. For example, texts that contain a time rank higher for a question about a time. No word contains a dollar sign,
 * so no query matches a mark.
 */
export type AnswerMark = "$time" | "$number" | "$question";

/** The maximum number of marks on a text. */
export const mostMarks = 3;

const stems = (words: string) => new Set(words.split(/\s+/).map(stemWord));

/** "May" is missing because most texts use it as a verb. */
const timeWords = stems(
  `january february march april june july august september october november december jan feb mar apr jun jul aug sep
   sept oct nov dec monday tuesday wednesday thursday friday saturday sunday today tonight tomorrow yesterday noon
   midnight week weekend month year spring summer autumn winter christmas easter day night
   morning afternoon evening pm ago recently`,
);
const numberWords = stems(
  `two three four five six seven eight nine ten eleven twelve dozen hundred thousand half twice`,
);
const time =
  /\b\d{1,2}(?::\d\d\b|(?:st|nd|rd|th)\b| ?[ap]m\b)|\b(?:19|20)\d\d\b|(?<=[a-z,\d] )May\b|[月日号点周年天]|星期/u;
const number = /[\d一二三四五六七八九十百千两]/u;
const questionEnd = /[?？]["'”’)\]]*\s*$/u;

export function marksOf(text: string, words: readonly string[]): AnswerMark[] {
  const marks: AnswerMark[] = [];
  if (words.some((word) => timeWords.has(word)) || time.test(text)) marks.push("$time");
  if (words.some((word) => numberWords.has(word)) || number.test(text)) marks.push("$number");
  if (questionEnd.test(text.slice(-20))) marks.push("$question");
  return marks;
}

const asksTime =
  /(?:^|\b(?:and|by|from|since|until) )\W*when\b|\b(?:what|which) (?:day|date|time|year|month|week|weekend|hour)s?\b|什么时[候间]|几点|哪天|几号|哪年/iu;
const asksNumber =
  /\bhow (?:much|many|long|old|far|big|large|often|tall|heavy|high|fast|late|early)\b|\bwhat\b.*\b(?:cost|pay|paid|charge|spend|spent|earn|price|rent|fee|deposit|salary|amount|number|percentage|share|size|version|port|limit|rate|ratio|age|budget|score|temperature)\b|多少|多久|多长|几/iu;

/** Returns the marks of texts that can answer a question. */
export function askedMarks(question: string): AnswerMark[] {
  const marks: AnswerMark[] = [];
  if (asksTime.test(question)) marks.push("$time");
  if (asksNumber.test(question)) marks.push("$number");
  return marks;
}
