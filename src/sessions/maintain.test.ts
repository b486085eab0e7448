import { describe, expect, test } from "vitest";
import { defaultConfig } from "../config/load.ts";
import { said } from "../conformance/expect.ts";
import type { Scope } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { failedPayload, runMaintenance } from "./maintain.ts";
import type { MaintenanceRules } from "./plan-maintenance.ts";

const day = 86_400_000;
const ann: Scope = { userId: "ann", agentId: "main" };
const bob: Scope = { userId: "bob", agentId: "main" };

async function prepared() {
  let time = Date.UTC(2026, 0, 1);
  const store = createMemoryStore({ clock: { now: () => time } });
  const create = (scope: Scope, sessionId: string, key = `agent:main:session:${sessionId}`) =>
    store.sessions.create(scope, { key, sessionId, cwd: "/" });
  await create(ann, "old");
  await create(ann, "home", "agent:main:main");
  await create(bob, "old");
  time += 40 * day;
  await create(ann, "new");
  await store.sessions.append(bob, "old", [{ draft: said("still here") }]);
  return { store, now: () => time, later: (days: number) => (time += days * day) };
}

function rulesWith(changes: Partial<MaintenanceRules>): MaintenanceRules {
  return { ...defaultConfig("/root").session.maintenance, ...changes };
}

async function listed(store: Awaited<ReturnType<typeof prepared>>["store"], scope: Scope) {
  return (await store.sessions.list(scope, {})).sessions.map(({ sessionId }) => sessionId).toSorted();
}

describe("maintenance", () => {
  test("[MNT7] warn decides, gives the reasons, and does nothing", async () => {
    const { store, now } = await prepared();
    const work = { store, users: ["ann", "bob"], now: now(), runs: null };
    const report = await runMaintenance({ ...work, rules: rulesWith({ mode: "warn" }) });
    expect(report.decisions).toMatchObject([{ userId: "ann", sessionId: "old", action: "trash" }]);
    expect(report.decisions[0]?.why).toContain("40 days");
    expect(report.done).toEqual([]);
    expect(await listed(store, ann)).toEqual(["home", "new", "old"]);
  });

  test("[MNT7] enforce acts; the trash can be undone until it expires", async () => {
    const { store, now, later } = await prepared();
    const run = (changes: Partial<MaintenanceRules> = {}) =>
      runMaintenance({
        store,
        users: ["ann", "bob"],
        now: now(),
        runs: null,
        rules: rulesWith({ mode: "enforce", ...changes }),
      });
    expect((await run()).done).toHaveLength(1);
    expect(await listed(store, ann)).toEqual(["home", "new"]);
    await store.sessions.restore(ann, "old");
    expect(await listed(store, ann)).toEqual(["home", "new", "old"]);
    await run();
    later(31);
    await run({ pruneAfter: null });
    expect(await store.sessions.trashed(ann)).toEqual([]);
    await expect(store.sessions.restore(ann, "old")).rejects.toThrow("not found");
    expect(await listed(store, bob)).toEqual(["old"]);
  });

  test("once stopped, it neither checks nor does anything", async () => {
    const { store, now } = await prepared();
    const about = { store, users: ["ann", "bob"], now: now(), rules: rulesWith({ mode: "enforce" }) };
    const run = (signal: AbortSignal, looked = () => undefined) => {
      const work = async () => {
        looked();
        return new Map();
      };
      return runMaintenance({ ...about, runs: { work }, signal });
    };
    await expect(run(AbortSignal.abort())).rejects.toThrow(/abort/);
    const leaving = new AbortController();
    await expect(run(leaving.signal, () => void leaving.abort())).rejects.toThrow(/abort/);
    expect(await listed(store, ann)).toEqual(["home", "new", "old"]);
    expect((await run(new AbortController().signal)).done).toHaveLength(1);
  });

  test("[MNT7] beyond the maximum number of sessions per user, the oldest are archived", async () => {
    const { store, now } = await prepared();
    await runMaintenance({
      store,
      users: ["ann", "bob"],
      now: now(),
      runs: null,
      rules: rulesWith({ mode: "enforce", pruneAfter: null, maxSessions: 2 }),
    });
    expect(await listed(store, ann)).toEqual(["home", "new"]);
    expect((await store.sessions.get(ann, "old"))?.meta.archived).toBe(true);
  });

  test("[MNT7] a session that changes at the last moment is left alone, and the others are not", async () => {
    const { store, now } = await prepared();
    const { sessions } = store;
    const racing = new Proxy(sessions, {
      get: (target, name) =>
        name !== "patch"
          ? Reflect.get(target, name)
          : async (...args: Parameters<typeof sessions.patch>) => {
              if (args[1] === "old") await sessions.patch(ann, "old", { displayName: "kept" });
              return sessions.patch(...args);
            },
    });
    const { decisions, done } = await runMaintenance({
      store: { sessions: racing },
      users: ["ann"],
      now: now(),
      runs: null,
      rules: rulesWith({ mode: "enforce", pruneAfter: null, maxSessions: 1 }),
    });
    expect(decisions.map(({ sessionId }) => sessionId)).toEqual(["old", "new"]);
    expect(done.map(({ sessionId }) => sessionId)).toEqual(["new"]);
    expect((await sessions.get(ann, "old"))?.meta).toEqual({ displayName: "kept" });
  });

  test("a session that cannot be changed is reported with the reason, and the others are changed", async () => {
    const { store, now } = await prepared();
    const { sessions } = store;
    const failing = new Proxy(sessions, {
      get: (target, name) =>
        name !== "patch"
          ? Reflect.get(target, name)
          : async (...args: Parameters<typeof sessions.patch>) => {
              if (args[1] === "old") throw new Error("It is damaged.");
              return sessions.patch(...args);
            },
    });
    const { done, failed } = await runMaintenance({
      store: { sessions: failing },
      users: ["ann"],
      now: now(),
      runs: null,
      rules: rulesWith({ mode: "enforce", pruneAfter: null, maxSessions: 1 }),
    });
    expect(done.map(({ sessionId }) => sessionId)).toEqual(["new"]);
    const { failed: shown } = failedPayload(failed);
    expect(shown).toMatchObject([{ sessionId: "old", action: "archive", problem: "It is damaged." }]);
  });
});
