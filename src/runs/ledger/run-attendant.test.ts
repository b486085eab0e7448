import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { openPostgresForTest } from "../../../test/support/postgres.ts";
import { append, create, refused } from "../../conformance/expect.ts";
import { systemClock } from "../../core/clock.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { createIdSource } from "../../core/ids.ts";
import { queryRows } from "../../core/script.ts";
import type { SessionRecord, Store } from "../../store/contract.ts";
import { openFilesStore } from "../../store/files/store.ts";
import { createMemoryStore } from "../../store/memory/store.ts";
import type { StoreWork, WorkingStore } from "../../store/work.ts";
import type { AcceptRequest, HeldRun, Run } from "../contract.ts";
import { LedgerRuns } from "../ledger/ledger-runs.ts";
import { migrateRuns } from "./schema.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
const scope = { userId: "alice", agentId: "main" };

async function inFiles(): Promise<Store & { work: StoreWork }> {
  const root = mkdtempSync(join(tmpdir(), "skein-attendant-"));
  folders.push(root);
  return openFilesStore({ root, index: "in place", durability: "os" });
}

/** A store on which runs execute. */
class Working {
  readonly events: SkeinEvent[] = [];
  readonly store: WorkingStore;
  readonly runs: LedgerRuns;

  constructor(store: WorkingStore) {
    this.store = store;
    if (store.work.ledger !== null) migrateRuns(store.work.ledger);
    this.runs = new LedgerRuns({
      engine: store.work.engine,
      clock: systemClock,
      newId: createIdSource(),
      emit: (event) => void this.events.push(event),
      isGone: () => false,
      underLock: ({ userId, agentId, sessionId }, fence) =>
        store.sessions.append({ ...(userId === null ? {} : { userId }), agentId }, sessionId, [], { fence }),
    });
    store.work.attend(this.runs.attendant);
  }

  async accept(session: SessionRecord, more: Partial<AcceptRequest> = {}): Promise<Run> {
    const { uid, userId, agentId, key, sessionId } = session;
    const message = { role: "user" as const, content: "hello" };
    const asked = {
      session: { uid, userId, agentId, key, sessionId },
      kind: "user" as const,
      message,
      ...more,
    };
    return (await this.runs.accept(asked)).run;
  }

  async claim(): Promise<HeldRun> {
    const claim = await this.runs.claim("me");
    return { runId: claim?.run.runId ?? "nothing", fence: claim?.run.fence ?? -1 };
  }
}

describe.each([
  ["files", inFiles],
  ["memory", async () => createMemoryStore()],
  ["PostgreSQL", () => openPostgresForTest()],
] as const)("the runs of sessions in %s", (_name, open) => {
  test("a claim returns the leaf of the session as of its lock", async () => {
    const work = new Working(await open());
    const session = await create(work.store, scope, "s");
    await append(work.store, scope, "s", "a", "b");
    await work.accept(session);
    const claim = await work.runs.claim("me");
    expect(claim?.leafId).toBe("b");
    await work.store.close();
  });

  test("[RUN29] a session is not reset or branched while a run is running or waiting", async () => {
    const work = new Working(await open());
    const session = await create(work.store, scope, "s");
    await append(work.store, scope, "s", "a", "b");
    await work.accept(session);
    const held = await work.claim();
    await refused("conflict", () => work.store.sessions.reset(scope, "s"));
    await refused("conflict", () => work.store.sessions.branch(scope, "s", "a"));
    await work.runs.wait(held, { for: "approval" });
    await refused("conflict", () => work.store.sessions.reset(scope, "s"));
    expect((await work.store.sessions.get(scope, "s"))?.key).toBe(session.key);
    await work.runs.end(held, { state: "aborted" });
    expect((await work.store.sessions.branch(scope, "s", "a")).leafId).toBe("a");
    await work.store.sessions.reset(scope, "s");
    await work.store.close();
  });

  test("a reset takes along waiting and kept input, and ends sleeping runs", async () => {
    const work = new Working(await open());
    const session = await create(work.store, scope, "s");
    const other = await create(work.store, scope, "other");
    const sleeper = await work.accept(session);
    const held = await work.claim();
    const child = await work.accept(other, { kind: "cron", startedBy: sleeper.runId });
    const second = await work.accept(other, { kind: "cron", startedBy: sleeper.runId });
    await work.runs.sleep(held, { wakeAt: Number.MAX_SAFE_INTEGER });
    const kept = await work.accept(session, { kind: "announce", arrivalOf: child.runId });
    expect(kept.keptFor).toBe(sleeper.runId);
    const waiting = await work.accept(session);
    const { fresh } = await work.store.sessions.reset(scope, "s");
    expect((await work.runs.get(sleeper.runId))?.state).toBe("aborted");
    expect((await work.runs.pending(session.uid)).length).toBe(0);
    const moved = await work.runs.pending(fresh.uid);
    expect(moved.map(({ runId }) => runId)).toEqual([kept.runId, waiting.runId]);
    expect(moved[0]).toMatchObject({
      keptFor: null,
      session: { sessionId: fresh.sessionId, key: session.key },
    });
    expect(work.events.at(-1)?.type).toBe("run.queued");
    const claimed = [await work.claim(), await work.claim()].map(({ runId }) => runId);
    expect(claimed).not.toContain("nothing");
    expect((await work.runs.get(second.runId))?.session.uid).toBe(other.uid);
    await work.store.close();
  });

  test("removing a session ends its runs; messages from others go to its parent, or become dead letters", async () => {
    const work = new Working(await open());
    const parent = await create(work.store, scope, "parent");
    const make = (sessionId: string, meta: { spawnedBy?: string }) =>
      work.store.sessions.create(scope, {
        key: `agent:main:session:${sessionId}`,
        sessionId,
        cwd: "/w",
        meta,
      });
    const child = await make("child", { spawnedBy: parent.key });
    const orphan = await make("orphan", {});
    const running = await work.accept(child);
    const held = await work.claim();
    const typed = await work.accept(child);
    const sent = await work.accept(child, { kind: "send" });
    const lost = await work.accept(orphan, { kind: "announce" });
    await work.store.sessions.remove(scope, "child");
    await work.store.sessions.remove(scope, "orphan");
    const stateOf = async (runId: string) => (await work.runs.get(runId))?.state;
    expect([await stateOf(running.runId), await stateOf(typed.runId), await stateOf(lost.runId)]).toEqual([
      "aborted",
      "aborted",
      "aborted",
    ]);
    expect(await work.runs.isHeld(held)).toBe(false);
    expect((await work.runs.pending(parent.uid)).map(({ runId }) => runId)).toEqual([sent.runId]);
    const [letter, ...more] = await work.runs.outbox.list({ states: ["dead"] });
    expect(more).toEqual([]);
    expect(letter).toMatchObject({
      text: "hello",
      runId: lost.runId,
      target: { channel: "session", to: orphan.key },
    });
    expect((await work.claim()).runId).toBe(sent.runId);
    await work.store.close();
  });

  test("a dead letter belongs to its sender, is reported like any other, and outlives its target session", async () => {
    const work = new Working(await open());
    const sender = await create(work.store, scope, "sender");
    const target = await create(work.store, scope, "target");
    const asking = await work.accept(sender);
    const provenance = { kind: "inter_session", sourceSessionKey: sender.key };
    const more = { kind: "ping_pong" as const, provenance, startedBy: asking.runId };
    await work.accept(target, more);
    await work.store.sessions.remove(scope, "target");
    await work.store.sessions.purge(scope, "target");
    const [letter, ...others] = await work.runs.outbox.list({});
    expect(others).toEqual([]);
    expect(letter).toMatchObject({
      state: "queued",
      session: { uid: sender.uid },
      runId: asking.runId,
      target: { channel: "session", to: target.key },
    });
    expect(work.events.filter(({ type }) => type === "outbox.queued")).toMatchObject([
      { sessionId: "sender", runId: asking.runId },
    ]);
    await work.store.close();
  });

  test("[ERZ5] a purge and users rm leave nothing of a session's runs", async () => {
    const work = new Working(await open());
    const session = await create(work.store, scope, "s");
    const other = await create(work.store, scope, "t");
    await work.accept(session);
    await work.claim();
    await work.accept(other);
    await work.store.sessions.remove(scope, "s");
    expect((await work.runs.list({})).length).toBe(2);
    await work.store.sessions.purge(scope, "s");
    expect((await work.runs.list({})).length).toBe(1);
    await work.store.purgeUser("alice");
    expect(await work.runs.list({})).toEqual([]);
    expect(await work.runs.claim("me")).toBe(null);
    for (const table of ["runs", "run_inputs", "run_waits", "ready", "ready_users", "turns", "outbox"]) {
      const rows = await work.store.work.engine.read(() => queryRows(`SELECT * FROM ${table}`));
      expect([table, ...rows]).toEqual([table]);
    }
    await work.store.close();
  });
});
