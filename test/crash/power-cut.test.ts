import { describe, expect, test } from "vitest";
import { storeConformance } from "../../src/entry-conformance.ts";
import type { Scope, Store } from "../../src/entry-store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids } from "../support/store-calls.ts";

const alice: Scope = { userId: "alice", agentId: "main" };

async function harness(prepare: (sim: SimStore) => void = () => undefined) {
  const sim = new SimStore();
  prepare(sim);
  const store = await sim.open();
  return { store, powerCut: () => sim.powerCut(), dispose: () => sim.dispose() };
}

/** The acknowledgments that a caller received, in order. The store must still have them after a power failure. */
interface Told {
  entries: string[];
  leaf: string | null;
  model: string | null;
  state: number | null;
  forked: boolean;
  removed: boolean;
}

/** Runs the operations one after another and records each acknowledged one. */
async function live(store: Store, told: Told): Promise<void> {
  await create(store, alice, "s");
  for (const name of ["a", "b", "c", "d"]) {
    await append(store, alice, "s", name);
    told.entries.push(name);
    told.leaf = name;
  }
  await store.sessions.append(alice, "s", [
    { draft: { type: "compaction", summary: "S", firstKeptEntryId: "c", tokensBefore: 1 }, id: "k" },
  ]);
  told.entries.push("k");
  told.leaf = "k";
  await append(store, alice, "s", "e");
  told.entries.push("e");
  told.leaf = "e";
  await store.sessions.patch(alice, "s", { model: "x/y" });
  told.model = "x/y";
  await store.state.set(alice, "s", "tools", { n: 1 });
  told.state = 1;
  await store.sessions.fork(alice, "s", "b", { key: "agent:main:session:f", sessionId: "f", cwd: "/w" });
  told.forked = true;
  await store.sessions.branch(alice, "s", "b");
  told.leaf = "b";
  await append(store, alice, "s", "g");
  told.entries.push("g");
  told.leaf = "g";
  await store.sessions.remove(alice, "f");
  told.removed = true;
}

async function check(store: Store, told: Told): Promise<void> {
  const record = await store.sessions.get(alice, "s");
  if (told.entries.length > 0) {
    expect(record).not.toBeNull();
    const found = await ids(store, alice, "s");
    for (const name of told.entries) expect(found).toContain(name);
    expect(new Set(found).size).toBe(found.length);
  }
  if (told.model !== null) expect(record?.meta.model).toBe(told.model);
  if (told.state !== null) expect((await store.state.get(alice, "s", "tools"))?.value).toEqual({ n: 1 });
  if (told.forked && !told.removed)
    expect((await store.sessions.get(alice, "f"))?.sessionId ?? "trashed").toMatch(/^(f|trashed)$/);
  if (told.removed) expect(await store.sessions.get(alice, "f")).toBeNull();
  const { sessions } = await store.sessions.list(alice, {});
  if (record !== null) expect(sessions.map((each) => each.sessionId)).toContain("s");
  // Work continues where it stopped.
  if (record !== null) {
    const before = record.leafId;
    const { entries } = await store.sessions.append(alice, "s", [
      { draft: { type: "message", message: { role: "user", content: "on" } } },
    ]);
    if (told.leaf !== null && before === told.leaf)
      expect((await store.sessions.context(alice, "s"))?.entryIds).toContain(told.leaf);
    expect((await store.sessions.get(alice, "s"))?.leafId).toBe(entries[0]?.id);
  }
}

const nothing = (): Told => ({
  entries: [],
  leaf: null,
  model: null,
  state: null,
  forked: false,
  removed: false,
});

describe("a power cut", () => {
  const cases = storeConformance({
    create: () => harness(),
    capabilities: { reopen: false, powerCut: true },
  });
  for (const { id, title, run } of cases.filter((each) => each.id === "ST20")) test(`[${id}] ${title}`, run);

  test("[KIT1] a store that never syncs is caught by it", async () => {
    const lying = storeConformance({
      create: () =>
        harness((sim) => {
          sim.disk.ignoresSync = true;
        }),
      capabilities: { reopen: false, powerCut: true },
    });
    await expect(lying.find((each) => each.id === "ST20")?.run()).rejects.toThrow();
  });

  test("[FS1] after any single operation: everything acknowledged exists, and the session continues", async () => {
    const measuring = new SimStore();
    const store = await measuring.open();
    await live(store, nothing());
    await store.close();
    const total = measuring.disk.operations;
    await measuring.dispose();
    expect(total).toBeGreaterThan(60);
    for (let cut = 1; cut <= total; cut++) {
      const sim = new SimStore();
      const told = nothing();
      const before = await sim.open();
      sim.disk.fault = (_, __, count) => (count >= cut ? { error: "EIO" } : null);
      await live(before, told).catch(() => undefined);
      const after = await sim.powerCut();
      await check(after, told);
      await sim.dispose();
    }
  });
});
