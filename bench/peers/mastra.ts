import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { roleOf } from "../messages.ts";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, Latencies, textLength, timed, timedOften } from "../side.ts";
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
  listThreads(asked: object): Promise<{ threads: readonly unknown[] }>;
}

/** The same memory with its messages in PostgreSQL. */
export const aboutPostgres: About = {
  name: "Mastra Postgres",
  packages: ["@mastra/pg", "@mastra/memory", "@mastra/core"],
  durability: "committed, synced by the server",
};

type Storage = new (options: object) => { init(): Promise<void> };

export const acts: Acts = { append, load, fork, page, disk, fill, list, open };

const resourceId = "ann";

async function storageFor({ folder, url }: Job): Promise<InstanceType<Storage>> {
  if (url !== undefined) {
    const { PostgresStore } = await loadPackage<{ PostgresStore: Storage }>("@mastra/pg");
    return new PostgresStore({ id: "bench", connectionString: url });
  }
  mkdirSync(folder, { recursive: true });
  const { LibSQLStore } = await loadPackage<{ LibSQLStore: Storage }>("@mastra/libsql");
  return new LibSQLStore({ id: "bench", url: `file:${join(folder, "mastra.db")}` });
}

async function memoryFor(job: Job): Promise<Memory> {
  const { Memory } = await loadPackage<{ Memory: new (options: object) => Memory }>("@mastra/memory");
  const storage = await storageFor(job);
  await storage.init();
  return new Memory({ storage });
}

async function append(job: Job): Promise<Figures> {
  const { count = 1, batch = 1, warmUp = 500, sessions = 1 } = job;
  const memory = await memoryFor(job);
  const latencies = new Latencies();
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
      await latencies.time(() => memory.saveMessages({ messages }));
    }
  };
  await fill("warm-up", warmUp);
  const ms = await timed(() =>
    Promise.all(Array.from({ length: sessions }, (_, index) => fill(`bench-${index}`, count / sessions))),
  );
  const perCall = { p50Ms: latencies.at(0.5), p99Ms: latencies.at(0.99) };
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count, ...perCall };
}

/** Creates threads without messages, for a list. */
async function fill(job: Job): Promise<Figures> {
  const memory = await memoryFor(job);
  const threads = Array.from({ length: job.count ?? 1 }, (_, index) => `s${index}`);
  await Promise.all(
    threads.map((threadId) => memory.createThread({ resourceId, threadId, title: threadId })),
  );
  return { threads: threads.length };
}

async function list(job: Job): Promise<Figures> {
  const memory = await memoryFor(job);
  let listed = 0;
  const read = async () => {
    listed = (await memory.listThreads({ filter: { resourceId }, page: 0, perPage: 100 })).threads.length;
  };
  const firstMs = await timed(read);
  const ms = await timedOften(50, read);
  const latencies = new Latencies();
  for (let round = 0; round < 200; round++) await latencies.time(read);
  return { ms, firstMs, p99Ms: latencies.at(0.99), listed };
}

/** Reads as many of the newest messages as Skein's context has after a compaction. */
async function open(job: Job): Promise<Figures> {
  const memory = await memoryFor(job);
  let messages = 0;
  const ms = await timed(async () => {
    const page = { perPage: 251, page: 0, orderBy: { field: "createdAt", direction: "DESC" } };
    messages = (await memory.recall({ threadId: "bench-0", resourceId, ...page })).messages.length;
  });
  return { ms, messages };
}

async function load(job: Job): Promise<Figures> {
  const memory = await memoryFor(job);
  let messages = 0;
  const ms = await timed(async () => {
    const found = await memory.recall({ threadId: "bench-0", resourceId, perPage: false });
    messages = found.messages.length;
  });
  return { ms, messages };
}

async function fork(job: Job): Promise<Figures> {
  const memory = await memoryFor(job);
  return { ms: await timed(() => memory.cloneThread({ sourceThreadId: "bench-0" })) };
}

async function page(job: Job): Promise<Figures> {
  const memory = await memoryFor(job);
  const recall = (page: number) =>
    memory.recall({ threadId: "bench-0", resourceId, perPage: 20, page, orderBy: { direction: "DESC" } });
  return { lastMs: await timedOften(10, () => recall(0)) };
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const bytes = bytesIn(folder);
  return { bytes, ratio: bytes / (count * textLength) };
}
