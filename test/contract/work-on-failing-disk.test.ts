import { expect, test } from "vitest";
import { runOn, valueScript } from "../../src/core/script.ts";
import type { FilesStore } from "../../src/entry-store.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, ids, listed, refused } from "../support/store-calls.ts";

const alice = { userId: "alice", agentId: "main" };
const init = { key: "agent:main:session:s", sessionId: "s", cwd: "/w", meta: { label: "mine" } };

async function prepared() {
  const sim = new SimStore();
  const reports: string[] = [];
  const open = (): Promise<FilesStore> =>
    openFilesStore({
      root: "/store",
      databases: sim.databases,
      disk: sim.disk,
      lockTimeoutMs: 0,
      report: ({ note }) => reports.push(note),
    });
  const store = await open();
  store.work.ledger.run("CREATE TABLE jobs (uid TEXT NOT NULL)");
  const job = (uid: string) => void store.work.ledger.run("INSERT INTO jobs (uid) VALUES (?)", uid);
  const find = (by: { key: string } | { sessionId: string }) =>
    runOn(store.work.ledger, store.work.find("alice", by));
  return { sim, store, open, job, find, reports };
}

test.each(["write", "rename", "sync", "everything"] as const)(
  "if the disk fails at %s after the commit, the session exists with its runs, and continues later",
  async (failing) => {
    const { sim, store, job, find, reports } = await prepared();
    await store.sessions.create(alice, { key: "agent:main:main", sessionId: "parent", cwd: "/w" });
    const told: string[] = [];
    store.watch.subscribe(alice, ({ type }) => told.push(type));
    let isFull = false;
    sim.disk.fault = (operation, path) =>
      isFull && (operation === failing || failing === "everything") && path.includes("/sessions")
        ? { error: "ENOSPC" }
        : null;
    const record = await store.work.create(alice, init, ({ uid }) => {
      job(uid);
      isFull = true;
      return valueScript(() => void told.push("told"));
    });
    expect(record.meta).toEqual({ label: "mine" });
    expect(told).toEqual(["created", "told"]);
    expect(reports.join()).toContain("created on first use");
    expect(store.work.ledger.sql("SELECT uid FROM jobs").all()).toEqual([{ uid: record.uid }]);
    expect(find({ key: init.key })?.uid).toBe(record.uid);
    await refused("conflict", () => store.sessions.create(alice, { ...init, sessionId: "another" }));
    expect(await store.sessions.count(alice, {})).toBe(2);
    isFull = false;
    expect(await store.sessions.get(alice, "s")).toEqual(record);
    expect((await listed(store, alice)).toSorted()).toEqual(["parent", "s"]);
    await append(store, alice, "s", "first");
    expect(await ids(store, alice, "s")).toEqual(["first"]);
    await store.close();
    await sim.dispose();
  },
);

test("after a power cut following the commit, the session and its runs exist", async () => {
  const { sim, store, open, job } = await prepared();
  let uid = "";
  sim.disk.fault = (_, path) => (uid !== "" && path.includes("/sessions") ? { error: "EIO" } : null);
  await store.work.create(alice, init, (session) => {
    uid = session.uid;
    job(uid);
    return valueScript(() => undefined);
  });
  sim.disk = sim.disk.cutPower();
  const again = await open();
  expect((await again.sessions.get(alice, "s"))?.uid).toBe(uid);
  expect(again.work.ledger.sql("SELECT uid FROM jobs").all()).toEqual([{ uid }]);
  await append(again, alice, "s", "first");
  expect(await ids(again, alice, "s")).toEqual(["first"]);
  await again.close();
  await store.close().catch(() => undefined);
  await sim.dispose();
});

test("a fork is not found before its files are written", async () => {
  const { sim, store, find } = await prepared();
  await store.sessions.create(alice, init);
  await append(store, alice, "s", "first");
  const found = new Set<string | null>();
  const fork = { key: "agent:main:session:fork", sessionId: "fork" };
  sim.disk.fault = (operation, path) => {
    if (operation === "write" && path.includes("fork")) {
      found.add(find({ key: fork.key })?.key ?? null);
      found.add(find({ sessionId: fork.sessionId })?.key ?? null);
    }
    return null;
  };
  const { uid } = await store.sessions.fork(alice, "s", "first", { ...fork, cwd: "/w" });
  expect([...found]).toEqual([null]);
  expect(find({ key: fork.key })?.uid).toBe(uid);
  await store.close();
  await sim.dispose();
});
