import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The questions and conversations of `test/golden/recall`, and how the recall of a search is computed on them. */

export interface RecallMessage {
  readonly conversation: string;
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly text: string;
}

export interface RecallQuestion {
  readonly id: string;
  readonly question: string;
  readonly evidence: readonly string[];
}

/** Recall is measured among this many first hits. */
export const firstHits = 10;

export const recallFolder = join(import.meta.dirname, "../golden/recall");

function readLines<Line>(folder: string, name: string): Line[] {
  const lines = readFileSync(join(folder, name), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Line);
}

export function readRecallMessages(folder = recallFolder): RecallMessage[] {
  return readLines(folder, "conversations.jsonl");
}

export function readRecallQuestions(folder = recallFolder): RecallQuestion[] {
  return readLines(folder, "questions.jsonl");
}

/** The mean share of a question's evidence among the first hits. */
export async function measureRecall(
  questions: readonly RecallQuestion[],
  find: (question: string) => Promise<readonly string[]>,
): Promise<number> {
  let sum = 0;
  for (const { question, evidence } of questions) {
    const found = await find(question);
    sum += evidence.filter((id) => found.includes(id)).length / evidence.length;
  }
  return sum / questions.length;
}

/** Splits a text into words without stems and stop words, and Chinese into pairs of characters. */
export function plainWords(text: string): string[] {
  const words = text.toLowerCase().match(/\p{Script=Han}+|[^\P{L}\p{Script=Han}]+|\p{N}+/gu) ?? [];
  return words.flatMap((word) => {
    const characters = Array.from(word);
    if (!/\p{Script=Han}/u.test(word) || characters.length === 1) return [word];
    return characters.slice(1).map((character, at) => `${characters[at]}${character}`);
  });
}
