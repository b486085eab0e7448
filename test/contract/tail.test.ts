import fc from "fast-check";
import { expect, test } from "vitest";
import type { Scope, Store } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { repetitions } from "../support/repetitions.ts";
import { SimStore } from "../support/sim-store.ts";
import { answered, said } from "../support/store-calls.ts";

const scope: Scope = { userId: "ann", agentId: "main" };
const tailBytes = 400;

const step = fc.record({
  do: fc.constantFrom(
    "say",
    "say",
    "answer",
    "model",
    "think",
    "name",
    "label",
    "edit",
    "branch",
    "patch",
    "index",
  ),
  at: fc.nat(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function draftFor({ do: act, at }: Step, ids: readonly string[]): EntryDraft | null {
  switch (act) {
    case "say":
      return said(`text ${at}`);
    case "answer":
      return answered(`answer ${at}`);
    case "model":
      return { type: "model_change", provider: "q", modelId: `m${at % 3}` };
    case "think":
      return { type: "thinking_level_change", thinkingLevel: at % 2 === 0 ? "high" : "low" };
    case "name":
      return { type: "session_info", name: `Name ${at % 5}` };
    case "label":
      return ids.length === 0 ? null : { type: "label", targetId: ids[at % ids.length] ?? "", label: "l" };
    case "edit":
      return ids.length === 0
        ? null
        : { type: "context_edit", targetId: ids[at % ids.length] ?? "", replacement: null };
    default:
      return null;
  }
}

/** Runs a step. Entry IDs are derived from the step's number so that both stores agree. */
async function play(store: Store, each: Step, number: number, ids: readonly string[]): Promise<void> {
  const draft = draftFor(each, ids);
  if (draft !== null) await store.sessions.append(scope, "s", [{ draft, id: `n${number}` }]);
  else if (each.do === "branch") {
    await store.sessions.branch(scope, "s", ids.length === 0 ? null : (ids[each.at % ids.length] ?? null));
  } else if (each.do === "patch") await store.sessions.patch(scope, "s", { displayName: `d${each.at % 4}` });
  else if (each.do === "index") await store.sessions.list(scope, {});
}

/** Returns everything observable about a session, without IDs that each store generates. */
async function seen(store: Store, sessionId = "s"): Promise<unknown> {
  const { sessions } = store;
  const context = async (byteBudget?: number) => {
    const found = await sessions.context(scope, sessionId, byteBudget === undefined ? {} : { byteBudget });
    return found && { ...found, diagnostics: [] };
  };
  const record = await sessions.get(scope, sessionId);
  const page = await sessions.page(scope, sessionId, { along: "branch", limit: 3 });
  const all = {
    record: { ...record, uid: "" },
    small: await context(300),
    page: page?.entries.map(({ id }) => id),
    large: await context(5000),
    whole: await context(),
  };
  return JSON.parse(JSON.stringify(all).replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}/g, "made"));
}

const runs = repetitions.storeComparisons;

test(
  "a long session without a compaction, opened by its tail, equals the whole log",
  async () => {
    let byTail = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), fc.nat(), async (steps, cut) => {
        let time = Date.UTC(2026, 0, 1);
        const clock = { now: () => time };
        const sim = new SimStore();
        const settings = { root: "/store", databases: sim.databases, disk: sim.disk, clock, tailBytes };
        const open = () => openFilesStore({ ...settings, durability: "os" });
        const memory = createMemoryStore({ clock });
        let files = await open();
        const ids: string[] = [];
        for (const store of [memory, files]) {
          await store.sessions.create(scope, { key: "agent:main:main", sessionId: "s", cwd: "/w" });
        }
        for (const [number, each] of steps.entries()) {
          time += 1000;
          // The store is reopened from time to time, with its index up to date or behind.
          if (number === cut % steps.length) {
            await files.close();
            files = await open();
          }
          await play(memory, each, number, ids);
          await play(files, each, number, ids);
          if (draftFor(each, ids) !== null) ids.push(`n${number}`);
        }
        await files.close();
        files = await open();
        const before = sim.disk.bytesRead;
        await files.sessions.get(scope, "s");
        const log = sim.disk.textOf("/store/users/ann/agents/main/sessions/s.log.jsonl") ?? "";
        if (sim.disk.bytesRead - before < log.length) byTail += 1;
        expect(await seen(files)).toEqual(await seen(memory));
        await play(memory, { do: "say", at: 1 }, 1000, ids);
        await play(files, { do: "say", at: 1 }, 1000, ids);
        expect(await seen(files)).toEqual(await seen(memory));
        const forked = ids[cut % (ids.length + 1)] ?? "n1000";
        const copy = { key: "agent:main:session:f", sessionId: "f", cwd: "/w" };
        for (const store of [memory, files]) await store.sessions.fork(scope, "s", forked, copy);
        expect(await seen(files, "f")).toEqual(await seen(memory, "f"));
        await files.close();
        await sim.dispose();
      }),
      { numRuns: runs },
    );
    expect(byTail).toBeGreaterThan(0);
  },
  Math.max(300_000, runs * 2000),
);

test("a context within a byte budget reads the end of a long log twice, and little more than the budget", async () => {
  const sim = new SimStore();
  const settings = { root: "/store", databases: sim.databases, disk: sim.disk, tailBytes: 20_000 };
  const open = () => openFilesStore({ ...settings, durability: "os" });
  const writing = await open();
  await writing.sessions.create(scope, { key: "agent:main:main", sessionId: "s", cwd: "/w" });
  const items = Array.from({ length: 2000 }, () => ({ draft: said("word ".repeat(100)) }));
  await writing.sessions.append(scope, "s", items);
  while ((await writing.search.search(scope, { text: "word" })).behind > 0);
  await writing.close();
  const files = await open();
  const before = sim.disk.bytesRead;
  const context = await files.sessions.context(scope, "s", { byteBudget: 200_000 });
  expect(context?.messages).toHaveLength(400);
  expect(sim.disk.bytesRead - before).toBeLessThan(600_000);
  await files.close();
  await sim.dispose();
});

test("a search reads the lines of its hits, not the sessions around them", async () => {
  const sim = new SimStore();
  const settings = { root: "/store", databases: sim.databases, disk: sim.disk, tailBytes: 50_000 };
  const open = () => openFilesStore({ ...settings, durability: "os" });
  const writing = await open();
  const ids = ["a", "b", "c", "d"];
  for (const id of ids) {
    await writing.sessions.create(scope, { key: `agent:main:session:${id}`, sessionId: id, cwd: "/w" });
    const items = Array.from({ length: 200 }, () => ({ draft: said("word ".repeat(100)) }));
    await writing.sessions.append(scope, id, [{ draft: said(`heron ${id}`) }, ...items]);
  }
  while ((await writing.search.search(scope, { text: "heron" })).behind > 0);
  await writing.close();
  const files = await open();
  const before = sim.disk.bytesRead;
  const { hits } = await files.search.search(scope, { text: "heron" });
  expect(hits.map(({ sessionId }) => sessionId).toSorted()).toEqual(ids);
  expect(sim.disk.bytesRead - before).toBeLessThan(10_000);
  await files.close();
  await sim.dispose();
});
