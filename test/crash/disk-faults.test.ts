import { describe, expect, test } from "vitest";
import type { Scope } from "../../src/entry-store.ts";
import type { DiskOperation } from "../../src/entry-testing.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, refused, said } from "../support/store-calls.ts";

const alice: Scope = { userId: "alice", agentId: "main" };
const log = "/store/users/alice/agents/main/sessions/s.log.jsonl";

/** A store on a disk that can be made to fail, with a session that has two entries. */
async function prepared() {
  const sim = new SimStore();
  const store = await sim.open();
  await create(store, alice, "s");
  await append(store, alice, "s", "a", "b");
  const failing = (operation: DiskOperation, fault: { error: string } | { take: number }) => {
    sim.disk.fault = (op, path) => (op === operation && path === log ? fault : null);
  };
  const healed = () => {
    sim.disk.fault = () => null;
  };
  return { sim, store, failing, healed };
}

describe("a failing disk", () => {
  test.each([
    ["is full", { error: "ENOSPC" }],
    ["is read-only", { error: "EROFS" }],
    ["has an I/O error", { error: "EIO" }],
    ["accepts no data", { take: 0 }],
    ["accepts a part of the data", { take: 10 }],
  ] as const)(
    "[FS2] if it %s, the append fails, nothing changes, and the next one works",
    async (_, fault) => {
      const { sim, store, failing, healed } = await prepared();
      const before = sim.disk.textOf(log);
      let taken = false;
      failing("write", fault);
      if ("take" in fault && fault.take > 0) {
        sim.disk.fault = (op, path) => {
          if (op !== "write" || path !== log) return null;
          const take = taken ? 0 : fault.take;
          taken = true;
          return { take };
        };
      }
      const record = await store.sessions.get(alice, "s");
      await refused("write_failed", () => append(store, alice, "s", "c"));
      expect(await store.sessions.get(alice, "s")).toEqual(record);
      healed();
      expect(sim.disk.textOf(log)).toBe(before);
      await append(store, alice, "s", "d");
      expect(await ids(store, alice, "s")).toEqual(["a", "b", "d"]);
      await sim.dispose();
    },
  );

  test("[FS2] a short write that continues is not a failure", async () => {
    const { sim, store, failing } = await prepared();
    failing("write", { take: 7 });
    await append(store, alice, "s", "c");
    expect(await ids(store, alice, "s")).toEqual(["a", "b", "c"]);
    await sim.dispose();
  });

  test("[FS3] a failed sync rolls back everything that was not acknowledged, and the session continues", async () => {
    const { sim, store, failing, healed } = await prepared();
    const before = sim.disk.textOf(log);
    failing("sync", { error: "EIO" });
    const results = await Promise.allSettled(["c", "d", "e"].map((name) => append(store, alice, "s", name)));
    expect(results.map((each) => each.status)).toEqual(["rejected", "rejected", "rejected"]);
    healed();
    expect(sim.disk.textOf(log)).toBe(before);
    expect(await ids(store, alice, "s")).toEqual(["a", "b"]);
    await append(store, alice, "s", "f");
    expect(await ids(store, alice, "s")).toEqual(["a", "b", "f"]);
    const after = await sim.powerCut();
    expect(await ids(after, alice, "s")).toEqual(["a", "b", "f"]);
    await sim.dispose();
  });

  test("[FS3] if one sync fails and the next one works, nothing that was rolled back is acknowledged", async () => {
    const { sim, store, healed } = await prepared();
    let syncs = 0;
    sim.disk.fault = (op, path) => (op === "sync" && path === log && syncs++ === 0 ? { error: "EIO" } : null);
    const names = ["c", "d", "e", "f"];
    const results = await Promise.allSettled(names.map((name) => append(store, alice, "s", name)));
    healed();
    const kept = names.filter((_, index) => results[index]?.status === "fulfilled");
    expect(results[0]?.status).toBe("rejected");
    expect(await ids(store, alice, "s")).toEqual(["a", "b", ...kept]);
    // After a power failure, rejected data might exist, but acknowledged data must exist.
    const found = await ids(await sim.powerCut(), alice, "s");
    expect(found.filter((id) => !names.includes(id) || kept.includes(id))).toEqual(["a", "b", ...kept]);
    await sim.dispose();
  });

  test("[ST19] close waits for pending writes", async () => {
    const { sim, store } = await prepared();
    const writing = Promise.all(["c", "d", "e"].map((name) => append(store, alice, "s", name)));
    await store.close();
    await writing;
    const again = await sim.open();
    expect(await ids(again, alice, "s")).toEqual(["a", "b", "c", "d", "e"]);
    await sim.dispose();
  });

  test("[FS3] a write that cannot be rolled back can be repeated under the same ID", async () => {
    const { sim, store, healed } = await prepared();
    sim.disk.fault = (op, path) =>
      path === log && (op === "sync" || op === "truncate") ? { error: "EIO" } : null;
    await refused("write_failed", () => append(store, alice, "s", "c"));
    healed();
    await append(store, alice, "s", "c");
    expect(await ids(store, alice, "s")).toEqual(["a", "b", "c"]);
    await sim.dispose();
  });

  test("[FS4] a log that ends in the middle of a line, at every byte, opens with all complete lines and can be continued", async () => {
    const { sim, store } = await prepared();
    await append(store, alice, "s", "世界");
    await store.close();
    const whole = Buffer.from(sim.disk.textOf(log) ?? "");
    const headerEnd = whole.indexOf(10) + 1;
    for (let size = headerEnd; size <= whole.length; size++) {
      const file = sim.disk.open(log);
      file.truncate(0);
      file.append(whole.subarray(0, size));
      const again = await sim.open();
      const lines = whole.subarray(0, size).toString("utf8").split("\n").length - 2;
      expect((await ids(again, alice, "s")).length).toBeGreaterThanOrEqual(lines);
      await again.sessions.append(alice, "s", [{ draft: said("on"), id: "on" }]);
      const found = await ids(again, alice, "s");
      expect(found.at(-1)).toBe("on");
      expect((await again.sessions.context(alice, "s"))?.entryIds).toEqual(found);
      await again.close();
    }
    await sim.dispose();
  });
});
