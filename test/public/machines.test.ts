import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { runCommand } from "../support/gateway-process.ts";
import { HeldModel } from "../support/held-model.ts";
import { eventsUntil, Machines } from "../support/machines.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import type { DatabaseServer } from "../support/postgres-server.ts";
import { migrator, roles, serverFor } from "../support/postgres-server.ts";
import { soon } from "../support/soon.ts";
import { SplittingProxy } from "../support/splitting-proxy.ts";

let server: DatabaseServer;
let machines: Machines;

beforeEach(async (context) => {
  server = await serverFor(context);
  machines = await Machines.open(context);
});

afterEach(() => machines?.close());

const startMachine = (name: string, env: NodeJS.ProcessEnv = {}) => machines.start(name, { env });
const connectTo = (gateway: GatewayProcess) => machines.connect(gateway, gateway.token);

describe("gateways on several machines that share a PostgreSQL database", () => {
  test("[MCH1] create the tables together, and each shows what the other does while it happens", async () => {
    const [here, there] = await Promise.all([startMachine("a"), startMachine("b")]);
    const watching = await connectTo(there);
    const key = "agent:main:session:trip";
    const asked = { sessionKey: key, message: "Plan three days in Kyoto", idempotencyKey: "1" };
    const events = await eventsUntil(watching, key, "run.ended", () => here.call("chat.send", asked));
    const names = events.map(({ event }) => event);
    expect(names).toEqual(expect.arrayContaining(["run.started", "run.delta", "entry.appended"]));
    expect(names).not.toContain("gap");
    const told = events.flatMap((each) => (each.event === "entry.appended" ? [each.payload.entry.id] : []));
    const { messages } = await there.call("chat.history", { sessionKey: key });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    const { entries } = await here.call("sessions.entries", { key });
    const ids = entries.map(({ id }) => id);
    expect(ids.filter((id) => told.includes(id))).toEqual(told);
  });

  test("[LIV1] let a client join an answer whose calls and stream reach different ones", async () => {
    const model = await HeldModel.start();
    const start = { config: `agents: { main: {} }\n${model.config}` };
    // The events of the gateway that starts first have lower numbers.
    const streams = await machines.start("a", start);
    const calls = await machines.start("b", start);
    const proxy = await SplittingProxy.to({ calls, streams });
    const client = await machines.connect(proxy, calls.token);
    const sessionKey = "agent:main:session:story";
    await client.call("chat.send", { sessionKey, message: "Tell me a story", idempotencyKey: "1" });
    const request = await model.request(0);
    request.stream("Once upon ");
    const stream = client.events({ keys: [sessionKey] });
    await stream.ready;
    const read = () => stream.call("chat.live", { sessionKey });
    await soon(async () => (await read()).runs[0]?.text).toBe("Once upon ");
    const live = await read();
    expect(live.seq).toBeLessThan((await client.call("chat.live", { sessionKey })).seq ?? 0);
    request.finish("a time.");
    let text = live.runs[0]?.text ?? "";
    for await (const { event, seq, payload } of stream) {
      if (event === "run.ended") break;
      if (event !== "run.delta" || seq <= (live.seq ?? 0)) continue;
      expect(payload.offset).toBe(text.length);
      text += payload.delta;
    }
    expect(text).toBe("Once upon a time.");
    await proxy.close();
    model.close();
  });

  test("[MCH2] accept each other's tokens, and refuse a revoked one at once", async () => {
    const here = await startMachine("a");
    const there = await machines.start("b", { args: ["--store", machines.database.url(migrator)] });
    expect(here.token).not.toBe(there.token);
    const { token, tokenId } = await here.call("tokens.create", {
      userId: "ann",
      scopes: ["read", "write"],
    });
    const asked = { sessionKey: "main", message: "Hello", idempotencyKey: "1" };
    const { runId } = await there.call("chat.send", asked, token);
    expect(await here.call("agent.wait", { runId, timeoutMs: 60_000 }, token)).toMatchObject({
      state: "ok",
    });
    const { users } = await there.call("users.list", {});
    expect(users).toMatchObject([{ userId: "ann", sessions: 1, runs: 1, accessTokens: 1 }]);
    const { sessions } = await here.call("sessions.list", { allUsers: true });
    expect(sessions).toMatchObject([{ userId: "ann", key: "agent:main:main" }]);
    await here.call("tokens.revoke", { tokenId });
    expect((await there.rpc("chat.history", { sessionKey: "main" }, token)).status).toBe(401);
  });

  test("[MCH4] another machine continues the run of one that was killed", async () => {
    const here = await startMachine("a");
    const key = "agent:main:session:slow";
    const asked = { sessionKey: key, message: "be slow for 4 seconds", idempotencyKey: "1" };
    const watching = await connectTo(here);
    await eventsUntil(watching, key, "run.started", () => here.call("chat.send", asked));
    const there = await startMachine("b");
    await machines.stop(here, "SIGKILL");
    const { runId } = await there.call("chat.send", asked);
    expect(await there.call("agent.wait", { runId, timeoutMs: 100_000 })).toMatchObject({ state: "ok" });
    const { messages } = await there.call("chat.history", { sessionKey: key });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  });

  test("work with roles that cannot bypass row-level security, and a role that updates the tables", async () => {
    const roleUrls = {
      SKEIN_STORE: machines.database.url(roles.app),
      SKEIN_POSTGRES__WORKER_URL: machines.database.url(roles.worker),
      SKEIN_POSTGRES__MIGRATOR_URL: machines.database.url(migrator),
    };
    const gateway = await startMachine("a", roleUrls);
    expect(await gateway.ask("Hello", "1")).toMatchObject({ state: "ok" });
    expect(gateway.output).not.toContain("permission denied");
  });

  test("[MCH3] become not ready while the database is away, lose nothing, and become ready again", async () => {
    const proxy = await startPostgresProxy(machines.database.url(migrator));
    const gateway = await startMachine("a", { SKEIN_STORE: proxy.url });
    expect(await gateway.ask("Before", "1")).toMatchObject({ state: "ok" });
    expect((await gateway.ready()).status).toBe(200);
    proxy.cut();
    expect((await gateway.ready()).status).toBe(503);
    const asked = { sessionKey: "main", message: "During", idempotencyKey: "2" };
    const refused = await gateway.rpc("chat.send", asked);
    expect(refused).toMatchObject({ status: 503, body: { error: { retryable: true } } });
    proxy.restore();
    await expect.poll(async () => (await gateway.ready()).status).toBe(200);
    expect(await gateway.ask("After", "3")).toMatchObject({ state: "ok" });
    const { messages } = await gateway.call("chat.history", { sessionKey: "main" });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    await proxy.close();
  });

  test("stop a run whose lease cannot be renewed, and continue it when the database is back", async () => {
    const proxy = await startPostgresProxy(machines.database.url(migrator));
    const model = await HeldModel.start();
    const config = `agents: { main: {} }\n${model.config}`;
    const gateway = await machines.start("a", { config, env: { SKEIN_STORE: proxy.url } });
    const asked = { sessionKey: "main", message: "Hello", idempotencyKey: "1" };
    const { runId } = await gateway.call("chat.send", asked);
    const first = await model.request(0);
    proxy.cut();
    await soon(() => first.isAbandoned).toBe(true);
    proxy.restore();
    (await model.request(1)).finish("Hi.");
    expect(await gateway.call("agent.wait", { runId, timeoutMs: 60_000 })).toMatchObject({ state: "ok" });
    const { messages } = await gateway.call("chat.history", { sessionKey: "main" });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    model.close();
    await proxy.close();
  });

  test("commands use the running gateway, and without one they name it", async () => {
    const gateway = await startMachine("a");
    await gateway.ask("Hello", "1");
    const list = gateway.cli("sessions", "ls");
    expect(await list.end()).toBe(0);
    expect(list.out).toContain("main");
    await machines.stop(gateway);
    const alone = await runCommand(join(machines.folder.path, "a"), "sessions", "ls");
    expect(alone.exit).not.toBe(0);
    expect(alone.err).toContain("The sessions are in a database, and no gateway is running");
  });
});

describe("lanes that several users and machines share", () => {
  const config = (main: number) =>
    `agents: { main: {} }\ndefaults: { model: rehearsal/basic }\nlanes: { main: ${main} }\n`;
  const rows = async (text: string) => (await server.administer(machines.database.name, text))[0]?.rows ?? [];
  const tokenOf = async (gateway: GatewayProcess, userId: string) =>
    (await gateway.call("tokens.create", { userId, scopes: ["read", "write"] })).token;

  test("never execute more runs than they have slots", async () => {
    const gateways = await Promise.all(["a", "b"].map((name) => machines.start(name, { config: config(2) })));
    const users = Array.from({ length: 12 }, (_, at) => `user-${at}`);
    const sent = users.map(async (userId, at) => {
      const gateway = gateways[at % 2] as GatewayProcess;
      const asked = { sessionKey: "main", message: "be slow for 1 seconds", idempotencyKey: userId };
      await gateway.call("chat.send", asked, await tokenOf(gateway, userId));
    });
    let [most, ended] = [0, 0];
    while (ended < users.length) {
      const [count] = await rows(`SELECT count(*) FILTER (WHERE state = 'running')::int AS running,
        count(*) FILTER (WHERE state = 'ok')::int AS ended FROM skein.runs`);
      most = Math.max(most, count?.running);
      ended = count?.ended;
    }
    await Promise.all(sent);
    expect(most).toBe(2);
  });

  test("give users turns, however many each has had", async () => {
    const gateway = await machines.start("a", { config: config(1) });
    const [ann, bob, cy] = await Promise.all(["ann", "bob", "cy"].map((user) => tokenOf(gateway, user)));
    const send = (token: string | undefined, session: string, message: string) =>
      gateway.call(
        "chat.send",
        { sessionKey: session, message, idempotencyKey: `${session} ${message}` },
        token,
      );
    for (let turn = 0; turn < 6; turn++) {
      const { runId } = await send(ann, "main", `Hello ${turn}`);
      await gateway.call("agent.wait", { runId, timeoutMs: 60_000 }, ann);
    }
    await send(cy, "main", "be slow for 4 seconds");
    const sessions = ["one", "two", "three"].map((name) => `agent:main:session:${name}`);
    const waiting = sessions.flatMap((session) => [ann, bob].map((token) => send(token, session, "Hi")));
    await Promise.all(waiting);
    const started = `SELECT "user" FROM skein.runs WHERE key <> 'agent:main:main' AND state = 'ok' ORDER BY started_at, seq`;
    await expect.poll(async () => (await rows(started)).length).toBe(6);
    const users = (await rows(started)).map(({ user }) => user as string);
    expect([0, 2, 4].map((at) => users.slice(at, at + 2).toSorted())).toEqual(
      Array.from({ length: 3 }, () => ["ann", "bob"]),
    );
  });
});
