import { fdatasyncSync, mkdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { piMessage } from "../messages.ts";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, textLength, timed, withFile } from "../side.ts";
import { stockOfTexts } from "../texts.ts";

export const about: About = {
  name: "plain JSONL",
  packages: [],
  durability: "fdatasync after each call",
};

export const acts: Acts = { append, load, disk };

function lines(from: number, count: number, textOf: (index: number) => string): string {
  return Array.from({ length: count }, (_, each) => {
    const index = from + each;
    return `${JSON.stringify({ id: index, message: piMessage(index, textOf(index), index) })}\n`;
  }).join("");
}

/** The cost of the disk itself: an open file, one write, one sync. */
async function append({
  folder,
  count = 1,
  batch = 1,
  warmUp = 500,
  durability = "full",
}: Job): Promise<Figures> {
  const textOf = stockOfTexts(textLength);
  mkdirSync(folder, { recursive: true });
  const fill = (name: string, amount: number) =>
    withFile(join(folder, name), "a", (handle) => {
      for (let from = 0; from < amount; from += batch) {
        writeSync(handle, lines(from, Math.min(batch, amount - from), textOf));
        if (durability === "full") fdatasyncSync(handle);
      }
    });
  fill("warm-up.jsonl", warmUp);
  const ms = await timed(() => fill("bench-0.jsonl", count));
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count };
}

async function load({ folder }: Job): Promise<Figures> {
  let messages = 0;
  const ms = await timed(() => {
    const text = readFileSync(join(folder, "bench-0.jsonl"), "utf8");
    messages = text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line)).length;
  });
  return { ms, messages };
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const bytes = bytesIn(folder, (path) => path === "bench-0.jsonl");
  return { bytes, ratio: bytes / (count * textLength) };
}
