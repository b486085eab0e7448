import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { defineTool, HookRegistry } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { call, configFile, desk, withParts } from "../support/family.ts";
import type { MountedOverHttp } from "../support/mounted-gateway.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import type { OpenedSkein } from "../support/skein.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";
import { soon } from "../support/soon.ts";
import { openSqliteStore } from "../support/sqlite-store.ts";

const trip = "agent:main:session:trip";
const hour = 3_600_000;

const gateways: MountedOverHttp[] = [];
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  await closeAll();
});

/** Hooks that record which sessions end and that cancel resets with the reason in `cancel`. */
function watchEnds(cancel?: string) {
  const told: string[] = [];
  const hooks = new HookRegistry();
  hooks.on("before_reset", ({ key, sessionId, why, ctx }) => {
    told.push(`before_reset ${key} ${sessionId}`);
    expect([why.length > 0, ctx.sessionKey]).toEqual([true, key]);
    return cancel === undefined ? undefined : { cancel };
  });
  hooks.on("session_end", ({ key, sessionId, reason, ctx }) => {
    told.push(`session_end ${key} ${sessionId} ${reason}`);
    expect([ctx.sessionKey, ctx.sessionId]).toEqual([key, sessionId]);
  });
  return { hooks, told };
}

/** A Skein instance with hooks, and its gateway over HTTP. */
async function withGateway(hooks: HookRegistry, settings: object = {}) {
  const dir = newFolder();
  const config = configFile({ agents: { main: { model: "rehearsal/script" } }, ...settings });
  const opened = await withScript(answering(), {}, { dir, config, hooks });
  return { ...opened, calls: await mount(opened, dir) };
}

async function mount({ skein }: OpenedSkein, dir: string): Promise<MountedOverHttp> {
  const gateway = await mountOverHttp(skein, dir);
  gateways.push(gateway);
  return gateway;
}

const ends = [`before_reset ${trip} trip`, `session_end ${trip} trip reset`];

describe("before_reset and session_end", () => {
  test("[HKE1] are called by an automatic reset", async () => {
    let now = Date.parse("2026-01-05T10:00:00Z");
    const { hooks, told } = watchEnds();
    const config = configFile({ session: { reset: { mode: "idle", minutes: 30 } } });
    const { skein } = await withScript(answering(), {}, { config, hooks, clock: { now: () => now } });
    const session = skein.session({ sessionId: "trip" });
    await session.send("one").result;
    now += hour;
    await session.send("two").result;
    expect(told).toEqual(ends);
  });

  test("[HKE1] are called by sessions.reset over RPC", async () => {
    const { hooks, told } = watchEnds();
    const { skein, calls } = await withGateway(hooks);
    await skein.session({ sessionId: "trip" }).open();
    await calls.call("sessions.reset", { key: "trip" });
    expect(told).toEqual(ends);
  });

  test("[HKE1] are called by session.reset() of the library", async () => {
    const { hooks, told } = watchEnds();
    const { skein } = await withScript(answering(), {}, { hooks });
    const session = skein.session({ sessionId: "trip" });
    await session.open();
    await session.reset();
    expect(told).toEqual(ends);
  });

  test("[HKE1] are called by a reset in the library's store", async () => {
    const { hooks, told } = watchEnds();
    const { skein } = await withScript(answering(), {}, { hooks });
    await skein.session({ sessionId: "trip" }).open();
    await skein.store.sessions.reset({}, "trip");
    expect(told).toEqual(ends);
  });

  test("[HKE2] a hook that cancels keeps the session under its key, and the caller gets the reason", async () => {
    const { hooks, told } = watchEnds("Not on a Monday.");
    const { skein, calls } = await withGateway(hooks);
    const session = skein.session({ sessionId: "trip" });
    await session.open();
    const refused = {
      code: "forbidden",
      message: expect.stringContaining("Not on a Monday. Change the hook"),
    };
    await expect(calls.call("sessions.reset", { key: "trip" })).rejects.toMatchObject(refused);
    await expect(skein.store.sessions.reset({}, "trip")).rejects.toMatchObject(refused);
    expect((await session.record())?.sessionId).toBe("trip");
    expect(told.filter((line) => line.startsWith("session_end"))).toEqual([]);
  });

  const removed = [`session_end ${trip} trip removed`];

  test("[HKE3] session_end is called by sessions.delete over RPC, and not again by a purge", async () => {
    const { hooks, told } = watchEnds();
    const { skein, calls } = await withGateway(hooks);
    await skein.session({ sessionId: "trip" }).open();
    await calls.call("sessions.delete", { key: "trip" });
    expect(told).toEqual(removed);
    await calls.call("sessions.delete", { key: "trip", purge: true });
    expect(told).toEqual(removed);
  });

  test("[HKE3] session_end is called by a removal in the library's store", async () => {
    const { hooks, told } = watchEnds();
    const { skein } = await withScript(answering(), {}, { hooks });
    await skein.session({ sessionId: "trip" }).open();
    await skein.store.sessions.remove({}, "trip");
    expect(told).toEqual(removed);
    expect(await skein.store.sessions.remove({}, "trip")).toBe(false);
    expect(told).toEqual(removed);
  });

  test("[HKE3] session_end is called for every session of a removed user", async () => {
    const { hooks, told } = watchEnds();
    const { skein, calls } = await withGateway(hooks);
    for (const sessionId of ["a", "b"]) await skein.session({ userId: "ann", sessionId }).open();
    await skein.store.sessions.patch({ userId: "ann" }, "b", { archived: true });
    await skein.session({ sessionId: "trip" }).open();
    await calls.call("users.remove", { userId: "ann" });
    expect(told.toSorted()).toEqual([
      "session_end agent:main:session:a a removed",
      "session_end agent:main:session:b b removed",
    ]);
  });

  test("[HKE3] session_end is called by maintenance", async () => {
    const { hooks, told } = watchEnds();
    const { skein, calls } = await withGateway(hooks, {
      session: { maintenance: { mode: "enforce", pruneAfter: "1ms" } },
    });
    await skein.session({ sessionId: "trip" }).open();
    const { done } = await calls.call("maintenance.run", {});
    expect(done).toMatchObject([{ action: "trash" }]);
    expect(told).toEqual(removed);
  });

  test("[HKE3] session_end is called for a child that is deleted after its task", async () => {
    const { hooks, told } = watchEnds();
    const family = await withParts(
      {
        Plan: [
          call("sessions_spawn", { task: "Geese", cleanup: "delete" }),
          { text: "Soon." },
          { text: "Done." },
        ],
        Geese: [{ text: "12" }],
      },
      { hooks },
    );
    const turn = family.skein.session().send("Plan");
    await turn.result;
    await family.settled(turn.runId);
    await family.until("session.deleted");
    await family.skein.close();
    expect(told).toEqual([expect.stringMatching(/^session_end agent:main:subagent:.* removed$/)]);
  });
});

describe("maintenance", () => {
  const settings = { session: { maintenance: { mode: "enforce", pruneAfter: "30d" } } };

  test("[MXP1] is explained over RPC for a session, and for one in the trash", async () => {
    const { skein, calls } = await withGateway(new HookRegistry(), settings);
    for (const sessionId of ["trip", "gone"]) await skein.session({ sessionId }).open();
    await skein.store.sessions.remove({}, "gone");
    const { explained, done } = await calls.call("maintenance.run", { explain: "trip" });
    expect(explained).toMatchObject({ key: trip, sessionId: "trip" });
    expect(explained?.lines).toEqual([
      "now: nothing",
      expect.stringMatching(/^pruneAfter: would be moved to the trash in /),
      expect.stringMatching(/^maxSessions: not reached: this user has 1 session/),
      "maxDiskBytes: no limit is set",
      "trashAfter: it is not in the trash",
    ]);
    expect(done).toEqual([]);
    const removed = await calls.call("maintenance.run", { explain: "gone" });
    expect(removed.explained?.lines).toContainEqual(
      expect.stringMatching(/^trashAfter: would be purged in /),
    );
    await expect(calls.call("maintenance.run", { explain: "nobody" })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("[MXP1] is explained by skein doctor --explain", async () => {
    const dir = newFolder();
    const config = configFile({ defaults: { model: "rehearsal/basic" }, ...settings });
    const place = ["--dir", dir, "--config", config];
    await run(["sessions", "new", "trip", ...place]);
    const { out } = await run(["doctor", "--explain", "trip", ...place]);
    expect(out).toContain(`Maintenance for ${trip}`);
    expect(out).toMatch(/pruneAfter: would be moved to the trash in /);
    const { out: json } = await run(["doctor", "--explain", "trip", "--json", ...place]);
    expect(JSON.parse(json)).toMatchObject({ maintenance: { explained: { key: trip } } });
  });
});

describe("prewarm", () => {
  test("reads the session of a queued run ahead while the run waits", async () => {
    const dir = newFolder();
    const store = openSqliteStore(join(dir, "sessions.db"));
    const prewarm = vi.spyOn(store.sessions, "prewarm");
    const readAhead = () => prewarm.mock.calls.map(([, sessionId]) => sessionId);
    const { skein, until } = await withScript(
      (_, index) => (index === 0 ? { text: "I begin", stall: true } : { text: "Yes." }),
      {},
      { dir, store, config: configFile({ lanes: { main: 1 } }) },
    );
    const first = skein.session({ sessionId: "first" }).send("hello");
    await until("run.delta");
    const second = skein.session({ sessionId: "second" }).send("hello");
    await soon(readAhead).toContain("second");
    expect(await skein.runs.get(second.runId)).toMatchObject({ state: "queued" });
    await skein.runs.abort(first.runId);
    await first.result.catch(() => undefined);
    await second.result;
    expect(readAhead().filter((sessionId) => sessionId === "second")).toHaveLength(1);
    await skein.close();
    await store.close();
  });
});

describe("rows of sessions", () => {
  /** Returns the row from the results of both the tool and the gateway. */
  const rowsOf = async ({ skein }: OpenedSkein, calls: MountedOverHttp) => {
    const { sessions } = await calls.call("sessions.list", {});
    const { result } = await skein.callTool("sessions_list", {}, {});
    const told = "sessions" in result ? result.sessions : [];
    return [sessions.find(({ key }) => key === trip), told.find(({ key }) => trip.endsWith(`:${key}`))];
  };

  test("show the verbose level that sessions.patch sets, also after a reset", async () => {
    const opened = await withGateway(new HookRegistry(), { tools: { sessions: { visibility: "agent" } } });
    const { skein, calls } = opened;
    await skein.session({ sessionId: "trip" }).send("hello").result;
    for (const row of await rowsOf(opened, calls)) expect(row).toMatchObject({ sessionId: "trip" });
    await calls.call("sessions.patch", { key: "trip", verboseLevel: "full" });
    for (const row of await rowsOf(opened, calls)) expect(row).toMatchObject({ verboseLevel: "full" });
    await calls.call("sessions.reset", { key: "trip" });
    for (const row of await rowsOf(opened, calls)) expect(row).toMatchObject({ verboseLevel: "full" });
  });

  test("[ROW2] show abortedLastRun until a run succeeds", async () => {
    const dir = newFolder();
    const config = configFile({ agents: { main: { model: "rehearsal/script" } } });
    const opened = await withScript(
      (_, index) => (index === 0 ? { text: "I begin", stall: true } : { text: "Yes." }),
      { visibility: "agent" },
      { dir, config },
    );
    const { skein, until } = opened;
    const calls = await mount(opened, dir);
    const turn = skein.session({ sessionId: "trip" }).send("hello");
    await until("run.delta");
    await skein.runs.abort(turn.runId);
    await turn.result.catch(() => undefined);
    for (const row of await rowsOf(opened, calls)) expect(row).toMatchObject({ abortedLastRun: true });
    await skein.session({ sessionId: "trip" }).send("again").result;
    for (const row of await rowsOf(opened, calls)) expect(row).not.toHaveProperty("abortedLastRun");
  });

  test("[ROW3] show where the last reply went, with the session's own delivery context first", async () => {
    const dir = newFolder();
    const config = configFile({ agents: { main: { model: "rehearsal/script" } } });
    const { channel, told } = desk();
    const opened = await withScript(
      answering(),
      { visibility: "agent" },
      { dir, config, channels: [channel] },
    );
    const { skein, until } = opened;
    const calls = await mount(opened, dir);
    const session = skein.session({ sessionId: "trip" });
    await session.send("hello", { deliverTo: { channel: "desk", to: "ann", accountId: "work" } }).result;
    await until("outbox.delivered");
    expect(told).toHaveLength(1);
    const last = { lastChannel: "desk", lastTo: "ann", lastAccountId: "work" };
    for (const row of await rowsOf(opened, calls)) expect(row).toMatchObject(last);
    await skein.store.sessions.patch({}, "trip", { delivery: { channel: "slack", to: "C1" } });
    for (const row of await rowsOf(opened, calls)) {
      expect(row).toMatchObject({ lastChannel: "slack", lastTo: "C1" });
      expect(row).not.toHaveProperty("lastAccountId");
    }
  });
});

test("a result that a hook makes invalid does not discard the results that are ready with it", async () => {
  const tools = ["pay", "odd", "mail"].map((name) =>
    defineTool({ name, description: "Works.", execute: () => `${name} result` }),
  );
  const calls = tools.map(({ name }) => ({ name, arguments: {} }));
  const { skein, lines } = await withScript([{ calls }], { tools });
  skein.hooks.on("tool_result_persist", ({ message }) =>
    message.toolName === "odd" ? { replace: { ...message, isError: undefined as never } } : undefined,
  );
  const turn = skein.session({ sessionId: "s" }).send("go");
  await expect(turn.result).rejects.toMatchObject({ code: "invalid_entry" });
  const results = (await lines("s")).filter((line) => line.startsWith("result:")).toSorted();
  expect(results).toEqual([
    expect.stringContaining("No result was recorded for this call"),
    "result: mail result",
    "result: pay result",
  ]);
});
