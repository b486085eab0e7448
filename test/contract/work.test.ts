import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { changeOn, changeRows, runOn, valueScript } from "../../src/core/script.ts";
import type { SessionRef } from "../../src/core/session-ref.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { append, create, ids, listed, refused, said } from "../support/store-calls.ts";

const alice = { userId: "alice", agentId: "main" };
const init = {
  key: "agent:main:session:child",
  sessionId: "child",
  cwd: "/w",
  meta: { label: "mine", spawnedBy: "agent:main:main" },
};
const silent = () => valueScript(() => undefined);

async function opened(kind: "files" | "memory") {
  const root = mkdtempSync(join(tmpdir(), "skein-work-"));
  const store =
    kind === "memory"
      ? createMemoryStore()
      : await openFilesStore({ root, index: "in place", durability: "os" });
  store.work.ledger.exclusively(() => store.work.ledger.run("CREATE TABLE jobs (uid TEXT NOT NULL)"));
  const jobs = () =>
    store.work.ledger
      .sql("SELECT uid FROM jobs")
      .all()
      .map(({ uid }) => String(uid));
  const job = (uid: string) => void store.work.ledger.run("INSERT INTO jobs (uid) VALUES (?)", uid);
  const found = (userId: string, by: { key: string } | { sessionId: string }) =>
    runOn(store.work.ledger, store.work.find(userId, by));
  const dispose = async () => {
    await store.close();
    rmSync(root, { recursive: true, force: true });
  };
  return { store, root, jobs, job, found, dispose };
}

describe.each(["files", "memory"] as const)("the runs of the %s store", (kind) => {
  test("a session and its runs are stored together, before any event", async () => {
    const { store, jobs, job, found, dispose } = await opened(kind);
    const told: unknown[] = [];
    store.watch.subscribe(alice, ({ type, session }) => told.push([type, session.sessionId]));
    let given: SessionRef | null = null;
    const record = await store.work.create(alice, init, (session) => {
      given = session;
      job(session.uid);
      return valueScript(() => void told.push(["told", found("alice", { key: init.key })?.uid, jobs()]));
    });
    const { uid, userId, agentId, key, sessionId } = record;
    expect(given).toEqual({ uid, userId, agentId, key, sessionId });
    expect(told).toEqual([
      ["created", "child"],
      ["told", uid, [uid]],
    ]);
    expect(await store.sessions.get(alice, "child")).toEqual(record);
    expect(record.meta).toEqual(init.meta);
    expect(await listed(store, alice)).toEqual(["child"]);
    await append(store, alice, "child", "first");
    expect(await ids(store, alice, "child")).toEqual(["first"]);
    await dispose();
  });

  test("a state value is set only while its fence holds", async () => {
    const { store, dispose } = await opened(kind);
    await create(store, alice, "s");
    const set = (value: number, isHeld: boolean) =>
      store.state.set(alice, "s", "k", value, { fence: { script: () => valueScript(isHeld) } });
    await set(1, true);
    await refused("fenced", () => set(2, false));
    expect(await store.state.get(alice, "s", "k")).toEqual({ value: 1, version: 1 });
    await dispose();
  });

  test("changes of a fence that rejects a write are undone", async () => {
    const { store, jobs, dispose } = await opened(kind);
    await create(store, alice, "s");
    const appendOnce = (uid: string, isAccepted: boolean) => {
      const script = function* () {
        yield* changeRows("INSERT INTO jobs (uid) VALUES (?)", uid);
        return isAccepted;
      };
      const fence = { script, durability: "unsynced" } as const;
      return store.sessions.append(alice, "s", [{ draft: said(uid), id: uid }], { fence });
    };
    await refused("fenced", () => appendOnce("rejected", false));
    await appendOnce("accepted", true);
    expect(jobs()).toEqual(["accepted"]);
    expect(await ids(store, alice, "s")).toEqual(["accepted"]);
    await dispose();
  });

  test("an error of the attendant is rethrown, and nothing of either is left", async () => {
    const { store, root, jobs, job, found, dispose } = await opened(kind);
    const told: unknown[] = [];
    store.watch.subscribe(alice, (change) => told.push(change));
    const refusal = new Error("too many children");
    const failing = store.work.create(alice, init, (session) => {
      job(session.uid);
      // Values read inside the transaction must not be cached as committed.
      expect(found("alice", { sessionId: "child" })?.uid).toBe(session.uid);
      throw refusal;
    });
    await expect(failing).rejects.toBe(refusal);
    expect(jobs()).toEqual([]);
    expect(told).toEqual([]);
    expect(found("alice", { key: init.key })).toBe(null);
    expect(await store.sessions.get(alice, "child")).toBe(null);
    expect(await listed(store, alice)).toEqual([]);
    expect(await store.sessions.count(alice, {})).toBe(0);
    expect(readdirSync(root, { recursive: true }).filter((name) => String(name).includes("child"))).toEqual(
      [],
    );
    const again = await store.work.create(alice, init, silent);
    expect((await store.sessions.get(alice, "child"))?.uid).toBe(again.uid);
    await dispose();
  });

  test.each([
    ["key", { key: "agent:main:session:taken" }],
    ["session ID", { sessionId: "TAKEN" }],
    ["label", { meta: { label: "hers" } }],
  ])("if the %s is in use, the attendant is not even called", async (what, changed) => {
    const { store, jobs, job, found, dispose } = await opened(kind);
    const { uid } = await create(store, alice, "taken", { label: "hers" });
    const making = () =>
      store.work.create(alice, { ...init, ...changed }, (session) => {
        job(session.uid);
        return silent();
      });
    await refused("conflict", making, what);
    expect(jobs()).toEqual([]);
    expect(found("alice", { sessionId: "taken" })?.uid).toBe(uid);
    expect(await listed(store, alice)).toEqual(["taken"]);
    await refused("invalid_key", () =>
      store.work.create(alice, { ...init, key: "agent:other:main" }, silent),
    );
    await expect(store.work.create({ userId: "" }, init, silent)).rejects.toThrow();
    await dispose();
  });

  test("a session is found at once by key and ID, only by its user, while it exists", async () => {
    const { store, dispose } = await opened(kind);
    const { uid, key } = await create(store, alice, "Trip");
    const found = (userId: string | null, by: { key: string } | { sessionId: string }) =>
      changeOn(store.work.ledger, "synced", store.work.find(userId, by))?.uid ?? null;
    expect(runOn(store.work.ledger, store.work.find("alice", { key }))).toEqual({
      uid,
      key,
      ...alice,
      sessionId: "Trip",
    });
    expect(found("alice", { sessionId: "tRIP" })).toBe(uid);
    expect(found(null, { key })).toBe(null);
    expect(found("bob", { sessionId: "Trip" })).toBe(null);
    await store.sessions.patch(alice, "Trip", { archived: true });
    expect(found("alice", { key })).toBe(uid);
    const { fresh } = await store.sessions.reset(alice, "Trip", { sessionId: "next" });
    expect(found("alice", { key })).toBe(fresh.uid);
    expect(found("alice", { sessionId: "Trip" })).toBe(uid);
    await store.sessions.remove(alice, "Trip");
    expect(found("alice", { sessionId: "Trip" })).toBe(null);
    await store.sessions.restore(alice, "Trip");
    expect(found("alice", { sessionId: "Trip" })).toBe(uid);
    await dispose();
  });
});

test("a file of another program under the name is a conflict before the attendant is called", async () => {
  const { store, root, jobs, job, dispose } = await opened("files");
  await create(store, alice, "first");
  const file = join(root, "users/alice/agents/main/sessions/child.jsonl");
  const theirs = `${JSON.stringify({ type: "session", version: 3, id: "child", cwd: "/" })}\n`;
  writeFileSync(file, theirs);
  const making = () =>
    store.work.create(alice, init, (session) => {
      job(session.uid);
      return silent();
    });
  await refused("conflict", making, file);
  expect(jobs()).toEqual([]);
  await dispose();
});
