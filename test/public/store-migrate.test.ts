import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Params, Result } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import { openPostgres } from "../../src/entry-postgres.ts";
import type { Scope, SessionPage, SessionQuery, Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { Started } from "../support/cli-process.ts";
import { GatewayProcess, runCommand } from "../support/gateway-process.ts";
import type { DatabaseServer, TestDatabase } from "../support/postgres-server.ts";
import { migrator, roles, serverFor } from "../support/postgres-server.ts";
import { skeinProgram } from "../support/programs.ts";
import { addChatState, filesIn, fillFolder, fillSparsely, rowsIn, users } from "../support/rich-folder.ts";

const basic =
  "agents: { main: {}, coder: {} }\ndefaults: { model: rehearsal/basic }\nlogging: { level: warn }\n";

let folder: TemporaryFolder;
let server: DatabaseServer;
let database: TestDatabase;
/** The address of the database. */
let url: string;
/** The root folder of the gateway in `a`. */
let root: string;
let back: string;
const gateways: GatewayProcess[] = [];

beforeEach(async (context) => {
  server = await serverFor(context);
  await server.createRoles();
  database = await server.createDatabase();
  url = database.url(migrator);
  folder = temporaryFolder();
  root = join(folder.path, "a", "root");
  back = join(folder.path, "back");
});

afterEach(async () => {
  await stopGateways();
  folder.remove();
  await database.drop();
});

/** Starts a gateway whose root folder is `<home>/root`, on that folder or on a database. */
async function startGateway(home: string, store?: string): Promise<GatewayProcess> {
  mkdirSync(join(folder.path, home), { recursive: true });
  const setting = store === undefined ? "" : `store: ${JSON.stringify(store)}\n`;
  const gateway = await GatewayProcess.start(join(folder.path, home), { config: basic + setting });
  gateways.push(gateway);
  return gateway;
}

async function stopGateways(): Promise<void> {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
}

async function migrate(from: string, to: string, ...options: readonly string[]) {
  return runCommand(folder.path, "store", "migrate", "--from", from, "--to", to, ...options);
}

/** Runs a migration that must succeed, and returns its payload. */
async function migrated(from: string, to: string) {
  const { exit, out } = await migrate(from, to, "--json");
  if (exit !== 0) throw new Error(out);
  return JSON.parse(out);
}

/** Runs a migration that must be refused, and returns the error. */
async function refused(from: string, to: string): Promise<string> {
  const { exit, out, err } = await migrate(from, to);
  expect({ isRefused: exit > 0, out }).toEqual({ isRefused: true, out: "" });
  return err;
}

/** Starts a migration in a process that does something as soon as it prints a text. */
function startUntil(
  printed: RegExp,
  act: string,
  from: string,
  to: string,
  node: readonly string[] = [],
): Started {
  const hook = `const { write } = process.stderr;
    process.stderr.write = (text) => {
      const isWritten = write.call(process.stderr, text);
      if (${printed}.test(text)) { ${act} }
      return isWritten;
    };`;
  const hooks = [...node, "--import", `data:text/javascript,${encodeURIComponent(hook)}`];
  const args = ["store", "migrate", "--from", from, "--to", to];
  const env = { HOME: folder.path, FULL_DISK_FLAG: join(folder.path, "full") };
  return new Started([...hooks, skeinProgram, ...args], env, { cwd: folder.path });
}

async function killedAt(printed: RegExp, from: string, to: string): Promise<void> {
  const command = startUntil(printed, 'process.kill(process.pid, "SIGKILL");', from, to);
  expect(await command.end()).toBe("SIGKILL");
}

describe("skein store migrate", () => {
  test("shows a bar for each stage on a terminal", async () => {
    await fillFolder(root);
    const command = ["store", "migrate", "--from", `files:${root}`, "--to", url];
    const { exit, err } = await run(command, { cwd: folder.path, redraws: true });
    expect(exit).toBe(0);
    const drawn = err.split("\r\u001b[K");
    expect(drawn.at(-1)).toBe("");
    for (const stage of ["Copying sessions", "Copying blobs", "Copying runs, tokens and messages"]) {
      const bars = drawn.filter((line) => line.startsWith(`${stage} `));
      const [, done, total] = /█{24} (\d+) of (\d+)$/.exec(bars.at(-1) ?? "") ?? [];
      expect([stage, done]).toEqual([stage, total]);
      expect(bars.length).toBeGreaterThan(1);
    }
  });

  test("[MCH7] moves everything to PostgreSQL and back, where all logs, files and rows are the same", async () => {
    await fillFolder(root);
    const gateway = await startGateway("a");
    await gateway.ask("Hello", "1");
    await gateway.call("tokens.create", { userId: "ann", scopes: ["read"] });
    await stopGateways();
    const [files, rows, names] = [filesIn(root), rowsIn(root), readdirSync(root)];
    expect(files.size).toBeGreaterThan(20);
    const there = await migrate(`files:${root}`, url);
    expect(there).toMatchObject({ exit: 0 });
    expect(there.err).toMatch(/Copying sessions: \d+ of \d+\n/);
    expect(there.out).toContain("Everything was copied and compared with the source.");
    expect(there.out).toContain(`skein start --store ${url}`);
    expect([filesIn(root), rowsIn(root), readdirSync(root)]).toEqual([files, rows, names]);
    expect(await migrated(url, `files:${back}`)).toMatchObject({
      sessions: rows.sessions?.length,
      blobs: 5,
      rows: { runs: 2, gateway_tokens: 2, outbox: 1 },
      resumed: false,
    });
    expect(filesIn(back)).toEqual(files);
    expect(rowsIn(back)).toEqual(rows);
    expect(rows.facts?.join()).toContain("channel.team.subscribed:slack:C1:1");
  });

  test("[MCH7] a gateway on the new store continues where the old one stopped", async () => {
    await fillFolder(root);
    const before = await startGateway("a");
    const asked = { sessionKey: "main", message: "Hello", idempotencyKey: "1" };
    const { runId } = await before.call("chat.send", asked);
    await before.call("agent.wait", { runId, timeoutMs: 60_000 });
    const { token } = await before.call("tokens.create", { userId: "ann", scopes: ["read", "write"] });
    const admin = before.token;
    const number = await eventNumberOf(before, "2");
    const seen = await readAll(before);
    await stopGateways();
    await migrated(`files:${root}`, url);
    const after = await startGateway("b", url);
    expect(await readAll(after)).toEqual(seen);
    expect(await after.call("chat.send", asked, admin)).toMatchObject({ runId });
    const { messages } = await after.call("chat.history", { sessionKey: "main" }, admin);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    const own = await after.call("sessions.list", {}, token);
    expect(own.sessions.length).toBeGreaterThan(2);
    const { hits } = await after.call("sessions.search", { query: "京都で三日間" }, token);
    expect(hits.length).toBeGreaterThan(0);
    const trip = { sessionKey: "agent:main:session:trip", message: "And Nara?", idempotencyKey: "3" };
    const next = await after.call("chat.send", trip, token);
    expect(await after.call("agent.wait", { runId: next.runId, timeoutMs: 60_000 }, token)).toMatchObject({
      state: "ok",
    });
    expect(await eventNumberOf(after, "4")).toBeGreaterThan(number);
  });

  test("[MCH7] both stores return the same lists, figures and contexts", async () => {
    await fillFolder(root);
    await migrated(`files:${root}`, url);
    const [files, backend] = [await createStore({ dir: root }), await openPostgres({ url })];
    const there = backend.openStore();
    for (const userId of users) {
      const scope = userId === null ? {} : { userId };
      for (const archived of [false, true]) {
        const query = { archived, limit: 100, sort: "created" } as const;
        const { sessions } = await listIndexed(files, scope, query);
        expect((await there.sessions.list(scope, query)).sessions).toEqual(sessions);
        for (const { sessionId } of sessions)
          expect(await there.sessions.context(scope, sessionId)).toEqual(
            await files.sessions.context(scope, sessionId),
          );
      }
      expect(await there.sessions.trashed(scope)).toEqual(await files.sessions.trashed(scope));
    }
    await backend.close();
    await files.close();
  });

  test("[MCH7] moves sessions that were created in PostgreSQL to a folder", async () => {
    const gateway = await startGateway("b", url);
    await gateway.ask("Hello 👋", "1");
    const key = "agent:main:main";
    await gateway.call("sessions.patch", { key, label: "trip", displayName: "旅行" });
    await gateway.call("sessions.patch", { key, displayName: null, verboseLevel: "on" });
    await gateway.call("sessions.reset", { key });
    await gateway.ask("Hello again", "2");
    await gateway.ask("half a character: \ud800", "\0");
    const task = {
      name: "sessions_spawn",
      arguments: { task: "half a character: \ud800", background: false },
    };
    await gateway.call("tools.invoke", { sessionKey: "main", ...task });
    const seen = await readAll(gateway);
    await stopGateways();
    // An earlier version stored such a key.
    await server.administer(database.name, "UPDATE skein.runs SET idem = U&'k\\E000d800' WHERE idem = '1'");
    await migrated(url, `files:${root}`);
    const after = await startGateway("a");
    expect(await readAll(after)).toEqual(seen);
    expect(await after.ask("And again", "3")).toMatchObject({ state: "ok" });
  });

  test("text that is redacted in the new store does not come back", async () => {
    const store = await createStore({ dir: root });
    const text = "The code of the safe is 4711";
    const init = { key: "agent:main:main", cwd: "/tmp", meta: { displayName: text } };
    const { sessionId } = await store.sessions.create({}, init);
    const draft = { type: "message", message: { role: "user", content: text } } as const;
    const { entries } = await store.sessions.append({}, sessionId, [{ draft }]);
    await store.close();
    await migrated(`files:${root}`, url);
    const backend = await openPostgres({ url });
    await backend.openStore().sessions.redact({}, sessionId, [entries[0]?.id ?? ""]);
    await backend.close();
    await migrated(url, `files:${back}`);
    const logs = [...filesIn(back).values()].map((bytes) => Buffer.from(bytes, "base64").toString());
    expect(logs.join("")).toContain(sessionId);
    expect(logs.join("")).not.toContain("4711");
  });

  test("an incomplete last line is refused, because the folder can still show its entry, and left out on request", async () => {
    await fillSparsely(root);
    await migrated(`files:${root}`, url);
    await migrated(url, `files:${back}`);
    await database.drop();
    database = await server.createDatabase();
    url = database.url(migrator);
    const shown = await lastMessage(back, "Later");
    const logs = [...filesIn(back).keys()].filter((path) => path.endsWith(".log.jsonl"));
    const log = join(back, logs[0] ?? "");
    truncateSync(log, statSync(log).size - 20);
    expect(await lastMessage(back)).toEqual(shown);
    expect(await refused(`files:${back}`, url)).toMatch(/line 3 is damaged.*--skip-damaged-lines/s);
    const { exit, out } = await migrate(`files:${back}`, url, "--skip-damaged-lines");
    expect({ exit, out }).toMatchObject({
      exit: 0,
      out: expect.stringContaining("1 damaged line of agent:"),
    });
  });

  test("lists sessions that refer to images whose files are missing", async () => {
    const store = await createStore({ dir: root });
    const { sessionId } = await store.sessions.create({}, { key: "agent:main:main", cwd: "/tmp" });
    const sha256 = await store.blobs.put({ agentId: "main" }, Buffer.from("an image"));
    const skein = { blob: { sha256, mimeType: "image/png", bytes: 8, was: "image" } };
    const content = [{ type: "text", text: "An image", skein } as never];
    await store.sessions.append({}, sessionId, [
      { draft: { type: "message", message: { role: "user", content } } },
    ]);
    await store.close();
    const blobs = [...filesIn(root).keys()].filter((path) => path.includes("/blobs/"));
    rmSync(join(root, blobs[0] ?? ""));
    const { exit, out } = await migrate(`files:${root}`, url);
    expect({ exit, out }).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/not there +1 image or large output of agent:main:main/),
    });
  });

  test("damaged lines are left out on request, and the entries after them stay on their branch", async () => {
    const store = await createStore({ dir: root });
    const { sessionId } = await store.sessions.create({}, { key: "agent:main:main", cwd: "/tmp" });
    for (const content of ["One", "Two", "Three", "Four"])
      await store.sessions.append({}, sessionId, [
        { draft: { type: "message", message: { role: "user", content } } },
      ]);
    await store.close();
    const log = join(root, [...filesIn(root).keys()][0] ?? "");
    writeFileSync(log, readFileSync(log, "utf8").replace(/^.*Two.*$/m, '{"type":"mess'));
    const { exit, out } = await migrate(`files:${root}`, url, "--skip-damaged-lines");
    expect({ exit, out }).toMatchObject({
      exit: 0,
      out: expect.stringContaining("1 damaged line of agent:main:main"),
    });
    const backend = await openPostgres({ url });
    const context = await backend.openStore().sessions.context({}, sessionId);
    await backend.close();
    expect(JSON.stringify(context?.messages)).toMatch(/One.*Three.*Four/);
  });

  test("[MCH7] continues after it was killed, in both directions, with the same result", async () => {
    await fillFolder(root, 30);
    const [files, rows] = [filesIn(root), rowsIn(root)];
    const points = [/Copying sessions: (?!1 )/, /Copying sessions: [34]/, /Copying blobs/, /Copying runs/];
    for (const point of points) await killedAt(point, `files:${root}`, url);
    await expect(openPostgres({ url })).rejects.toThrow(/migration to this store has not finished/);
    expect(await migrated(`files:${root}`, url)).toMatchObject({ resumed: true });
    for (const point of points) {
      await killedAt(point, url, `files:${back}`);
      expect(existsSync(back)).toBe(false);
      const unfinished = join(folder.path, ".back.migrating");
      await expect(createStore({ dir: unfinished })).rejects.toThrow(
        /migration to this store has not finished/,
      );
    }
    addChatState(join(folder.path, ".back.migrating"), "lock:released-since");
    expect(await migrated(url, `files:${back}`)).toMatchObject({ resumed: true });
    expect(filesIn(back)).toEqual(files);
    expect(rowsIn(back)).toEqual(rows);
    expect(readdirSync(folder.path)).not.toContain(".back.migrating");
  });

  test("[MCH7] copies again what has changed since it was killed", async () => {
    await fillFolder(root, 10);
    await killedAt(/Copying runs/, `files:${root}`, url);
    await server.administer(
      database.name,
      "UPDATE skein.entries SET line = replace(line, 'Message 5', 'Message 6')",
      "UPDATE skein.state_values SET version = version + 1",
      "DELETE FROM skein.entries WHERE line LIKE '%Message 7%'",
      "UPDATE skein.runs SET lost = 1",
      "INSERT INTO skein.facts VALUES ('channel.team.lock:released-since', '9999999999999 1')",
    );
    const store = await createStore({ dir: root });
    const [scope, id] = [{ userId: "ann" }, { label: "kyoto" }];
    const [trip] = (await store.sessions.list(scope, id)).sessions;
    const draft = { type: "message", message: { role: "user", content: "Later" } } as const;
    await store.sessions.append(scope, trip?.sessionId ?? "", [{ draft }]);
    const [gone] = (await store.sessions.list({}, { text: "more-3" })).sessions;
    await store.sessions.remove({}, gone?.sessionId ?? "");
    await store.sessions.purge({}, gone?.sessionId ?? "");
    await store.close();
    const [files, rows] = [filesIn(root), rowsIn(root)];
    expect(await migrated(`files:${root}`, url)).toMatchObject({ resumed: true });
    await migrated(url, `files:${back}`);
    expect(filesIn(back)).toEqual(files);
    expect(rowsIn(back)).toEqual(rows);
  });
});

/** Node options for a process in which nothing can be written while the file `full` exists. */
const fullDisk = ["--import", fileURLToPath(new URL("../support/full-disk.ts", import.meta.url))];

/** Sends a message and returns the number of the event that reports the end of its run. */
async function eventNumberOf(gateway: GatewayProcess, idempotencyKey: string): Promise<number> {
  const client = await connect(gateway.url, { token: gateway.token });
  const stream = client.events({});
  await stream.ready;
  await gateway.call("chat.send", { sessionKey: "main", message: "Hello", idempotencyKey });
  for await (const event of stream) {
    if (event.event !== "run.ended") continue;
    await client.close();
    return event.seq;
  }
  throw new Error("The stream ended");
}

/** Lists a user's sessions once all of them are in the index. */
async function listAll(
  gateway: GatewayProcess,
  params: Params<"sessions.list">,
): Promise<Result<"sessions.list">["sessions"]> {
  const { sessions, indexing } = await gateway.call("sessions.list", { ...params, limit: 100 });
  return indexing === undefined
    ? sessions.toSorted((a, b) => (a.key < b.key ? -1 : 1))
    : listAll(gateway, params);
}

async function listIndexed(store: Store, scope: Scope, query: SessionQuery): Promise<SessionPage> {
  const page = await store.sessions.list(scope, query);
  return page.behind === 0 ? page : listIndexed(store, scope, query);
}

/** Returns what a folder shows as the last message of its only session. Appends a message first, if there is one. */
async function lastMessage(dir: string, content?: string): Promise<unknown> {
  const store = await createStore({ dir });
  const [found] = await store.sessions.find({}, { by: "key", key: "agent:main:main" });
  const id = found?.sessionId ?? "";
  const draft = { type: "message", message: { role: "user", content: content ?? "" } } as const;
  if (content !== undefined) await store.sessions.append({}, id, [{ draft }]);
  const context = await store.sessions.context({}, id);
  await store.close();
  return context?.messages.at(-1);
}

/** Returns every session of every user, as its export. */
async function readAll(gateway: GatewayProcess): Promise<unknown[]> {
  const all: unknown[] = [];
  for (const userId of users) {
    const whose = userId === null ? {} : { userId };
    for (const archived of [false, true]) {
      for (const session of await listAll(gateway, { ...whose, archived })) {
        const { key, updatedAt, displayName, label } = session;
        const { entries } = await gateway.call("sessions.entries", { ...whose, key, limit: 100 });
        all.push({ userId, key, updatedAt, displayName, label, entries });
      }
    }
  }
  return all;
}

describe("skein store migrate refuses", () => {
  test("a source that is in use or has open runs", async () => {
    const gateway = await startGateway("a");
    expect(await refused(`files:${root}`, url)).toContain(`A gateway is running for ${root} (process `);
    const client = await connect(gateway.url, { token: gateway.token });
    const stream = client.events({});
    await stream.ready;
    const slow = { sessionKey: "main", message: "be slow for 60 seconds", idempotencyKey: "1" };
    await gateway.call("chat.send", slow);
    for await (const { event } of stream) if (event === "run.started") break;
    await gateway.call("chat.send", { ...slow, idempotencyKey: "2" });
    await gateway.stop("SIGKILL");
    gateways.pop();
    await client.close();
    const error = await refused(`files:${root}`, url);
    expect(error).toContain(`files:${root} has runs that have not ended: 1 queued, 1 running`);
    expect(error).toContain("skein runs abort");
    const tables = "SELECT FROM information_schema.schemata WHERE schema_name = 'skein'";
    expect((await server.administer(database.name, tables))[0]?.rowCount).toBe(0);
  });

  test("a database that gateways use, and one that contains anything else", async () => {
    await fillSparsely(root);
    const gateway = await startGateway("b", url);
    await gateway.ask("Hello", "1");
    expect(await refused(`files:${root}`, url)).toMatch(/postgres:\/\/127\S+ is in use by 1 process\./);
    expect(await refused(url, `files:${back}`)).toMatch(/postgres:\/\/127\S+ is in use by 1 process\./);
    await stopGateways();
    expect(await refused(`files:${root}`, url)).toContain("is not empty (sessions: 1, runs: 1,");
    expect(readdirSync(folder.path)).not.toContain("back");
  });

  test("a folder that is not empty, and addresses that it cannot connect", async () => {
    await fillSparsely(root);
    await migrated(`files:${root}`, url);
    expect(await refused(`files:${root}`, url)).toMatch(
      /migration from files:\S+ to postgres:\S+ has already finished/,
    );
    mkdirSync(back);
    writeFileSync(join(back, "notes.txt"), "mine");
    expect(await refused(url, `files:${back}`)).toContain(`The folder ${back} is not empty`);
    expect(await refused(`files:${back}`, url)).toContain("Sessions folder not found");
    expect(await refused(`files:${root}`, `files:${back}`)).toContain("One address must name a folder");
    const secret = "hunter2";
    const absent = `postgres://skein:${secret}@127.0.0.1:1/skein`;
    for (const error of [await refused(`files:${root}`, absent), await refused(absent, `files:${root}-2`)]) {
      expect(error).toContain("The database 127.0.0.1:1/skein cannot be used");
      expect(error).not.toContain(secret);
    }
    expect(await refused(`files:${root}`, `mysql://skein:${secret}@db/skein`)).not.toContain(secret);
  });

  test("a damaged log, whose session it names, and continues once it is repaired", async () => {
    await fillSparsely(root);
    const logs = [...filesIn(root).keys()].filter((path) => path.endsWith(".log.jsonl"));
    const log = join(root, logs[0] ?? "");
    const bytes = readFileSync(log);
    appendFileSync(log, '{"type":"mess\n{"type":"message"}\n');
    const error = await refused(`files:${root}`, url);
    expect(error).toContain(log);
    expect(error).toMatch(/line \d+ is damaged/);
    expect(error).toContain("skein doctor");
    rmSync(log);
    expect(await refused(`files:${root}`, url)).toContain("it is missing");
    writeFileSync(log, bytes);
    expect(await migrated(`files:${root}`, url)).toMatchObject({ sessions: 1, entries: 1, resumed: true });
  });

  test("a copy that differs, and names the row", async () => {
    await fillFolder(root);
    await (await openPostgres({ url })).close();
    await server.administer(
      database.name,
      "CREATE FUNCTION skein.damage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.lost := 1; RETURN NEW; END'",
      "CREATE TRIGGER damage BEFORE INSERT ON skein.runs FOR EACH ROW EXECUTE FUNCTION skein.damage()",
    );
    const error = await refused(`files:${root}`, url);
    expect(error).toContain("The copy of the row seq=1 of the table runs differs from the source.");
    expect(error).not.toContain("doctor");
  });

  test("a full disk, and continues once there is space", async () => {
    await fillFolder(root, 10);
    const [files, rows] = [filesIn(root), rowsIn(root)];
    await migrated(`files:${root}`, url);
    const fill = `process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(join(folder.path, "full"))}, "");`;
    for (const point of [/Copying sessions: [2-9] /, /Copying blobs/, /Copying runs/]) {
      const command = startUntil(point, fill, url, `files:${back}`, fullDisk);
      expect(await command.end()).toBe(1);
      expect(command.err).toMatch(/could not be written|is full/);
      rmSync(join(folder.path, "full"));
    }
    expect(await migrated(url, `files:${back}`)).toMatchObject({ resumed: true });
    expect([filesIn(back), rowsIn(back)]).toEqual([files, rows]);
  });

  test("a store that another migration is using", async () => {
    await fillFolder(root);
    const wait = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
    const first = startUntil(/Copying sessions/, wait, `files:${root}`, url);
    await first.until(/Copying sessions/);
    expect(await refused(`files:${root}`, url)).toContain("Another migration is using postgres://");
    expect(await refused(url, `files:${back}`)).toContain("Another migration is using postgres://");
    first.child.kill("SIGKILL");
    await first.end();
    expect(await refused(url, `files:${back}`)).toContain("has not finished");
  });

  test("a database of a newer version, and one that accepts only reads", async () => {
    await fillSparsely(root);
    await server.administer(
      "postgres",
      `ALTER DATABASE ${database.name} SET default_transaction_read_only = on`,
    );
    expect(await refused(`files:${root}`, url)).toContain("does not accept changes");
    await server.administer(
      "postgres",
      `ALTER DATABASE ${database.name} RESET default_transaction_read_only`,
    );
    await (await openPostgres({ url })).close();
    await server.administer(database.name, "INSERT INTO skein.migrations (number) VALUES (1000)");
    expect(await refused(`files:${root}`, url)).toContain(
      "are at version 1000, but this version of Skein supports only",
    );
    expect(await refused(url, `files:${back}`)).toContain(
      "are at version 1000, but this version of Skein supports only",
    );
  });
});

test("skein store migrate uses the role that owns the tables, if clients have another one", async () => {
  await fillSparsely(root);
  const env = {
    HOME: folder.path,
    SKEIN_POSTGRES__WORKER_URL: database.url(roles.worker),
    SKEIN_POSTGRES__MIGRATOR_URL: url,
  };
  const args = ["store", "migrate", "--from", `files:${root}`, "--to", database.url(roles.app), "--json"];
  const command = new Started([skeinProgram, ...args], env, { cwd: folder.path });
  expect([await command.end(), command.err]).toEqual([0, ""]);
  const backend = await openPostgres({ url: database.url(roles.app), workerUrl: database.url(roles.worker) });
  const store = backend.openStore();
  const { sessions } = await store.sessions.list({}, { limit: 100 });
  expect(sessions.map(({ key }) => key)).toEqual(["agent:main:main"]);
  await backend.close();
});
