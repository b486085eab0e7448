import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { textTokens } from "../src/transcript/text-tokens.ts";
import type { Acts, Figures, Job } from "./side.ts";
import { timedOften } from "./side.ts";

const warmUpMs = 500;

/** The speed and the error of the token estimate. */
export const acts: Acts = { estimate };

/** Returns the samples of one kind, or all of them. */
export function samplesOf({ folder, kind }: Job): string[] {
  return readdirSync(folder)
    .filter((name) => kind === undefined || name.startsWith(`${kind}-`))
    .toSorted()
    .map((name) => readFileSync(join(folder, name), "utf8"));
}

/** Returns one text with at least this many characters, flat in memory like text read from a file. */
export function longText(texts: readonly string[], characters: number): string {
  const once = texts.join("\n");
  return Buffer.from(once.repeat(Math.ceil(characters / once.length))).toString();
}

/** Measured after the compiler has optimized the code. */
export async function speedOf(text: string, count: (text: string) => number): Promise<number> {
  for (const end = performance.now() + warmUpMs; performance.now() < end; ) count(text);
  const ms = await timedOften(7, () => count(text));
  return Buffer.byteLength(text) / 1e6 / (ms / 1000);
}

async function estimate(job: Job): Promise<Figures> {
  const texts = samplesOf(job);
  const mbPerSecond = await speedOf(longText(texts, job.count ?? 1), (text) => textTokens(text));
  const [o200k, cl100k] = await Promise.all([
    import("gpt-tokenizer/encoding/o200k_base"),
    import("gpt-tokenizer/encoding/cl100k_base"),
  ]);
  const off = (text: string, vocabulary: "o200k" | "cl100k", count: (text: string) => number) =>
    (textTokens(text, vocabulary) / count(text) - 1) * 100;
  const all = texts.join("\n");
  const each = texts.flatMap((text) => [
    off(text, "o200k", o200k.countTokens),
    off(text, "cl100k", cl100k.countTokens),
  ]);
  return {
    mbPerSecond,
    o200kPercent: off(all, "o200k", o200k.countTokens),
    cl100kPercent: off(all, "cl100k", cl100k.countTokens),
    worstPercent: Math.max(...each.map(Math.abs)),
  };
}
