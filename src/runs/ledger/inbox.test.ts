import { expect, test } from "vitest";
import type { SkeinEvent } from "../../core/events.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { Database, inMemory } from "../../store/files/database.ts";
import { SqliteEngine } from "../../store/sqlite-engine.ts";
import type { AcceptRequest } from "../contract.ts";
import { LedgerRuns } from "../ledger/ledger-runs.ts";
import { migrateRuns } from "./schema.ts";

const facts = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";

/** Counts transactions. `breakAt` is the statement in the batch that fails as if the disk were full. */
class WatchedDatabase extends Database {
  transactions = 0;
  #depth = 0;
  breakAt = Number.POSITIVE_INFINITY;

  override exclusively<T>(act: () => T): T {
    this.transactions += this.#depth === 0 ? 1 : 0;
    this.#depth += 1;
    try {
      return super.exclusively(act);
    } finally {
      this.#depth -= 1;
    }
  }

  override run(...args: Parameters<Database["run"]>): ReturnType<Database["run"]> {
    this.breakAt -= 1;
    if (this.breakAt === 0) throw new Error("database or disk is full");
    return super.run(...args);
  }
}

function prepared() {
  const ledger = new WatchedDatabase(inMemory, "", [facts]);
  const events: SkeinEvent[] = [];
  let made = 0;
  migrateRuns(ledger);
  const runs = new LedgerRuns({
    engine: new SqliteEngine(ledger),
    clock: { now: () => 1000 },
    newId: () => `id-${++made}`,
    emit: (event) => void events.push(event),
    isGone: () => false,
    underLock: async () => ({ leafId: null }),
  });
  ledger.transactions = 0;
  return { ledger, runs, events };
}

function requestOf(user: string, runId: string): AcceptRequest {
  const session: SessionRef = {
    uid: `of-${user}`,
    userId: user,
    agentId: "main",
    key: "agent:main:main",
    sessionId: `s-${user}`,
  };
  return { session, kind: "user", message: { role: "user", content: "hi" }, runId };
}

test("concurrent input is accepted in one transaction, and a refusal affects only its own caller", async () => {
  const { ledger, runs, events } = prepared();
  const requests = [
    requestOf("ann", "a"),
    requestOf("bob", "a"),
    requestOf("bob", "b"),
    requestOf("eve", "e"),
  ];
  const settled = await Promise.allSettled(requests.map((request) => runs.accept(request)));
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  expect(settled[1]).toMatchObject({ reason: { code: "conflict" } });
  expect(ledger.transactions).toBe(1);
  expect(events.map(({ type, runId }) => [type, runId])).toEqual([
    ["run.queued", "a"],
    ["run.queued", "b"],
    ["run.queued", "e"],
  ]);
});

test("a crowd is accepted in parts, in order", async () => {
  const { ledger, runs } = prepared();
  const ids = Array.from({ length: 1200 }, (_, index) => `r-${index}`);
  const accepted = await Promise.all(ids.map((id) => runs.accept(requestOf(id, id))));
  expect(accepted.map(({ run }) => run.runId)).toEqual(ids);
  expect(accepted.map(({ run }) => run.seq)).toEqual(ids.map((_, index) => index + 1));
  expect(ledger.transactions).toBe(3);
});

test("an error that breaks the transaction reaches every caller in it, and nothing is stored or published", async () => {
  const { ledger, runs, events } = prepared();
  ledger.breakAt = 6;
  const settled = await Promise.allSettled(["a", "b", "c"].map((id) => runs.accept(requestOf(id, id))));
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(await runs.list({})).toEqual([]);
  expect(events).toEqual([]);
  expect((await runs.accept(requestOf("a", "a"))).isNew).toBe(true);
});
