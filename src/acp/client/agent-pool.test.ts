import { describe, expect, test } from "vitest";
import type { Later } from "../../core/concurrency.ts";
import { AgentPool } from "./agent-pool.ts";

class FakeAgent {
  readonly #closed = Promise.withResolvers<void>();
  readonly closed = this.#closed.promise;
  isStopped = false;
  isDead = false;
  hasDied(): boolean {
    return this.isDead;
  }
  die(): void {
    this.#closed.resolve();
  }
  async stop(): Promise<void> {
    this.isStopped = true;
    this.#closed.resolve();
  }
}

function poolOf(most = 2) {
  let now = 0;
  const timers = new Map<() => void, number>();
  const later: Later = (ms, act) => {
    timers.set(act, now + ms);
    return () => timers.delete(act);
  };
  const reports: unknown[] = [];
  const pool = new AgentPool<FakeAgent>({
    settings: { maxConcurrentSessions: most, idleMs: 1000 },
    clock: { now: () => now },
    later,
    report: (error) => reports.push(error),
  });
  const started: FakeAgent[] = [];
  const start = async () => {
    const agent = new FakeAgent();
    started.push(agent);
    return agent;
  };
  const pass = (ms: number) => {
    now += ms;
    for (const [act, at] of [...timers]) {
      if (at > now) continue;
      timers.delete(act);
      act();
    }
  };
  const signal = new AbortController().signal;
  const acquire = (sessionId: string, starts: (until: AbortSignal) => Promise<FakeAgent> = start) =>
    pool.acquire("twin", sessionId, starts, signal);
  return { pool, acquire, pass, started, reports };
}

describe("the pool of running agents", () => {
  test("does not reuse a dead agent, even before its exit was reported", async () => {
    const { pool, acquire, started } = poolOf();
    const first = await acquire("a");
    pool.done("a", first, true);
    first.isDead = true;
    const second = await acquire("a");
    expect(second).not.toBe(first);
    expect([started.length, first.isStopped]).toEqual([2, true]);
  });

  test("an idle agent is reused until its idle time ends", async () => {
    const { pool, acquire, pass, started } = poolOf();
    const first = await acquire("a");
    pool.done("a", first, true);
    pass(999);
    expect(await acquire("a")).toBe(first);
    pass(5000);
    pool.done("a", first, true);
    pass(999);
    expect(first.isStopped).toBe(false);
    pass(1);
    expect(first.isStopped).toBe(true);
    expect(await acquire("a")).not.toBe(first);
    expect(started).toHaveLength(2);
  });

  test("at the limit, evicts the agent that has been idle longest; if none is idle, it reports that it is busy", async () => {
    const { pool, acquire, pass } = poolOf();
    const [a, b] = [await acquire("a"), await acquire("b")];
    pool.done("b", b, true);
    pass(1);
    pool.done("a", a, true);
    await acquire("c");
    expect([a.isStopped, b.isStopped]).toEqual([false, true]);
    await acquire("a");
    await expect(acquire("d")).rejects.toMatchObject({
      code: "acp_busy",
      message: expect.stringContaining("(2/2)"),
    });
  });

  test("concurrent requests never exceed the limit", async () => {
    const { acquire, started } = poolOf(3);
    const all = await Promise.allSettled(Array.from({ length: 20 }, (_, at) => acquire(`s${at}`)));
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(started).toHaveLength(3);
  });

  test("an acquisition that is aborted just after the agent has started frees its slot", async () => {
    const { pool, acquire } = poolOf(1);
    const stop = new AbortController();
    const agent = new FakeAgent();
    const { closed } = agent;
    // The pool reads this once the agent holds its slot.
    Object.defineProperty(agent, "closed", {
      get: () => {
        stop.abort(new Error("aborted"));
        return closed;
      },
    });
    await expect(pool.acquire("twin", "a", async () => agent, stop.signal)).rejects.toThrow("aborted");
    await acquire("b");
    expect(agent.isStopped).toBe(true);
  });

  test("forgets an agent that dies while idle", async () => {
    const { pool, acquire } = poolOf(1);
    const first = await acquire("a");
    pool.done("a", first, true);
    first.die();
    await first.closed;
    expect(await acquire("a")).not.toBe(first);
  });

  test("[ARU2] does not keep an agent that dies during its turn, even if the turn succeeded", async () => {
    const { pool, acquire } = poolOf(1);
    const first = await acquire("a");
    first.die();
    await first.closed;
    pool.done("a", first, true);
    expect(await acquire("a")).not.toBe(first);
  });

  test("[ARU52] retires an idle agent at once, and a busy one at the end of its turn", async () => {
    const { pool, acquire } = poolOf();
    const [idle, busy] = [await acquire("a"), await acquire("b")];
    pool.done("a", idle, true);
    for (const id of ["a", "b", "nobody"]) pool.rest(id);
    expect([idle.isStopped, busy.isStopped]).toEqual([true, false]);
    pool.done("b", busy, true);
    expect(busy.isStopped).toBe(true);
  });

  test("[ARU52] an agent released during its turn gets a moment to finish it", async () => {
    const { pool, acquire, pass } = poolOf(3);
    const [idle, ends, stays] = [await acquire("a"), await acquire("b"), await acquire("c")];
    pool.done("a", idle, true);
    const released = ["a", "b", "c"].map((id) => pool.release(id));
    expect([idle, ends, stays].map(({ isStopped }) => isStopped)).toEqual([true, false, false]);
    pool.done("b", ends, true);
    expect(ends.isStopped).toBe(true);
    pass(4999);
    expect(stays.isStopped).toBe(false);
    pass(1);
    expect(stays.isStopped).toBe(true);
    await Promise.all(released);
  });

  test("a released start is stopped, counts until it has ended, and names its owner", async () => {
    const { pool, acquire, pass } = poolOf(1);
    const over = Promise.withResolvers<void>();
    const starting = acquire("a", async (until) => {
      await new Promise((resolve) => until.addEventListener("abort", resolve));
      await over.promise;
      throw until.reason;
    });
    const failed = expect(starting).rejects.toMatchObject({
      code: "acp_unavailable",
      message: expect.stringMatching(/twin .*its session no longer exists/),
    });
    const released = pool.release("a");
    pass(5000);
    const next = { isThere: false };
    const other = acquire("b").then(() => {
      next.isThere = true;
    });
    await Promise.resolve();
    expect(next.isThere).toBe(false);
    over.resolve();
    await Promise.all([failed, released, other]);
  });

  test("two concurrent requests of one session leave no agent running unattended", async () => {
    const { pool, acquire, started } = poolOf(2);
    const first = await acquire("a");
    const both = await Promise.allSettled([acquire("a"), acquire("a")]);
    expect(first.isStopped).toBe(true);
    expect(both.map(({ status }) => status)).toContain("fulfilled");
    expect(started.filter(({ isStopped }) => !isStopped)).toHaveLength(1);
    await pool.close();
    expect(started.every(({ isStopped }) => isStopped)).toBe(true);
  });

  test("a failed start frees its place", async () => {
    const { acquire, reports } = poolOf(1);
    const fails = () => Promise.reject(new Error("no such command"));
    await expect(acquire("a", fails)).rejects.toThrow("no such command");
    await acquire("b");
    expect(reports).toEqual([]);
  });

  test("[ARU10] close stops every agent, including those that are starting, and accepts no more", async () => {
    const { pool, acquire } = poolOf(3);
    const [busy, idle] = [await acquire("a"), await acquire("b")];
    pool.done("b", idle, true);
    const late = new FakeAgent();
    const begun = Promise.withResolvers<FakeAgent>();
    const starting = acquire("c", () => begun.promise);
    starting.catch(() => undefined);
    const closing = pool.close();
    begun.resolve(late);
    await closing;
    expect([busy, idle, late].map(({ isStopped }) => isStopped)).toEqual([true, true, true]);
    await expect(starting).rejects.toMatchObject({ code: "acp_unavailable" });
    await expect(acquire("d")).rejects.toMatchObject({ code: "acp_unavailable" });
  });
});
