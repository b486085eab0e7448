import { describe, expect, test } from "vitest";
import type { Scope, Store } from "../../src/entry-store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, listed } from "../support/store-calls.ts";

const alice: Scope = { userId: "alice", agentId: "main" };

/** Cuts the power after every single operation of an action and then checks the state. */
async function cutEverywhere(
  prepare: (store: Store) => Promise<void>,
  act: (store: Store) => Promise<unknown>,
  check: (store: Store, sim: SimStore, acknowledged: boolean) => Promise<void>,
): Promise<number> {
  for (let cut = 1; ; cut++) {
    const sim = new SimStore();
    const store = await sim.open();
    await prepare(store);
    const begun = sim.disk.operations;
    sim.disk.fault = (_, __, count) => (count >= begun + cut ? { error: "EIO" } : null);
    const acknowledged = await act(store).then(
      () => true,
      () => false,
    );
    const isThrough = sim.disk.operations < begun + cut;
    await check(await sim.powerCut(), sim, acknowledged);
    await sim.dispose();
    if (isThrough) return cut;
  }
}

describe("permanent changes interrupted at any point", () => {
  test("[ERZ1] a redaction can be repeated, and then nothing of the entry is left", async () => {
    const cuts = await cutEverywhere(
      async (store) => {
        await create(store, alice, "s");
        await append(store, alice, "s", "a", "topsecret", "b");
        await store.sessions.fork(alice, "s", "b", { key: "agent:main:session:f", sessionId: "f", cwd: "/" });
        const summary = {
          type: "compaction" as const,
          summary: "S",
          firstKeptEntryId: "topsecret",
          tokensBefore: 1,
        };
        await store.sessions.append(alice, "s", [{ draft: summary, id: "k" }]);
      },
      (store) => store.sessions.redact(alice, "s", ["topsecret"]),
      async (store, sim) => {
        await store.sessions.redact(alice, "s", ["topsecret"]);
        for (const sessionId of ["s", "f"]) {
          const folder = "/store/users/alice/agents/main/sessions";
          for (const ending of [".jsonl", ".log.jsonl"]) {
            const text = sim.disk.textOf(`${folder}/${sessionId}${ending}`) ?? "";
            expect(text).toContain('"topsecret"');
            expect(text).not.toContain('"content":"topsecret"');
          }
          const found = await ids(store, alice, sessionId);
          expect(found.slice(0, 3)).toEqual(["a", "topsecret", "b"]);
        }
        expect((await store.search.search(alice, { text: "topsecret" })).hits).toEqual([]);
        await append(store, alice, "s", "on");
      },
    );
    expect(cuts).toBeGreaterThan(10);
  });

  test("[FS24] a reset is complete or not done at all, and the logs agree", async () => {
    await cutEverywhere(
      async (store) => {
        await create(store, alice, "s", { label: "trip" });
        await append(store, alice, "s", "a");
      },
      (store) => store.sessions.reset(alice, "s", { sessionId: "n" }),
      async (store, sim, acknowledged) => {
        const old = await store.sessions.get(alice, "s");
        const fresh = await store.sessions.get(alice, "n");
        if (acknowledged) expect(fresh).not.toBeNull();
        expect([old?.key, fresh?.key]).toEqual(
          fresh === null
            ? ["agent:main:session:s", undefined]
            : ["agent:main:reset:s", "agent:main:session:s"],
        );
        expect((fresh ?? old)?.meta.label).toBe("trip");
        expect(await ids(store, alice, "s")).toContain("a");
        await store.close();
        if (fresh === null) return;
        const log = sim.disk.textOf("/store/users/alice/agents/main/sessions/s.log.jsonl") ?? "";
        expect(log.match(/"key":"agent:main:reset:s"/g)).toHaveLength(1);
      },
    );
  });

  test("[FS24] a purge can be repeated until nothing is left", async () => {
    await cutEverywhere(
      async (store) => {
        await create(store, alice, "s");
        await append(store, alice, "s", "a");
        await store.state.set(alice, "s", "k", 1);
        await store.sessions.remove(alice, "s");
      },
      (store) => store.sessions.purge(alice, "s"),
      async (store, _, acknowledged) => {
        if (acknowledged) expect(await store.sessions.trashed(alice)).toEqual([]);
        else await store.sessions.purge(alice, "s");
        expect(await listed(store, alice)).toEqual([]);
        await create(store, alice, "s");
        expect(await ids(store, alice, "s")).toEqual([]);
        expect(await store.state.get(alice, "s", "k")).toBeNull();
      },
    );
  });

  test("[FS24] a removed user is gone once the command returned", async () => {
    await cutEverywhere(
      async (store) => {
        await create(store, alice, "s");
        await append(store, alice, "s", "topsecret");
        await create(store, alice, "t");
        await store.sessions.remove(alice, "t");
      },
      (store) => store.purgeUser("alice"),
      async (store, sim, acknowledged) => {
        if (!acknowledged) await store.purgeUser("alice");
        expect(await listed(store, alice)).toEqual([]);
        expect(await store.sessions.trashed(alice)).toEqual([]);
        expect(sim.disk.list("/store/users")).toEqual([]);
      },
    );
  });

  test("[ST17] an append that waits while its session is moved to the trash fails with not_found", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, alice, "s");
    await append(store, alice, "s", "a");
    const removing = store.sessions.remove(alice, "s");
    const results = await Promise.allSettled([
      append(store, alice, "s", "b"),
      append(store, alice, "s", "c"),
      removing,
    ]);
    for (const result of results) {
      if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "not_found" });
    }
    const record = await store.sessions.restore(alice, "s");
    expect(record.leafId).not.toBeNull();
    await sim.dispose();
  });
});
