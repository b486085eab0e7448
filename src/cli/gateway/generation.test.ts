import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TokenBooks } from "../../../test/support/token-books.ts";
import { openSkein } from "../../app.ts";
import { loadConfig } from "../../config/load.ts";
import type { Handlers } from "../../gateway/methods/dispatch.ts";
import type { App } from "../../sessions/app.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import type { Grace } from "./generation.ts";
import { CurrentGeneration, Leases, openGeneration } from "./generation.ts";

test("readers are notified of a run that expired before the start", async () => {
  using folder = temporaryFolder();
  const dir = join(folder.path, "root");
  const longAgo = { now: () => Date.now() - 7 * 24 * 3_600_000 };
  const inside = Promise.withResolvers<App>();
  const before = await openSkein(
    { dir, config: null, env: {}, workers: false, clock: longAgo, quiet: true },
    inside.resolve,
  );
  const { runId } = await before.session({ sessionKey: "agent:main:main" }).accept("hello");
  const { runs } = await inside.promise;
  // Simulates a run that was started, and then released when its gateway stopped.
  const { run } = (await runs.claim("the one before")) ?? {};
  await runs.release({ runId, fence: run?.fence ?? 0 });
  await before.close();
  const where = { cwd: folder.path, root: dir, env: { HOME: folder.path, SKEIN_LOGGING__LEVEL: "silent" } };
  const heard: string[] = [];
  const serving = await openGeneration({
    where,
    loaded: await loadConfig(where),
    home: { tokens: new TokenBooks().tokens, backend: null },
    pieces: { handlers: () => ({}) as Handlers },
    reload: () => Promise.reject(new Error("not here")),
    emit: (event) => void heard.push(`${event.type} ${event.runId}`),
  });
  const state = async () => (await serving.skein.runs.list()).map((run) => run.state);
  await expect.poll(state).toEqual(["timeout"]);
  expect(heard).toContain(`run.ended ${runId}`);
  await serving.close({ runsMs: 0, callsMs: 0 });
});

test("waiting for calls uses the shortest timeout that was given", async () => {
  const leases = new Leases();
  const lease = leases.acquire();
  await Promise.all([
    leases.waitUntilIdle(3_600_000),
    leases.waitUntilIdle(1),
    leases.waitUntilIdle(3_600_000),
  ]);
  expect(leases.count).toBe(1);
  const waiting = leases.waitUntilIdle(3_600_000);
  lease[Symbol.dispose]();
  await waiting;
  expect(leases.count).toBe(0);
});

const grace: Grace = { runsMs: 1000, callsMs: 500 };

/** A generation that closes when the test allows it. */
function one(name: string) {
  const closed = Promise.withResolvers<void>();
  const asked: Grace[] = [];
  const close = (given: Grace) => {
    asked.push(given);
    return closed.promise;
  };
  return { name, close, asked, end: closed.resolve, fail: closed.reject };
}

describe("the current generation", () => {
  test("a swap is visible at once, and the replaced one is closed in its own time", async () => {
    const [first, second] = [one("first"), one("second")];
    const current = new CurrentGeneration(first, () => undefined);
    expect({ name: current.get().name, leaving: current.retiredCount }).toEqual({
      name: "first",
      leaving: 0,
    });
    current.replace(second, grace);
    expect({ name: current.get().name, leaving: current.retiredCount }).toEqual({
      name: "second",
      leaving: 1,
    });
    expect({ first: first.asked, second: second.asked }).toEqual({ first: [grace], second: [] });
    first.end();
    await expect.poll(() => current.retiredCount).toBe(0);
    expect(second.asked).toEqual([]);
  });

  test("close waits for earlier generations, and reports those that do not end", async () => {
    const [first, second, third] = [one("1"), one("2"), one("3")];
    const current = new CurrentGeneration(first, () => undefined);
    current.replace(second, grace);
    current.replace(third, grace);
    let isClean: boolean | null = null;
    const closing = current.close({ runsMs: 2000, callsMs: 0 }).then((clean) => {
      isClean = clean;
    });
    expect(third.asked).toEqual([{ runsMs: 2000, callsMs: 0 }]);
    // The earlier generations get no more time than the current one.
    expect([first.asked, second.asked]).toEqual([
      [grace, { runsMs: 2000, callsMs: 0 }],
      [grace, { runsMs: 2000, callsMs: 0 }],
    ]);
    third.end();
    second.end();
    await expect.poll(() => current.retiredCount).toBe(1);
    expect(isClean).toBe(null);
    first.end();
    await closing;
    expect(isClean).toBe(true);
  });

  test("a generation that cannot be closed is reported and blocks nothing else", async () => {
    const told: unknown[] = [];
    const [first, second] = [one("1"), one("2")];
    const current = new CurrentGeneration(first, (error) => told.push(error));
    current.replace(second, grace);
    first.fail(new Error("no"));
    second.end();
    expect(await current.close(grace)).toBe(true);
    expect(told.map(String)).toEqual(["Error: no"]);
  });

  test("abandons a generation that takes too long to close", async () => {
    const stuck = one("1");
    const current = new CurrentGeneration(stuck, () => undefined, 0);
    expect(await current.close({ runsMs: 0, callsMs: 0 })).toBe(false);
    stuck.end();
  });
});
