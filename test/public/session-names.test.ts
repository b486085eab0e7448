import { Readable } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import { run } from "../support/cli.ts";
import { configFile, withParts } from "../support/family.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const name = "agent:main:session:trip";
const hour = 3_600_000;

let gateway: WholeGateway | null = null;
afterEach(async () => {
  await gateway?.close();
  gateway = null;
  await closeAll();
});

/** A Skein instance whose sessions are reset by a rule, with a clock that the test advances. */
async function withResetRule(reset: object) {
  let now = Date.parse("2026-01-05T10:00:00Z");
  const opened = await withScript(
    answering(),
    {},
    { dir: newFolder(), config: configFile({ session: { reset } }), clock: { now: () => now } },
  );
  return {
    ...opened,
    wait: (ms: number) => {
      now += ms;
    },
  };
}

/**
 * A Skein instance with a session "trip" that was reset once. `old` is the session before the reset, and `fresh` the
 * one after it.
 */
async function withResetSession() {
  const opened = await withScript(answering(), { visibility: "agent" });
  const kept = opened.skein.session({ sessionId: "trip" });
  await kept.send("before").result;
  const { old, fresh } = await opened.skein.store.sessions.reset({}, "trip");
  return { ...opened, kept, old, fresh };
}

/** A gateway with a session "trip" that was reset once. */
async function resetOverGateway() {
  gateway = await wholeGateway();
  const { rpc, root } = gateway;
  const ok = async (method: string, params: object) => {
    const { status, body } = await rpc(method, params);
    if (status !== 200) throw new Error(`${method}: ${JSON.stringify(body)}`);
    return body as Record<string, unknown>;
  };
  const send = async (key: string, message: string) => {
    const { runId } = await ok("sessions.send", { key, message, idempotencyKey: message });
    return (await ok("agent.wait", { runId })) as Record<string, unknown>;
  };
  await send(name, "before");
  const reset = (await ok("sessions.reset", { key: "trip" })) as Result<"sessions.reset">;
  const cli = (...args: string[]) => run([...args, "--dir", root]);
  return { ok, rpc, send, cli, reset, fresh: reset.sessionId };
}

describe("after an automatic reset", () => {
  test.each([
    ["idle", { mode: "idle", minutes: 30 }, hour],
    ["daily", { mode: "daily", atHour: 4 }, 24 * hour],
  ] as const)(
    "[SNM1] (%s) the name belongs to the new session, message after message",
    async (_, reset, pause) => {
      const { skein, lines, wait } = await withResetRule(reset);
      const kept = skein.session({ sessionId: "trip" });
      await kept.send("one").result;
      wait(pause);
      const second = await kept.send("two").result;
      expect(second.sessionId).not.toBe("trip");
      const third = await skein.session({ sessionId: "trip" }).send("three").result;
      const fourth = await kept.send("four").result;
      expect([third.sessionId, fourth.sessionId]).toEqual([second.sessionId, second.sessionId]);
      expect(await lines(second.sessionId)).toHaveLength(6);
      wait(pause);
      const fifth = await kept.send("five").result;
      expect([fifth.sessionKey, fifth.sessionId === second.sessionId]).toEqual([name, false]);
      expect((await kept.record())?.sessionId).toBe(fifth.sessionId);
      expect(await lines("trip")).toEqual(["user: one", "assistant: Yes. 1"]);
    },
  );

  test("[SNM4] the old session is still available under its reset: key", async () => {
    const { skein, wait } = await withResetRule({ mode: "idle", minutes: 30 });
    const kept = skein.session({ sessionId: "trip" });
    await kept.send("one").result;
    wait(hour);
    await kept.send("two").result;
    wait(hour);
    const late = await skein.session({ sessionKey: "agent:main:reset:trip" }).send("three").result;
    expect([late.sessionKey, late.sessionId]).toEqual(["agent:main:reset:trip", "trip"]);
  });
});

describe("after a manual reset, in the library", () => {
  test("[SNM1] session({ sessionId }) and an earlier handle mean the new session", async () => {
    const { skein, kept, fresh, lines } = await withResetSession();
    const bare = skein.session({ sessionId: "trip" });
    expect((await kept.record())?.uid).toBe(fresh.uid);
    expect((await bare.open()).uid).toBe(fresh.uid);
    expect((await bare.send("after").result).sessionId).toBe(fresh.sessionId);
    expect((await kept.accept("more")).session.sessionId).toBe(fresh.sessionId);
    expect((await kept.note("noted")).session.sessionId).toBe(fresh.sessionId);
    expect(await lines("trip")).toEqual(["user: before", "assistant: Yes. 1"]);
  });

  test("[SNM1] a name is found regardless of case", async () => {
    const { skein, fresh } = await withResetSession();
    expect((await skein.session({ sessionId: "TRIP" }).record())?.uid).toBe(fresh.uid);
  });

  test("[SNM1] a context with an earlier key and ID means the holder of the key", async () => {
    const { skein, fresh } = await withResetSession();
    const context = { sessionKey: name, sessionId: "trip" };
    expect((await skein.session(context).record())?.uid).toBe(fresh.uid);
  });

  test("[SNM1] callTool and invokeTool act from the new session", async () => {
    const { skein, fresh } = await withResetSession();
    for (const call of [skein.callTool.bind(skein), skein.invokeTool.bind(skein)]) {
      const { result } = await call("session_status", { sessionKey: "current" }, { sessionId: "trip" });
      expect(JSON.stringify(result)).toContain(fresh.sessionId);
    }
  });

  test("[SNM3] the old session is available by its reset: key and its own unique ID", async () => {
    const { skein, old } = await withResetSession();
    for (const context of [{ sessionKey: old.key }, { sessionId: old.uid }]) {
      expect((await skein.session(context).record())?.uid).toBe(old.uid);
    }
    // The ID of a session whose name is used elsewhere remains unique.
    const main = await skein.session().open();
    await skein.store.sessions.reset({}, main.sessionId);
    expect((await skein.session({ sessionId: main.sessionId }).record())?.uid).toBe(main.uid);
  });
});

describe("after a reset and a purge of the new session", () => {
  test.each([
    { where: "files", options: () => ({ dir: newFolder() }) },
    { where: "memory", options: () => ({}) },
  ])("the name means neither earlier session: $where", async ({ options }) => {
    const { skein, lines } = await withScript(answering(), { visibility: "agent" }, options());
    const kept = skein.session({ sessionId: "trip" });
    await kept.send("before").result;
    const { old, fresh } = await skein.store.sessions.reset({}, "trip");
    await skein.store.sessions.remove({}, fresh.sessionId);
    await skein.store.sessions.purge({}, fresh.sessionId);
    expect(await kept.record()).toBeNull();
    const { sessionKey, sessionId } = await kept.send("after").result;
    expect(sessionKey).toBe(name);
    expect(await lines(sessionId)).toEqual(["user: after", "assistant: Yes. 2"]);
    expect(await lines("trip")).toEqual(["user: before", "assistant: Yes. 1"]);
    for (const context of [{ sessionKey: old.key }, { sessionId: old.uid }])
      expect((await skein.session(context).record())?.uid).toBe(old.uid);
  });
});

describe("after a reset, for the tools of an agent", () => {
  test.each([
    ["sessions_send", { sessionKey: "trip", message: "hello" }],
    ["sessions_history", { sessionKey: "trip" }],
    ["session_status", { sessionKey: "trip" }],
  ])("[SNM1] %s reaches the new session", async (tool, args) => {
    const family = await withParts({
      "": [{ text: "Fine." }, { text: "Fine." }],
      hello: [{ text: "Fine." }],
    });
    const { sessions } = family.skein.store;
    const old = await sessions.create({}, { key: name, sessionId: "trip", cwd: "/" });
    const { fresh } = await sessions.reset({}, old.sessionId);
    await family.make("agent:main:main");
    const result = await family.call(tool, args);
    expect(JSON.stringify(result)).not.toContain("reset:trip");
    if (tool === "sessions_send") {
      expect((await family.runsAt(name)).map(({ session }) => session.uid)).toEqual([fresh.uid]);
    } else expect(result).toMatchObject({ sessionKey: "session:trip" });
  });
});

describe("after a reset, over the gateway", () => {
  test("[SNM1] every method that names a session means the new one", async () => {
    const { ok, send, fresh } = await resetOverGateway();
    const named = { key: "trip" };
    expect(await ok("sessions.resolve", named)).toMatchObject({ key: name, sessionId: fresh });
    expect(await ok("sessions.resolve", { sessionId: "trip" })).toMatchObject({
      key: name,
      sessionId: fresh,
    });
    expect(await send("trip", "after")).toMatchObject({ sessionId: fresh });
    expect(await ok("sessions.get", named)).toMatchObject({ sessionId: fresh });
    expect(await ok("chat.history", { sessionKey: "trip" })).toMatchObject({ sessionId: fresh });
    expect(await ok("sessions.archive", { ...named, archived: true })).toMatchObject({ sessionId: fresh });
    expect(await ok("sessions.patch", { ...named, label: "kyoto" })).toMatchObject({ sessionId: fresh });
    expect(await ok("sessions.reset", named)).toMatchObject({ previous: { sessionId: fresh } });
  });

  test("[SNM3] a reader that follows the session stays with the old one", async () => {
    const { ok, send } = await resetOverGateway();
    await send("trip", "second");
    const client = await gateway?.client();
    const seen: string[] = [];
    for await (const entry of client?.follow("trip") ?? []) {
      if (entry.type === "message") seen.push(JSON.stringify(entry.message));
      if (entry.type === "message" && seen.length === 2) {
        const { previous } = (await ok("sessions.reset", { key: "trip" })) as Result<"sessions.reset">;
        await send("trip", "elsewhere");
        await send(previous.key, "third");
      }
      if (seen.length === 3) break;
    }
    expect(seen[2]).toContain("third");
  });

  test("[SNM3] the old session is available by its reset: key and its unique ID, and the result names both", async () => {
    const { ok, reset } = await resetOverGateway();
    const { previous } = reset;
    expect(previous).toMatchObject({ key: "agent:main:reset:trip", sessionId: "trip" });
    const { uid } = previous as unknown as { uid: string };
    for (const key of [previous.key, uid]) {
      expect(await ok("sessions.get", { key })).toMatchObject({ key: previous.key, sessionId: "trip" });
    }
    expect(await ok("sessions.delete", { key: previous.key })).toMatchObject({ sessionId: "trip" });
    expect(await ok("sessions.resolve", { key: "trip" })).toMatchObject({ key: name });
  });

  test("[SNM2] sending to a session in the trash names the trash and sessions restore", async () => {
    const { ok, rpc, fresh } = await resetOverGateway();
    expect(await ok("sessions.delete", { key: "trip" })).toMatchObject({ sessionId: fresh });
    for (const key of ["trip", name]) {
      const { status, body } = await rpc("sessions.send", { key, message: "hi", idempotencyKey: key });
      expect([status, JSON.stringify(body)]).toEqual([404, expect.stringMatching(/trash.*sessions restore/)]);
    }
    expect(await ok("sessions.restore", { key: "trip" })).toMatchObject({ sessionId: fresh });
    expect(await ok("sessions.resolve", { key: "trip" })).toMatchObject({ key: name, sessionId: fresh });
  });
});

describe("after a reset, on the command line", () => {
  test("[SNM1] sessions reset, send, show, archive and rm mean the session that currently has the name", async () => {
    const dir = newFolder();
    const config = configFile({ defaults: { model: "rehearsal/basic" } });
    const cli = async (...args: string[]) => {
      const { out, err, exit } = await run([...args, "--dir", dir, "--config", config, "--json"]);
      if (exit !== 0) throw new Error(`${args.join(" ")}: ${err}`);
      return JSON.parse(out) as Record<string, unknown>;
    };
    await cli("send", "session:trip", "before");
    const { sessionId: fresh } = await cli("sessions", "reset", "trip");
    expect(await cli("send", "trip", "after")).toMatchObject({ sessionId: fresh });
    expect(JSON.stringify(await cli("sessions", "show", "trip"))).not.toContain("before");
    expect(await cli("sessions", "archive", "trip")).toMatchObject({ sessionId: fresh });
    const { sessionId: second } = await cli("sessions", "reset", "trip");
    expect(await cli("sessions", "rm", "trip")).toMatchObject({ sessionId: second });
    const { err, exit } = await run(["send", "trip", "late", "--dir", dir, "--config", config]);
    expect([exit, err]).toEqual([
      1,
      expect.stringMatching(/trash. To restore it: skein sessions restore trip/),
    ]);
    expect(await cli("sessions", "restore", "trip")).toMatchObject({ sessionId: second });
    // The first session can be reached only by its own key, and nothing else is removed in its place.
    expect(await cli("sessions", "rm", "agent:main:reset:trip")).toMatchObject({ sessionId: "trip" });
    expect(await cli("sessions", "restore", "agent:main:reset:trip")).toMatchObject({ sessionId: "trip" });
    expect(JSON.stringify(await cli("sessions", "show", "trip"))).toContain(second);
  });

  test("[SNM1] after /new in a chat, the name means the new session", async () => {
    const dir = newFolder();
    const config = configFile({ defaults: { model: "rehearsal/basic" } });
    const place = ["--dir", dir, "--config", config];
    const stream = Readable.from(["before\n", "/new\n", "after\n"]);
    await run(["chat", "session:trip", ...place], { input: () => ({ stream, typed: false }) });
    const { out } = await run(["sessions", "show", "trip", ...place]);
    expect(out).toContain("after");
    expect(out).not.toContain("before");
    expect((await run(["send", "trip", "more", ...place])).exit).toBe(0);
  });
});

describe("a session in the trash", () => {
  test("[SNM2] sending to it from the library names the trash and sessions restore", async () => {
    const { skein } = await withScript(answering());
    const trip = skein.session({ sessionId: "trip" });
    await trip.send("before").result;
    await skein.store.sessions.remove({}, "trip");
    await expect(trip.send("after").result).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringMatching(/trash.*sessions restore trip/),
    });
    await skein.store.sessions.restore({}, "trip");
    expect((await trip.send("after").result).sessionId).toBe("trip");
  });
});
