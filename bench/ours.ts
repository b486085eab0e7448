import { monitorEventLoopDelay } from "node:perf_hooks";
import { setImmediate as immediate, setTimeout as sleep } from "node:timers/promises";
import type { SessionQuery, Store } from "../src/store/contract.ts";
import { openFilesStore } from "../src/store/files/store.ts";
import { items } from "./messages.ts";
import type { Acts, Figures, Job } from "./side.ts";
import { bytesIn, Latencies, removeQuietly, textLength, timed, timedOften, watchMemory } from "./side.ts";
import { seeded, stockOfTexts } from "./texts.ts";

/**
 * Skein, used only through the store contract. Complete turns are in a separate file, together with everything they
 * load.
 */

const cwd = "/home/ann/project";
const scope = {};
export const keyOf = (sessionId: string) => `agent:main:session:${sessionId}`;

export const acts: Acts = {
  append,
  open,
  load,
  fork,
  page,
  list,
  disk,
  start,
  search,
  turn: async (job) => (await import("./turns.ts")).turn(job),
  crowd: async (job) => (await import("./turns.ts")).crowd(job),
  spawn: async (job) => (await import("./spawns.ts")).spawn(job),
  serve: async (job) => (await import("./postgres-turns.ts")).serve(job),
  work: async (job) => (await import("./postgres-workers.ts")).work(job),
  feed: async (job) => (await import("./postgres-feed.ts")).feed(job),
  recall: async (job) => (await import("./recall.ts")).recall(job),
  listTool: async (job) => (await import("./session-lists.ts")).listTool(job),
};

async function withStore<T>(job: Job, act: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(job);
  try {
    return await act(store);
  } finally {
    await store.close();
  }
}

/** Opens the store in the folder or, if there is an address, in its database. */
export async function openStore({ folder, url, durability = "full" }: Job): Promise<Store> {
  if (url === undefined) return openFilesStore({ root: folder, durability });
  const { openPostgres } = await import("../src/store/postgres/open-postgres.ts");
  const backend = await openPostgres({ url });
  return { ...backend.openStore(), close: () => backend.close() };
}

async function append(job: Job): Promise<Figures> {
  const { count = 1, sessions = 1, warmUp = 500 } = job;
  const named = (name: string) => Array.from({ length: sessions }, (_, index) => `${name}-${index}`);
  const warm = { ...job, folder: `${job.folder}.warm-up`, count: warmUp };
  const latencies = new Latencies();
  if (warmUp > 0) await withStore(warm, (store) => appendTo(store, named("warm-up"), warm, new Latencies()));
  removeQuietly(warm.folder);
  const ms = await withStore(job, (store) => appendTo(store, named("bench"), job, latencies));
  const perCall = { p50Ms: latencies.at(0.5), p99Ms: latencies.at(0.99) };
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count, ...perCall };
}

async function appendTo(
  { sessions }: Store,
  names: readonly string[],
  job: Job,
  latencies: Latencies,
): Promise<number> {
  const { count = 1, batch = 1 } = job;
  const textOf = stockOfTexts(textLength);
  const share = Math.ceil(count / names.length);
  for (const sessionId of names) await sessions.create(scope, { key: keyOf(sessionId), sessionId, cwd });
  const fill = async (sessionId: string) => {
    for (let from = 0; from < share; from += batch) {
      const some = items(from, Math.min(batch, share - from), textOf);
      await latencies.time(() => sessions.append(scope, sessionId, some));
    }
  };
  return timed(() => Promise.all(names.map(fill)));
}

/**
 * Opens a session for the first time in this process, in a running store. Reads its context, then does the first
 * append.
 */
async function open(job: Job): Promise<Figures> {
  const { sessionId = "", byteBudget } = job;
  const textOf = stockOfTexts(textLength);
  const started = performance.now();
  return withStore(job, async ({ sessions }) => {
    const storeMs = performance.now() - started;
    const options = byteBudget === undefined ? {} : { byteBudget };
    let messages = 0;
    const { result: ms, rssMb } = await watchMemory(() =>
      timed(async () => {
        messages = (await sessions.context(scope, sessionId, options))?.messages.length ?? 0;
      }),
    );
    const appendMs = await timed(() => sessions.append(scope, sessionId, items(0, 1, textOf)));
    return { ms, appendMs, storeMs, rssMb, messages };
  });
}

async function load(job: Job): Promise<Figures> {
  return withStore(job, async ({ sessions }) => {
    let messages = 0;
    const ms = await timed(async () => {
      messages = (await sessions.context(scope, "bench-0"))?.messages.length ?? 0;
    });
    return { ms, messages };
  });
}

async function fork(job: Job): Promise<Figures> {
  return withStore(job, async ({ sessions }) => {
    const sessionId = `fork-${process.pid}`;
    const leafId = (await sessions.get(scope, "bench-0"))?.leafId ?? null;
    const ms = await timed(() =>
      sessions.fork(scope, "bench-0", leafId, { key: keyOf(sessionId), sessionId, cwd }),
    );
    await sessions.remove(scope, sessionId);
    return { ms };
  });
}

/** Reads the last twenty entries, and the twenty before each of several entries. */
async function page(job: Job): Promise<Figures> {
  const { sessionId = "", ids = [] } = job;
  return withStore(job, async ({ sessions }) => {
    const read = (before?: string) =>
      sessions.page(scope, sessionId, {
        along: "branch",
        limit: 20,
        ...(before === undefined ? {} : { before }),
      });
    const firstMs = await timed(() => read());
    const lastMs = await timedOften(50, () => read());
    const anywhereMs = await timedOften(50, (round) => read(ids[(round * 37) % ids.length]));
    return { firstMs, lastMs, anywhereMs };
  });
}

function queryOf(filter: Job["filter"]): SessionQuery {
  if (filter === "filtered") return { kinds: ["group", "cron"], activeSince: 1 };
  return filter === "text" ? { text: "weekly 77" } : {};
}

async function list(job: Job): Promise<Figures> {
  const narrowed = job.filter === "filtered" ? { agentId: "helper" } : scope;
  return withStore(job, async ({ sessions }) => {
    let listed = 0;
    const firstMs = await timed(() => sessions.list(narrowed, queryOf(job.filter)));
    const read = async () => {
      listed = (await sessions.list(narrowed, queryOf(job.filter))).sessions.length;
    };
    const ms = await timedOften(50, read);
    const latencies = new Latencies();
    for (let round = 0; round < 200; round++) await latencies.time(read);
    return { ms, firstMs, p99Ms: latencies.at(0.99), listed };
  });
}

async function disk(job: Job): Promise<Figures> {
  await withStore(job, bringUp);
  const payload = job.payload ?? (job.count ?? 1) * textLength;
  const bytes = bytesIn(job.folder, (path) => path.endsWith(".jsonl"));
  const index = bytesIn(job.folder, (path) => /\.db(-wal|-shm)?$/.test(path));
  return { bytes, ratio: bytes / payload, indexBytes: index, indexRatio: index / payload };
}

/** As in a running system, lists and searches find everything. */
export async function bringUp({ sessions }: Store): Promise<void> {
  for (;;) {
    const { behind } = await sessions.list(scope, { limit: 1 });
    if (behind === 0) return;
    await sleep(20);
  }
}

async function start(job: Job): Promise<Figures> {
  const started = performance.now();
  return withStore(job, async ({ sessions }) => {
    const openMs = performance.now() - started;
    const { result: listMs, rssMb } = await watchMemory(() => timed(() => sessions.list(scope, {})));
    return { ms: openMs + listMs, openMs, listMs, rssMb };
  });
}

/** Runs queries one after another and measures how long the event loop was blocked. */
async function search(job: Job): Promise<Figures> {
  const { queries = [] } = job;
  return withStore(job, async (store) => {
    const random = seeded(3);
    for (let round = 0; round < 20; round++)
      await store.search.search(scope, { text: queries[Math.floor(random() * queries.length)] ?? "" });
    const delay = monitorEventLoopDelay({ resolution: 1 });
    const times: number[] = [];
    let hits = 0;
    delay.enable();
    // The first tick only starts the measurement.
    await sleep(20);
    for (const text of queries) {
      times.push(
        await timed(async () => {
          hits += (await store.search.search(scope, { text })).hits.length;
        }),
      );
      await immediate();
    }
    await sleep(20);
    delay.disable();
    const sorted = times.toSorted((a, b) => a - b);
    const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0;
    return {
      p50Ms: at(0.5),
      p95Ms: at(0.95),
      maxMs: sorted.at(-1) ?? 0,
      blockedMs: delay.max / 1e6,
      hitsPerQuery: hits / queries.length,
    };
  });
}
