import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Backend } from "../../src/entry-postgres.ts";
import { openPostgres } from "../../src/entry-postgres.ts";
import type { ScriptedModel } from "../../src/entry-testing.ts";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import type { TestDatabase } from "../support/postgres-server.ts";
import { migrator, roles, serverFor } from "../support/postgres-server.ts";
import { soon } from "../support/soon.ts";

let database: TestDatabase;
const backends: Backend[] = [];
const opened: Skein[] = [];

beforeEach(async (context) => {
  const server = await serverFor(context);
  await server.createRoles();
  database = await server.createDatabase();
});

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(opened.splice(0).map((skein) => skein.close({ graceMs: 0 })));
  await Promise.all(backends.splice(0).map((backend) => backend.close()));
  await database.drop();
});

async function connect(): Promise<Backend> {
  const backend = await openPostgres({ url: database.url(migrator), maxConnections: 3 });
  backends.push(backend);
  return backend;
}

async function openSkein(backend: Backend, options: SkeinOptions = {}): Promise<[Skein, ScriptedModel]> {
  const model = scriptedModel((_, index) => ({ text: `Answer ${index + 1}` }));
  const skein = await createSkein({
    backend,
    config: null,
    app: "desk",
    models: { "own/model": model },
    agents: [defineAgent({ id: "main", model: "own/model" })],
    ...options,
  });
  opened.push(skein);
  return [skein, model];
}

/** Unlike `expect.poll`, does not advance the fake timers. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await nextTurn();
}

const trip = { userId: "ann", sessionId: "trip" };

describe("createSkein on a PostgreSQL database", () => {
  test("[MCH5] a program accepts messages, and another one with its own connections answers them", async () => {
    const [here] = await openSkein(await connect(), { workers: false });
    const [there, model] = await openSkein(await connect());
    const turn = here.session(trip).send("Plan three days in Kyoto");
    expect(await turn.result).toMatchObject({ reply: "Answer 1" });
    const { messages } = await there.session(trip).history({});
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(model.requests).toHaveLength(1);
  });

  test("[MCH5] the database outlives the program, and the store can be used directly", async () => {
    const backend = await connect();
    const [first] = await openSkein(backend);
    await first.session(trip).send("Plan three days in Kyoto").result;
    await first.close();
    const store = backend.openStore();
    const { sessions } = await store.sessions.list({ userId: "ann" }, { limit: 10 });
    expect(sessions).toMatchObject([{ sessionId: "trip" }]);
    expect((await store.search.search({ userId: "ann" }, { text: "kyoto" })).hits).toHaveLength(1);
    expect((await store.sessions.list({ userId: "bob" }, { limit: 10 })).sessions).toEqual([]);
    const [second] = await openSkein(backend);
    expect(await second.session(trip).send("And Nara?").result).toMatchObject({ reply: "Answer 1" });
    expect(await backend.findProblems()).toEqual([]);
  });

  test("[MCH5] the configuration can name the database, and a gateway can be mounted", async () => {
    const folder = temporaryFolder();
    const skein = await createSkein({
      dir: folder.path,
      env: {},
      config: { store: database.url(migrator), defaults: { model: "rehearsal/basic" } },
    });
    opened.push(skein);
    const gateway = await mountOverHttp(skein, folder.path);
    const { runId } = await gateway.call("chat.send", {
      ...{ sessionKey: "main", message: "Hello", idempotencyKey: "1" },
    });
    expect(await gateway.call("agent.wait", { runId, timeoutMs: 100_000 })).toMatchObject({ state: "ok" });
    const { sessions } = await (await connect()).openStore().sessions.list({}, { limit: 10 });
    expect(sessions).toMatchObject([{ key: "agent:main:main" }]);
    await gateway.close();
    folder.remove();
  });

  test("[MCH3] a mounted gateway is not ready while the database cannot be reached", async () => {
    const folder = temporaryFolder();
    const proxy = await startPostgresProxy(database.url(migrator));
    const config = { store: proxy.url, defaults: { model: "rehearsal/basic" } };
    const skein = await createSkein({ dir: folder.path, env: {}, config, quiet: true });
    opened.push(skein);
    const gateway = await mountOverHttp(skein, folder.path);
    const ready = async () => (await fetch(`${gateway.url}/readyz`)).status;
    expect(await ready()).toBe(200);
    proxy.cut();
    expect(await ready()).toBe(503);
    proxy.restore();
    await soon(ready).toBe(200);
    await gateway.close();
    await skein.close({ graceMs: 0 });
    await proxy.close();
    folder.remove();
  });

  test("[MCH12] wakes the other processes once in 20 milliseconds, however many messages it accepts", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const [skein] = await openSkein(await connect(), { workers: false });
    const client = new pg.Client({ connectionString: database.url(migrator) });
    await client.connect();
    const heard: (string | undefined)[] = [];
    client.on("notification", ({ payload }) => void heard.push(payload));
    await client.query("LISTEN skein_runs");
    const listening = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN%'`;
    await until(async () => (await client.query(listening)).rowCount === 1);
    // Notifications arrive in the order of their transactions.
    let markers = 0;
    const countWakeUps = async () => {
      markers += 1;
      await client.query("SELECT pg_notify('skein_runs', 'marker')");
      await until(async () => heard.filter((each) => each === "marker").length === markers);
      return heard.length - markers;
    };
    const acceptMessages = async () => {
      const sessionIds = Array.from({ length: 10 }, () => randomUUID());
      for (const { runId } of sessionIds.map((sessionId) => skein.session({ sessionId }).send("Hello")))
        await until(async () => (await skein.runs.get(runId))?.state === "queued");
    };
    for (let round = 0; round < 3; round++) {
      await acceptMessages();
      vi.advanceTimersByTime(19);
      await acceptMessages();
      expect(await countWakeUps()).toBe(round);
      vi.advanceTimersByTime(1);
      await until(async () => (await countWakeUps()) > round);
      expect(await countWakeUps()).toBe(round + 1);
    }
    await client.end();
  });

  test("uses separate roles for clients, runs and tables", async () => {
    const backend = await openPostgres({
      url: database.url(roles.app),
      workerUrl: database.url(roles.worker),
      migratorUrl: database.url(migrator),
    });
    backends.push(backend);
    const [skein] = await openSkein(backend);
    expect(await skein.session(trip).send("Hello").result).toMatchObject({ reply: "Answer 1" });
  });

  test("refuses a second place for sessions, and a back end that it did not open", async () => {
    const backend = await connect();
    await expect(createSkein({ backend, memory: true })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("both backend and memory"),
    });
    await expect(createSkein({ backend: { close: async () => undefined } as Backend })).rejects.toThrow(
      "openPostgres from skein/postgres",
    );
  });

  test("names an address without a role or a server", async () => {
    const { host, pathname } = new URL(database.url());
    const workerUrl = `postgres://${host}${pathname}`;
    const options = { url: database.url(migrator), workerUrl, migratorUrl: database.url(migrator) };
    await expect(openPostgres(options)).rejects.toThrow(/names no role/);
    await expect(openPostgres({ url: "postgres://skein@127.0.0.1:1/skein" })).rejects.toMatchObject({
      code: "database_unavailable",
    });
  });
});
