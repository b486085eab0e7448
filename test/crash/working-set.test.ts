import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Scope, Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { parseSession, SessionTree } from "../../src/index.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, said } from "../support/store-calls.ts";

const alice: Scope = { agentId: "main" };
const folder = "/store/agents/main/sessions";
const log = `${folder}/s.log.jsonl`;
const working = `${folder}/s.jsonl`;

const compaction = (id: string, firstKeptEntryId: string) => ({
  draft: { type: "compaction" as const, summary: `S${id}`, firstKeptEntryId, tokensBefore: 1 },
  id,
});

async function compacted(): Promise<{ sim: SimStore; store: Store }> {
  const sim = new SimStore();
  const store = await sim.open();
  await create(store, alice, "s");
  await append(store, alice, "s", "a", "b", "c", "d");
  await store.sessions.append(alice, "s", [
    { draft: { type: "label", targetId: "a", label: "start" }, id: "l" },
  ]);
  await store.sessions.append(alice, "s", [compaction("k", "c")]);
  await append(store, alice, "s", "e");
  return { sim, store };
}

/** Returns the context as pi would read it and as the log defines it. */
function contextOf(sim: SimStore, path: string) {
  const { diagnostics: _, ...context } = SessionTree.from(
    parseSession(sim.disk.textOf(path) ?? ""),
  ).context();
  return context;
}

describe("the log and the working set", () => {
  test("[FS5] are two names of one file until the first compaction", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, alice, "s");
    await append(store, alice, "s", "a");
    expect(sim.disk.stat(working)?.identity).toBe(sim.disk.stat(log)?.identity);
    await sim.dispose();
  });

  test("[FS5] a compaction shortens the working set; the log keeps everything, and later entries go to both", async () => {
    const { sim } = await compacted();
    const lines = (path: string) =>
      (sim.disk.textOf(path) ?? "")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    expect(
      lines(log)
        .slice(1)
        .map((line) => line.id),
    ).toEqual(["a", "b", "c", "d", "l", "k", "e"]);
    const [header, ...cut] = lines(working);
    expect(cut.map((line) => line.id)).toEqual(["c", "d", "l", "k", "e"]);
    expect(header.skein).toMatchObject({
      key: "agent:main:session:s",
      base: "b",
      thinkingLevel: "off",
      model: null,
    });
    expect(contextOf(sim, working)).toEqual(contextOf(sim, log));
    await sim.dispose();
  });

  test("[FS6] after any operations, the working set and the log have the same context", async () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ do: fc.constant("say" as const) }) },
      fc.record({ do: fc.constant("compact" as const), at: fc.nat() }),
      fc.record({ do: fc.constant("branch" as const), at: fc.nat() }),
      fc.record({ do: fc.constant("model" as const), at: fc.nat(3) }),
      fc.record({ do: fc.constant("name" as const), at: fc.nat(3) }),
      fc.record({ do: fc.constant("reopen" as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        const sim = new SimStore();
        let store = await sim.open("os");
        await create(store, alice, "s");
        for (const [index, each] of steps.entries()) {
          const entries = await ids(store, alice, "s");
          const path =
            (await store.sessions.page(alice, "s", { along: "branch", limit: 1000 }))?.entries ?? [];
          if (each.do === "say") await append(store, alice, "s", `e${index}`);
          else if (each.do === "compact" && path.length > 0) {
            await store.sessions.append(alice, "s", [
              compaction(`k${index}`, path[each.at % path.length]?.id ?? ""),
            ]);
          } else if (each.do === "branch" && entries.length > 0) {
            await store.sessions.branch(alice, "s", entries[each.at % entries.length] ?? null);
          } else if (each.do === "model") {
            await store.sessions.append(alice, "s", [
              { draft: { type: "model_change", provider: "p", modelId: `m${each.at}` } },
            ]);
          } else if (each.do === "name") {
            await store.sessions.append(alice, "s", [
              { draft: { type: "session_info", name: `n${each.at}` } },
            ]);
          } else if (each.do === "reopen") {
            await store.close();
            store = await sim.open("os");
          }
        }
        expect(contextOf(sim, working)).toEqual(contextOf(sim, log));
        await sim.dispose();
      }),
      { numRuns: 150 },
    );
  });

  test("[FS14] opening a compacted session reads only its working set, however long the log is; the rest on demand", async () => {
    const bytesToOpen = async (entries: number) => {
      const sim = new SimStore();
      const store = await sim.open("os");
      await create(store, alice, "s");
      const items = Array.from({ length: entries }, (_, index) => ({
        draft: said("x".repeat(500)),
        id: `e${index}`,
      }));
      await store.sessions.append(alice, "s", items);
      await store.sessions.append(alice, "s", [compaction("k", `e${entries - 3}`)]);
      // Otherwise, the index would read the log while the bytes are counted.
      await store.upkeep.bringUpIndex();
      await store.close();
      const again = await sim.open("os");
      sim.disk.bytesRead = 0;
      const context = await again.sessions.context(alice, "s");
      expect(context?.entryIds).toEqual(["k", `e${entries - 3}`, `e${entries - 2}`, `e${entries - 1}`]);
      await again.sessions.append(alice, "s", [{ draft: said("on"), id: "on" }]);
      const read = sim.disk.bytesRead;
      await again.sessions.append(alice, "s", [{ draft: said("x".repeat(500)), id: "e0" }]);
      await again.sessions.append(alice, "s", [{ draft: { type: "label", targetId: "e1", label: "old" } }]);
      await expect(again.sessions.append(alice, "s", [{ draft: said("other"), id: "e1" }])).rejects.toThrow(
        "e1",
      );
      expect((await ids(again, alice, "s")).length).toBe(entries + 3);
      await sim.dispose();
      return read;
    };
    const [short, long] = [await bytesToOpen(50), await bytesToOpen(900)];
    expect(long).toBeLessThan(short + 10_000); // the log is 500,000 bytes larger
  });

  test.each([
    ["lost", (sim: SimStore) => void sim.disk.unlink(working)],
    ["behind", (sim: SimStore) => sim.disk.open(working).truncate((sim.disk.stat(working)?.size ?? 0) - 20)],
    ["damaged", (sim: SimStore) => void sim.disk.open(working).append(Buffer.from("\0\0\0\0"))],
    ["empty", (sim: SimStore) => sim.disk.open(working).truncate(0)],
  ])("[FS7] a working set that is %s is rebuilt from the log", async (_, spoil) => {
    const { sim, store } = await compacted();
    await store.close();
    spoil(sim);
    const again = await sim.open();
    expect((await again.sessions.context(alice, "s"))?.entryIds).toEqual(["k", "c", "d", "e"]);
    expect(contextOf(sim, working)).toEqual(contextOf(sim, log));
    await sim.dispose();
  });

  const theirs = (id: string, parentId: string) =>
    Buffer.from(
      `${JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-01T00:00:00.000Z", message: { role: "user", content: id, timestamp: 1 } })}\n`,
    );

  test("[FS8] entries that pi appends to the working set are copied to the log and become the active branch", async () => {
    const { sim, store } = await compacted();
    await store.close();
    sim.disk.open(working).append(theirs("pi1", "e"));
    sim.disk.open(working).append(theirs("pi2", "pi1"));
    const again = await sim.open();
    expect((await again.sessions.context(alice, "s"))?.entryIds).toEqual(["k", "c", "d", "e", "pi1", "pi2"]);
    expect(sim.disk.textOf(log)).toContain('"pi2"');
    const told = (await again.sessions.context(alice, "s"))?.diagnostics ?? [];
    expect(told).toMatchObject([{ code: "taken_in", entryId: "pi1" }]);
    const after = await sim.powerCut();
    expect(await ids(after, alice, "s")).toContain("pi2");
    expect(contextOf(sim, working)).toEqual(contextOf(sim, log));
    await sim.dispose();
  });

  test("[FS8] if Skein continued meanwhile, they become a separate branch", async () => {
    const { sim, store } = await compacted();
    sim.disk.open(working).append(theirs("pi1", "e"));
    await store.sessions.append(alice, "s", [{ draft: said("f"), id: "f" }]);
    await store.close();
    const again = await sim.open();
    expect((await again.sessions.context(alice, "s"))?.entryIds).toEqual(["k", "c", "d", "e", "f"]);
    expect(await ids(again, alice, "s")).toContain("pi1");
    expect(contextOf(sim, working)).toEqual(contextOf(sim, log));
    await sim.dispose();
  });

  test("a session that was read ahead is cached, and is not read ahead again for 45 seconds", async () => {
    let time = Date.UTC(2026, 0, 1);
    const sim = new SimStore();
    const { databases, disk } = sim;
    const clock = { now: () => time };
    const settings = { dir: "/store", databases, disk, clock, durability: "os" } as const;
    const first = await createStore(settings);
    await create(first, alice, "s");
    await append(first, alice, "s", "a".repeat(10_000));
    await first.close();
    const store = await createStore(settings);
    const readBy = async (act: () => Promise<unknown>) => {
      const before = disk.bytesRead;
      await act();
      return disk.bytesRead - before;
    };
    const prewarm = () => store.sessions.prewarm(alice, "s");
    await store.sessions.prewarm(alice, "no-such-session");
    expect(await readBy(prewarm)).toBeGreaterThan(10_000);
    expect(await readBy(() => store.sessions.context(alice, "s"))).toBe(0);
    // More sessions than a store keeps open, so that the prewarmed one is closed.
    for (let other = 0; other < 260; other++) await create(store, alice, `other-${other}`);
    expect(await readBy(prewarm)).toBe(0);
    time += 44_000;
    expect(await readBy(prewarm)).toBe(0);
    time += 2000;
    expect(await readBy(prewarm)).toBeGreaterThan(10_000);
    await store.close();
    await sim.dispose();
  });
});
