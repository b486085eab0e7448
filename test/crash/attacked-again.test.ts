import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Scope } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, said } from "../support/store-calls.ts";

const alice: Scope = { userId: "alice", agentId: "main" };
const scope: Scope = { agentId: "main" };
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "skein-again-"));
  folders.push(made);
  return made;
}

const compaction = (id: string, firstKeptEntryId: string) => ({
  id,
  draft: { type: "compaction" as const, summary: "S", firstKeptEntryId, tokensBefore: 1 },
});

describe("former attacks", () => {
  test("[ST19] an append that waited for its sync during a redaction is not cut off by a later failure", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, alice, "s");
    await append(store, alice, "s", "a", "secret", "b");
    await Promise.all([append(store, alice, "s", "x"), store.sessions.redact(alice, "s", ["secret"])]);
    let failed = false;
    sim.disk.fault = (op, path) => {
      if (op !== "sync" || !path.endsWith(".log.jsonl") || failed) return null;
      failed = true;
      return { error: "EIO" };
    };
    await expect(append(store, alice, "s", "y")).rejects.toMatchObject({ code: "write_failed" });
    expect(await ids(store, alice, "s")).toEqual(["a", "secret", "b", "x"]);
    await sim.dispose();
  });

  test("[ST19] a session that was trashed while another store was about to create its files stays unchanged", async () => {
    const root = folder();
    const one = await createStore({ dir: root });
    const two = await createStore({ dir: root });
    await create(one, alice, "s");
    await append(one, alice, "s", "kept");
    const results = await Promise.allSettled([
      one.sessions.remove(alice, "s"),
      append(two, alice, "s", "late"),
      append(two, alice, "s", "later"),
    ]);
    for (const each of results) {
      if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "not_found" });
    }
    await one.close();
    await two.close();
    const again = await createStore({ dir: root });
    await again.sessions.restore(alice, "s");
    expect(await ids(again, alice, "s")).toContain("kept");
    await again.close();
  });

  test("[ST2] a foreign file under a new session's name is neither taken over nor touched", async () => {
    const root = folder();
    const sessions = join(root, "agents", "main", "sessions");
    const store = await createStore({ dir: root });
    await create(store, scope, "first");
    mkdirSync(sessions, { recursive: true });
    const theirs = `${JSON.stringify({ type: "session", version: 3, id: "x", cwd: "/theirs" })}\n`;
    writeFileSync(join(sessions, "x.jsonl"), theirs);
    await expect(create(store, scope, "x")).rejects.toMatchObject({ code: "conflict" });
    expect(readFileSync(join(sessions, "x.jsonl"), "utf8")).toBe(theirs);
    expect((await store.sessions.get(scope, "x"))?.meta.importedFrom).toMatchObject({
      claimed: { cwd: "/theirs" },
    });
    await store.close();
  });

  test("[ST11] a fork that failed once can be created again, from another entry", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, alice, "s");
    await append(store, alice, "s", "a", "b", "c");
    const fork = (at: string) =>
      store.sessions.fork(alice, "s", at, { key: "agent:main:session:f", sessionId: "f", cwd: "/w" });
    sim.disk.fault = (op, path) => (op === "link" && path.endsWith("f.jsonl") ? { error: "EIO" } : null);
    await expect(fork("c")).rejects.toMatchObject({ code: "write_failed" });
    sim.disk.fault = () => null;
    await fork("a");
    expect(await ids(store, alice, "f")).toEqual(["a"]);
    await sim.dispose();
  });

  test("[FS8] entries that another program adds to the working set during our writes survive the next cut", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    await create(store, scope, "s");
    await append(store, scope, "s", "a", "b");
    await store.sessions.append(scope, "s", [compaction("k1", "b")]);
    const theirs = { type: "message", id: "pi", parentId: "k1", timestamp: "2026-01-01T00:00:00.000Z" };
    const message = { role: "user", content: "from pi", timestamp: 1 };
    const path = join(root, "agents", "main", "sessions", "s.jsonl");
    appendFileSync(path, `${JSON.stringify({ ...theirs, message })}\n`);
    await store.sessions.append(scope, "s", [compaction("k2", "k1")]);
    expect(await ids(store, scope, "s")).toContain("pi");
    await store.close();
  });

  test("[ST15] a compaction during a removal leaves nothing behind", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    for (let round = 0; round < 5; round++) {
      const name = `s${round}`;
      await create(store, scope, name);
      await append(store, scope, name, "a", "b");
      await Promise.allSettled([
        store.sessions.append(scope, name, [compaction("k", "b")]),
        store.sessions.remove(scope, name),
      ]);
      expect(existsSync(join(root, "agents", "main", "sessions", `${name}.jsonl`))).toBe(false);
    }
    await store.close();
  });

  test("[ST25] a label given during a reset belongs to one of the two sessions, and is found", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    for (let round = 0; round < 5; round++) {
      await create(store, scope, `s${round}`);
      await Promise.allSettled([
        store.sessions.patch(scope, `s${round}`, { label: `l${round}` }),
        store.sessions.reset(scope, `s${round}`),
      ]);
      const found = await store.sessions.find(scope, { by: "label", label: `l${round}`, agentId: "main" });
      expect(found).toHaveLength(1);
      expect(found[0]?.meta.label).toBe(`l${round}`);
    }
    await store.close();
  });

  test("[FS12] a failed unlink does not lock a session permanently", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, alice, "s");
    let faults = 3;
    sim.disk.fault = (op, path) =>
      op === "unlink" && path.includes(".lock") && faults-- > 0 ? { error: "EIO" } : null;
    await append(store, alice, "s", "a").catch(() => undefined);
    await append(store, alice, "s", "b").catch(() => undefined);
    sim.disk.fault = () => null;
    await append(store, alice, "s", "c");
    expect(await ids(store, alice, "s")).toContain("c");
    await sim.dispose();
  });

  test("[FS12] a clock that is set back does not prolong the wait for a lock", async () => {
    const root = folder();
    const holder = await createStore({ dir: root });
    await create(holder, scope, "s");
    let time = Date.now();
    const clock = { now: () => (time -= 3_600_000) };
    const waiting = await createStore({ dir: root, clock, lockTimeoutMs: 100 });
    const lock = join(root, "agents", "main", "sessions", "s.jsonl.lock");
    const self = { pid: process.ppid, host: "elsewhere", token: "t", createdAt: Date.now() };
    writeFileSync(lock, JSON.stringify(self));
    await expect(append(waiting, scope, "s", "a")).rejects.toMatchObject({ code: "locked" });
    rmSync(lock);
    await waiting.close();
    await holder.close();
  });

  test("[FS7] a full disk while a working set is cut at open affects neither the session nor its lock", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, alice, "s");
    await append(store, alice, "s", "a", "b");
    await store.sessions.append(alice, "s", [compaction("k", "b")]);
    await store.close();
    sim.disk.unlink("/store/users/alice/agents/main/sessions/s.jsonl");
    const again = await sim.open();
    sim.disk.fault = (op, path) => (op === "write" && path.endsWith(".tmp") ? { error: "ENOSPC" } : null);
    expect((await again.sessions.context(alice, "s"))?.entryIds).toEqual(["k", "b"]);
    sim.disk.fault = () => null;
    await append(again, alice, "s", "c");
    expect((await again.sessions.context(alice, "s"))?.entryIds).toEqual(["k", "b", "c"]);
    await sim.dispose();
  });

  test("[ST29] removing a user leaves another user whose folder is inside", async () => {
    const root = folder();
    const namespace = ({ userId }: { userId?: string }) =>
      userId === undefined ? [] : userId === "acme" ? ["acme"] : ["acme", userId];
    const store = await createStore({ dir: root, namespace });
    const [acme, bob] = [
      { userId: "acme", agentId: "main" },
      { userId: "bob", agentId: "main" },
    ];
    for (const each of [acme, bob]) {
      await create(store, each, "s");
      await append(store, each, "s", "word");
    }
    await store.purgeUser("acme");
    expect(await ids(store, bob, "s")).toEqual(["word"]);
    expect(existsSync(join(root, "acme", "agents"))).toBe(false);
    await store.close();
  });

  test("[ST29] a session created while its user is removed exists, or was never acknowledged", async () => {
    const root = folder();
    const store = await createStore({ dir: root, durability: "os" });
    for (let round = 0; round < 5; round++) {
      await create(store, alice, `old${round}`);
      const purging = store.purgeUser("alice");
      const made = await create(store, alice, `new${round}`).catch(() => null);
      await purging;
      const found = await store.sessions.get(alice, `new${round}`);
      if (found !== null) expect(await ids(store, alice, `new${round}`)).toEqual([]);
      expect(made === null || found !== null || (await store.sessions.trashed(alice)).length === 0).toBe(
        true,
      );
    }
    await store.close();
  });

  test("[MNT7] a session that is used between the decision and the action is kept", async () => {
    const store = await createStore({ dir: folder() });
    await create(store, alice, "s");
    const { updatedAt } = (await store.sessions.get(alice, "s")) ?? { updatedAt: 0 };
    await new Promise((resolve) => setImmediate(resolve));
    await store.sessions.append(alice, "s", [{ draft: said("still here") }]);
    const now = (await store.sessions.get(alice, "s"))?.updatedAt;
    const stale = { ifUpdatedAt: updatedAt === now ? updatedAt - 1 : updatedAt };
    await expect(store.sessions.remove(alice, "s", stale)).rejects.toMatchObject({ code: "conflict" });
    await expect(store.sessions.patch(alice, "s", { archived: true }, stale)).rejects.toMatchObject({
      code: "conflict",
    });
    await store.sessions.remove(alice, "s");
    await expect(store.sessions.purge(alice, "s", { ifRemovedAt: 1 })).rejects.toMatchObject({
      code: "conflict",
    });
    await store.close();
  });
});
