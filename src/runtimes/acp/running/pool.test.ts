import { describe, expect, test } from "vitest";
import type { Later } from "./pool.ts";
import { AgentPool } from "./pool.ts";

class FakeAgent {
  readonly #closed = Promise.withResolvers<void>();
  readonly closed = this.#closed.promise;
  isStopped = false;
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
  const later: Later = (act, ms) => {
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

describe("the agents that run", () => {
  test("[ARU11] one that idles is taken again, until its time is over", async () => {
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

  test("[ARU11] beyond the limit the one that idles longest goes; where none idles it is busy", async () => {
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

  test("[ARU11] many that come at once are never more than the limit", async () => {
    const { acquire, started } = poolOf(3);
    const all = await Promise.allSettled(Array.from({ length: 20 }, (_, at) => acquire(`s${at}`)));
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(started).toHaveLength(3);
  });

  test("[ARU11] one that dies while it idles is forgotten", async () => {
    const { pool, acquire } = poolOf(1);
    const first = await acquire("a");
    pool.done("a", first, true);
    first.die();
    await first.closed;
    expect(await acquire("a")).not.toBe(first);
  });

  test("[ARU11] a start that fails leaves its place to others", async () => {
    const { acquire, reports } = poolOf(1);
    const fails = () => Promise.reject(new Error("no such command"));
    await expect(acquire("a", fails)).rejects.toThrow("no such command");
    await acquire("b");
    expect(reports).toEqual([]);
  });

  test("[ARU10] closing ends all, those that are starting too, and takes no more", async () => {
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
