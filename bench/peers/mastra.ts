import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { roleOf } from "../messages.ts";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, textLength, timed, timedOften } from "../side.ts";
import { stockOfTexts } from "../texts.ts";
import { load as loadPackage } from "./load.ts";

export const about: About = {
  name: "Mastra LibSQL",
  packages: ["@mastra/memory", "@mastra/libsql", "@mastra/core"],
  durability: "WAL, synchronous=NORMAL: synced at checkpoints only",
};

interface Memory {
  createThread(thread: object): Promise<unknown>;
  saveMessages(given: { messages: readonly object[] }): Promise<unknown>;
  recall(asked: object): Promise<{ messages: readonly unknown[] }>;
  cloneThread(asked: object): Promise<unknown>;
}

export const acts: Acts = { append, load, fork, page, disk };

const resourceId = "ann";

async function memoryIn(folder: string): Promise<Memory> {
  mkdirSync(folder, { recursive: true });
  const { LibSQLStore } = await loadPackage<{
    LibSQLStore: new (options: object) => { init(): Promise<void> };
  }>("@mastra/libsql");
  const { Memory } = await loadPackage<{ Memory: new (options: object) => Memory }>("@mastra/memory");
  const storage = new LibSQLStore({ id: "bench", url: `file:${join(folder, "mastra.db")}` });
  await storage.init();
  return new Memory({ storage });
}

async function append({ folder, count = 1, batch = 1, warmUp = 500 }: Job): Promise<Figures> {
  const memory = await memoryIn(folder);
  const textOf = stockOfTexts(textLength);
  const message = (threadId: string, index: number) => ({
    id: `${threadId}-${index}`,
    threadId,
    resourceId,
    role: roleOf(index),
    type: "text",
    createdAt: new Date(1_790_000_000_000 + index),
    content: { format: 2, parts: [{ type: "text", text: textOf(index) }] },
  });
  const fill = async (threadId: string, amount: number) => {
    await memory.createThread({ resourceId, threadId, title: threadId });
    for (let from = 0; from < amount; from += batch) {
      const some = Math.min(batch, amount - from);
      const messages = Array.from({ length: some }, (_, index) => message(threadId, from + index));
      await memory.saveMessages({ messages });
    }
  };
  await fill("warm-up", warmUp);
  const ms = await timed(() => fill("bench-0", count));
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count };
}

async function load({ folder }: Job): Promise<Figures> {
  const memory = await memoryIn(folder);
  let messages = 0;
  const ms = await timed(async () => {
    const found = await memory.recall({ threadId: "bench-0", resourceId, perPage: false });
    messages = found.messages.length;
  });
  return { ms, messages };
}

async function fork({ folder }: Job): Promise<Figures> {
  const memory = await memoryIn(folder);
  return { ms: await timed(() => memory.cloneThread({ sourceThreadId: "bench-0" })) };
}

async function page({ folder }: Job): Promise<Figures> {
  const memory = await memoryIn(folder);
  const recall = (page: number) =>
    memory.recall({ threadId: "bench-0", resourceId, perPage: 20, page, orderBy: { direction: "DESC" } });
  return { lastMs: await timedOften(10, () => recall(0)) };
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const bytes = bytesIn(folder);
  return { bytes, ratio: bytes / (count * textLength) };
}
