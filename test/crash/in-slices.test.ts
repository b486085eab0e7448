import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Slices, sliceBytes } from "../../src/core/slices.ts";
import type { FilesStore, SessionRecord } from "../../src/entry-store.ts";
import { IndexFeed } from "../../src/store/files/index-feed.ts";
import { IndexInPlace } from "../../src/store/files/index-service.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, said } from "../support/store-calls.ts";

/** Work that runs between two slices of another operation. */

const scope = { agentId: "main" };
const folder = "/store/agents/main/sessions";
const log = `${folder}/s.log.jsonl`;
const working = `${folder}/s.jsonl`;
const copy = { key: "agent:main:session:f", sessionId: "f", cwd: "/w" };

let sim: SimStore;
const stores: FilesStore[] = [];

beforeEach(() => {
  sim = new SimStore();
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const store of stores.splice(0)) await store.close();
  await sim.dispose();
});

async function open(): Promise<FilesStore> {
  const { databases, disk } = sim;
  const store = await openFilesStore({
    root: "/store",
    databases,
    disk,
    durability: "os",
    index: "in place",
  });
  stores.push(store);
  return store;
}

/** A session of several megabytes without a compaction. Only its tail is in memory. */
async function longOne(): Promise<FilesStore> {
  const first = await open();
  await create(first, scope, "s");
  const items = Array.from({ length: 3000 }, (_, index) => ({
    draft: said("x".repeat(1000)),
    id: `e${index}`,
  }));
  await first.sessions.append(scope, "s", items);
  await first.sessions.list(scope, {});
  await stores.pop()?.close();
  return open();
}

const compact = (store: FilesStore) =>
  store.sessions.append(scope, "s", [
    { draft: { type: "compaction", summary: "S", firstKeptEntryId: "e2990", tokensBefore: 1 }, id: "k" },
  ]);

describe("while a long log is read in slices", () => {
  test("a context that reads more of its tail duplicates nothing", async () => {
    const store = await longOne();
    expect((await store.sessions.get(scope, "s"))?.leafId).toBe("e2999");
    // A fork of an entry copies its branch. A fork without one reads the whole log.
    const forking = store.sessions.fork(scope, "s", null, copy);
    await nextTurn();
    const context = await store.sessions.context(scope, "s", { byteBudget: 400 * 1024 });
    expect(context?.entryIds.at(-1)).toBe("e2999");
    await forking;
    await compact(store);
    const [header = ""] = (sim.disk.textOf(working) ?? "").split("\n");
    expect(JSON.parse(header).skein.entries).toBe(3001);
  });

  test("a lock holder does not queue behind the reads of others", async () => {
    const store = await longOne();
    await store.sessions.get(scope, "s");
    let steps = 0;
    let isOver = false;
    const others = Array.from({ length: 200 }, () =>
      new Slices().run(
        (function* () {
          for (; !isOver; steps++) yield sliceBytes;
        })(),
      ),
    );
    // A task in the same queue that the compaction must not wait for.
    const forking = store.sessions.fork(scope, "s", null, copy);
    steps = 0;
    await compact(store);
    const stepsBefore = steps;
    isOver = true;
    await Promise.all([...others, forking]);
    expect(sim.disk.stat(working)?.identity).not.toBe(sim.disk.stat(log)?.identity);
    expect(stepsBefore).toBeLessThan(600);
  });
});

describe("while a log is replaced", () => {
  const isOfLog = (path: string) => path.startsWith(`${folder}/.s.log.jsonl.`);

  async function secretOne(): Promise<{ store: FilesStore; session: SessionRecord }> {
    const store = await open();
    const session = await create(store, scope, "s");
    await append(store, scope, "s", "a", "secret", "b");
    return { store, session };
  }

  test("nothing read from the old one has the mark of the new one", async () => {
    const { store, session } = await secretOne();
    const marks: (string | null)[] = [];
    const before = store.upkeep.logMark(session);
    let isRenamed = false;
    sim.disk.fault = (operation, path) => {
      // The rename is synced, the second name is linked, and the link is synced.
      if (isRenamed && marks.length < 3) marks.push(store.upkeep.logMark(session));
      if (operation === "rename" && isOfLog(path)) isRenamed = true;
      return null;
    };
    await store.sessions.redact(scope, "s", ["secret"]);
    expect(marks).toEqual([null, null, null]);
    expect(before).not.toBeNull();
    expect(store.upkeep.logMark(session)).not.toBe(before);
  });

  test("[ERZ1] a store that is closed meanwhile replaces nothing without its lock", async () => {
    const { store } = await secretOne();
    stores.pop();
    const unlocked: string[] = [];
    let closing: Promise<void> | null = null;
    sim.disk.fault = (operation, path) => {
      if (operation === "write" && isOfLog(path)) closing ??= store.close();
      const isLocked = sim.disk.list(folder).includes("s.jsonl.lock");
      if (operation === "rename" && isOfLog(path) && !isLocked) unlocked.push(path);
      return null;
    };
    await store.sessions.redact(scope, "s", ["secret"]).catch(() => undefined);
    expect(closing).not.toBeNull();
    await closing;
    expect(unlocked).toEqual([]);
    // No temporary file remains.
    expect(sim.disk.list(folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test("[ERZ1] a copy whose mark is removed while the index is queried is found", async () => {
    const { store } = await secretOne();
    const { uid } = await store.sessions.fork(scope, "s", "secret", copy);
    const work = new DatabaseSync(join(sim.databases, "work.db"));
    const { indexAll } = IndexFeed.prototype;
    vi.spyOn(IndexFeed.prototype, "indexAll").mockImplementation(async function (this: IndexFeed) {
      const behind = await indexAll.call(this);
      work.prepare("INSERT OR IGNORE INTO dirty (uid) VALUES (?)").run(uid);
      return behind;
    });
    // Simulates the response of a store that was queried before the copy was adopted.
    vi.spyOn(IndexInPlace.prototype, "withEntries").mockImplementation(async () => {
      work.prepare("DELETE FROM dirty").run();
      return [];
    });
    const { sessions } = await store.sessions.redact(scope, "s", ["secret"]);
    work.close();
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(["s", "f"]);
    expect(sim.disk.textOf(`${folder}/f.log.jsonl`)).not.toContain('"secret"}');
  });
});
