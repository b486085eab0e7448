import { expect, test } from "vitest";
import type { SkeinEvent } from "../../core/events.ts";
import { Database, inMemory } from "../../store/files/database.ts";
import type { RunSession } from "../contract.ts";
import { EmbeddedRuns } from "./runs.ts";

const facts = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";
const s: RunSession = { uid: "u1", userId: "ann", agentId: "main", key: "agent:main:main", sessionId: "s1" };

test("smoke", async () => {
  const events: SkeinEvent[] = [];
  let n = 0;
  const runs = new EmbeddedRuns({
    ledger: new Database(inMemory, "", [facts]),
    clock: { now: () => 1000 },
    newId: () => `id-${++n}`,
    emit: (event) => void events.push(event),
    isGone: () => false,
    underLock: async (_s, act) => {
      if (!act()) throw new Error("fenced");
      return { leafId: null };
    },
  });
  const { run } = await runs.accept({
    session: s,
    kind: "user",
    message: { role: "user", content: "hi" },
    idempotencyKey: "k",
  });
  expect((await runs.pending("u1")).length).toBe(1);
  const claim = await runs.claim("me");
  expect(claim?.run.runId).toBe(run.runId);
  expect(claim?.how).toBe("new");
  const held = { runId: run.runId, fence: claim?.run.fence ?? 0 };
  expect(runs.isHeld(held)).toBe(true);
  await runs.written(held);
  const two = await runs.accept({ session: s, kind: "user", message: { role: "user", content: "more" } });
  expect(await runs.claim("me")).toBe(null);
  expect((await runs.steerable(held)).map((r) => r.runId)).toEqual([two.run.runId]);
  await runs.steered(held, two.run.runId);
  expect(await runs.toStop("me")).toEqual([]);
  await runs.release(held);
  const again = await runs.claim("me");
  expect(again?.how).toBe("recovered");
  await runs.abort(run.runId);
  expect(await runs.toStop("me")).toEqual([run.runId]);
  expect(await runs.toStop("another")).toEqual([]);
  await runs.end({ runId: run.runId, fence: again?.run.fence ?? 0 }, { state: "ok", reply: "yes" });
  expect((await runs.get(two.run.runId))?.outcome?.reply).toBe("yes");
  expect(events.map((e) => e.type)).toEqual([
    "run.queued",
    "run.started",
    "run.queued",
    "run.queued",
    "run.recovered",
    "run.ended",
    "run.ended",
  ]);
  expect((await runs.list({ states: ["ok"] })).length).toBe(1);
  expect((await runs.sweep()).nextAt).toBe(null);
});
