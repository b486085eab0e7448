import { expect, test, vi } from "vitest";
import { systemClock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import type { Claim, RunStore } from "./contract.ts";
import { RunStopped, Worker } from "./worker.ts";

const held = { runId: "r1", fence: 3 };
const claim = { run: { ...held, deadline: null, session: { uid: "s1" } }, held } as unknown as Claim;

function workerOver(
  runs: Partial<RunStore>,
  execute: (claim: Claim, signal: AbortSignal) => Promise<void>,
  { leaseMs = 1000, mustRenew = false, clock = systemClock } = {},
) {
  const reports: unknown[] = [];
  const some: Partial<RunStore> = {
    sweep: async () => ({ nextAt: null }),
    claim: async () => null,
    changedByOthers: async () => false,
    stopRequests: async () => ({ lost: [], aborted: [] }),
    isHeld: async () => true,
    get: async () => null,
    ...runs,
  };
  const report = (error: unknown) => void reports.push(error);
  const parts = { runs: some as RunStore, owner: "me", clock, leaseMs, mustRenew };
  const options = { ...parts, execute, report, unwindMs: 50 };
  return { worker: new Worker(options), reports };
}

test("[LIB27] a run claimed during a close is released, and not started", async () => {
  const asked = Promise.withResolvers<void>();
  const given = Promise.withResolvers<Claim | null>();
  const done: string[] = [];
  const runs: Partial<RunStore> = {
    claim: () => {
      asked.resolve();
      return given.promise;
    },
    release: async ({ runId, fence }) => void done.push(`released ${runId} ${fence}`),
  };
  const { worker, reports } = workerOver(runs, async () => void done.push("begun"));
  worker.start();
  await asked.promise;
  const closing = worker.close();
  given.resolve(claim);
  await closing;
  expect(done).toEqual(["released r1 3"]);
  expect(reports).toEqual([]);
});

test("a run that finds no file descriptor returns to the queue, and runs when there is one", async () => {
  const done: string[] = [];
  const finished = Promise.withResolvers<void>();
  let queued = 1;
  const runs: Partial<RunStore> = {
    claim: async () => (queued-- > 0 ? claim : null),
    release: async ({ runId }) => {
      done.push(`released ${runId}`);
      queued = 1;
    },
    lose: async () => void done.push("lost"),
  };
  const cause = Object.assign(new Error("too many open files"), { code: "EMFILE" });
  const { worker, reports } = workerOver(runs, async () => {
    if (done.length < 2) throw new Error("a file could not be opened", { cause });
    done.push("done");
    finished.resolve();
  });
  worker.start();
  await finished.promise;
  await worker.close();
  expect(done).toEqual(["released r1", "released r1", "done"]);
  expect(reports).toHaveLength(2);
});

test("claims are paused for a session that another process has locked, and then resume", async () => {
  const resumed = Promise.withResolvers<void>();
  const asked: string[][] = [];
  const runs: Partial<RunStore> = {
    claim: async (_, except = new Set(), onLocked = () => undefined) => {
      asked.push([...except]);
      if (asked.length === 1) onLocked("s1");
      if (asked.length > 2 && except.size === 0) resumed.resolve();
      return asked.length === 1 ? claim : null;
    },
  };
  const { worker, reports } = workerOver(runs, async () => undefined);
  worker.start();
  await resumed.promise;
  await worker.close();
  expect(asked[1]).toEqual(["s1"]);
  expect(reports).toEqual([]);
});

test("[LIB27] close waits for a sweep in progress", async () => {
  const sweeping = Promise.withResolvers<{ nextAt: null }>();
  let isClosed = false;
  const { worker } = workerOver({ sweep: () => sweeping.promise }, async () => undefined);
  worker.start();
  const closing = worker.close().then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  sweeping.resolve({ nextAt: null });
  await closing;
});

test("[LIB27] a run that requests a slot after the stop is refused at once", async () => {
  const { worker } = workerOver({}, async () => undefined);
  worker.start();
  await worker.close();
  const stopped = AbortSignal.abort(new RunStopped("closing"));
  await expect(worker.resume({ runId: "r1", fence: 1 }, stopped)).rejects.toThrow(RunStopped);
});

test.each([
  ["when closing starts", (worker: Worker) => void worker.close(3_600_000), () => undefined],
  ["after that", () => undefined, (worker: Worker) => void worker.close(3_600_000)],
])("[LIB27] a run that requests a slot %s is stopped, and then refused", async (_, afterwards, before) => {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const refused = Promise.withResolvers<unknown>();
  let claims = 0;
  const runs: Partial<RunStore> = {
    claim: async () => (claims++ === 0 ? claim : null),
    get: async () => claim.run,
    resume: async () => false,
  };
  const { worker } = workerOver(runs, async (claimed, signal) => {
    begun.resolve();
    await go.promise;
    const resuming = worker.resume(claimed.held, signal);
    await resuming.catch(() => refused.resolve(signal.reason));
  });
  worker.start();
  await begun.promise;
  before(worker);
  go.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  afterwards(worker);
  expect(await refused.promise).toMatchObject({ why: "closing" });
  await worker.close();
});

test("[KIL2] a run that was lost and claimed again is kept by its second claim, and the first is stopped", async () => {
  const second = { ...claim, held: { ...held, fence: 4 } };
  const waiting: Claim[] = [claim];
  const renewed: number[][] = [];
  const ends: (() => void)[] = [];
  const reasons: unknown[] = [];
  const runs: Partial<RunStore> = {
    claim: async () => waiting.shift() ?? null,
    renew: async (_, held) => {
      renewed.push(held.map(({ fence }) => fence));
      return [];
    },
  };
  const execute = (_: Claim, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      ends.push(resolve);
      signal.addEventListener("abort", () => reasons.push((signal.reason as RunStopped).why));
    });
  const { worker } = workerOver(runs, execute, { leaseMs: 30 });
  worker.start();
  while (ends.length < 1) await new Promise((resolve) => setImmediate(resolve));
  waiting.push(second);
  worker.wake();
  while (ends.length < 2) await new Promise((resolve) => setImmediate(resolve));
  expect(reasons).toEqual(["lost"]);
  ends[0]?.();
  await new Promise((resolve) => setImmediate(resolve));
  expect(worker.activeCount).toBe(1);
  renewed.length = 0;
  while (renewed.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(renewed[0]).toEqual([4]);
  ends[1]?.();
  await worker.close();
});

test("[LIB27] close keeps the process alive until hanging runs have had their time", async () => {
  const begun = Promise.withResolvers<void>();
  let claims = 0;
  const { worker } = workerOver({ claim: async () => (claims++ === 0 ? claim : null) }, () => {
    begun.resolve();
    return new Promise(() => undefined);
  });
  worker.start();
  await begun.promise;
  const timers = vi.spyOn(globalThis, "setTimeout");
  await worker.close(40);
  // The timers for the grace period of active runs and for the cleanup of aborted runs.
  const made = timers.mock.results.map(({ value }) => value as NodeJS.Timeout);
  const own = timers.mock.calls.flatMap(([, ms], at) =>
    ms === 40 || ms === 50 ? [[ms, made[at]?.hasRef()]] : [],
  );
  timers.mockRestore();
  expect(own).toEqual([
    [40, true],
    [50, true],
  ]);
});

test("[LIB27] a second close uses the shorter timeout", async () => {
  const begun = Promise.withResolvers<void>();
  let claims = 0;
  const { worker } = workerOver({ claim: async () => (claims++ === 0 ? claim : null) }, (_, signal) => {
    begun.resolve();
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
  });
  worker.start();
  await begun.promise;
  const closing = [worker.close(3_600_000), worker.close(1), worker.close(3_600_000)];
  await Promise.all(closing);
  expect(worker.activeCount).toBe(0);
});

test("a run that was ended from outside is stopped at once, not at the next heartbeat", async () => {
  const waiting: Claim[] = [claim];
  let isEnded = false;
  const runs: Partial<RunStore> = {
    claim: async () => waiting.shift() ?? null,
    stopRequests: async (_owner, held) => ({
      lost: held.filter(() => isEnded).map(({ runId }) => runId),
      aborted: [],
    }),
  };
  const begun = Promise.withResolvers<void>();
  const reason = Promise.withResolvers<unknown>();
  const execute = (_: Claim, signal: AbortSignal) => {
    begun.resolve();
    return new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => {
        reason.resolve(signal.reason);
        resolve();
      }),
    );
  };
  const { worker } = workerOver(runs, execute, { leaseMs: 3_600_000 });
  worker.start();
  await begun.promise;
  worker.wake();
  await new Promise((resolve) => setImmediate(resolve));
  expect(worker.activeCount).toBe(1);
  isEnded = true;
  worker.wake();
  expect(await reason.promise).toMatchObject({ why: "lost" });
  await worker.close();
});

test.each([true, false])(
  "a run whose lease cannot be renewed is stopped if it must be (%s)",
  async (mustRenew) => {
    const begun = Promise.withResolvers<AbortSignal>();
    let queued = 1;
    let beats = 0;
    const runs: Partial<RunStore> = {
      claim: async () => (queued-- > 0 ? claim : null),
      renew: async () => {
        beats += 1;
        throw new Error("no database");
      },
      lose: async () => undefined,
    };
    const untilAborted = (signal: AbortSignal) =>
      new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const { worker } = workerOver(
      runs,
      async (_, signal) => {
        begun.resolve(signal);
        await untilAborted(signal);
      },
      { leaseMs: 40, mustRenew },
    );
    worker.start();
    const signal = await begun.promise;
    if (mustRenew) await vi.waitUntil(() => signal.aborted);
    else await vi.waitUntil(() => beats > 8);
    expect(signal.reason).toEqual(mustRenew ? new RunStopped("lost") : undefined);
    await worker.close();
  },
);

test("after a suspend, a process renews its own runs before it looks for lost ones", async () => {
  const calls: string[] = [];
  const swept = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  let ahead = 0;
  let queued = 1;
  const runs: Partial<RunStore> = {
    claim: async () => (queued-- > 0 ? claim : null),
    renew: async () => {
      calls.push("renew");
      return [];
    },
    sweep: async () => {
      calls.push("sweep");
      if (ahead > 0) swept.resolve();
      return { nextAt: 0 };
    },
  };
  const clock = { now: () => Date.now() + ahead };
  const execute = async () => {
    calls.splice(0);
    ahead = 3_600_000;
    await end.promise;
  };
  const { worker } = workerOver(runs, execute, { leaseMs: 3_000_000, clock });
  worker.start();
  await swept.promise;
  end.resolve();
  await worker.close();
  expect(calls.slice(0, 2)).toEqual(["renew", "sweep"]);
});

test("a run that has finished waiting keeps trying to resume while its database is locked", async () => {
  let tries = 0;
  let queued = 1;
  const resumed = Promise.withResolvers<void>();
  const runs: Partial<RunStore> = {
    claim: async () => (queued-- > 0 ? claim : null),
    renew: async () => [],
    resume: async () => {
      tries += 1;
      if (tries < 3) throw new SkeinError("locked", { file: "work.db", holder: "another process" });
      return true;
    },
  };
  const { worker, reports } = workerOver(runs, async (_, signal) => {
    await worker.resume(held, signal);
    resumed.resolve();
  });
  worker.start();
  await resumed.promise;
  await worker.close();
  expect(tries).toBe(3);
  expect(reports).toMatchObject([{ code: "locked" }]);
});
