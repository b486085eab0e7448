import { execFileSync } from "node:child_process";
import fs, {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import type { RequestListener } from "node:http";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { GatewayProcess, runCommand } from "../support/gateway-process.ts";
import { answering, closeAll, withScript } from "../support/skein.ts";

const preload = fileURLToPath(new URL("../support/full-disk.ts", import.meta.url));
const rehearsal = "defaults: { model: rehearsal/basic }\n";
const gateways: GatewayProcess[] = [];
const ends: (() => void)[] = [];
let folder: TemporaryFolder;
let flag: string;
beforeEach(() => {
  folder = temporaryFolder();
  flag = join(folder.path, "full");
});
afterEach(async () => {
  vi.useRealTimers();
  await closeAll();
  for (const { process } of gateways.splice(0)) process.child.kill("SIGKILL");
  for (const end of ends.splice(0)) end();
  folder.remove();
});

async function start(config = rehearsal): Promise<GatewayProcess> {
  const options = { config, node: ["--import", preload], env: { FULL_DISK_FLAG: flag } };
  const gateway = await GatewayProcess.start(folder.path, options);
  gateways.push(gateway);
  return gateway;
}

/** Makes every write to the file fail with EIO, as on a bad sector. Returns a function that undoes this. */
function breakFile(path: string): () => void {
  const { ino } = statSync(path);
  const { writeSync: real } = fs;
  fs.writeSync = ((fd: number, ...rest: [never]) => {
    if (fstatSync(fd).ino === ino) throw Object.assign(new Error("EIO: i/o error, write"), { code: "EIO" });
    return real(fd, ...rest);
  }) as typeof real;
  syncBuiltinESMExports();
  return () => {
    fs.writeSync = real;
    syncBuiltinESMExports();
  };
}

/** Settings with a model that never answers. `asked` resolves when the model receives a request. */
async function silentModel(): Promise<{ config: string; asked: Promise<void> }> {
  const asked = Promise.withResolvers<void>();
  return { config: await localModel(() => asked.resolve()), asked: asked.promise };
}

/** Settings with a model that runs in this process. */
async function localModel(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const provider = `models: { providers: { local: { baseUrl: "http://127.0.0.1:${port}/v1" } } }`;
  return `defaults: { model: local/any }\n${provider}\nqueue: { mode: followup }\n`;
}

const send = (gateway: GatewayProcess, message: string) =>
  gateway.call("chat.send", { sessionKey: "main", message, idempotencyKey: message });

async function textsIn(gateway: GatewayProcess): Promise<string> {
  return JSON.stringify((await gateway.call("chat.history", { sessionKey: "main" })).messages);
}

describe("a full disk", () => {
  test("[ATF1] a run whose input cannot be written waits, and is answered when there is room", async () => {
    const gateway = await start();
    await gateway.ask("repeat hello", "one");
    writeFileSync(flag, "files");
    const { runId } = await send(gateway, "repeat pear");
    await gateway.process.until(/could not be written/);
    const { run } = await gateway.call("runs.get", { runId });
    expect(["queued", "running"]).toContain(run.state);
    expect(await textsIn(gateway)).not.toContain("pear");
    expect((await send(gateway, "repeat pear")).runId).toBe(runId);

    const stopped = await send(gateway, "repeat plum");
    await gateway.call("chat.abort", { sessionKey: "main", runId: stopped.runId });
    const aborted = await gateway.call("agent.wait", { runId: stopped.runId, timeoutMs: 150_000 });
    expect(aborted).toMatchObject({ state: "aborted" });
    expect(aborted.reply).toBeUndefined();

    rmSync(flag);
    const outcome = await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "ok", reply: "pear" });
    expect((await textsIn(gateway)).match(/repeat pear/g)).toHaveLength(1);
  });

  test("[HLT6] a killed gateway starts on it, reads work, and queued input is answered later", async () => {
    const { config, asked } = await silentModel();
    const killed = await start(config);
    await send(killed, "repeat hello");
    await asked;
    const { runId } = await send(killed, "repeat pear");
    expect((await killed.call("sessions.list", {})).count).toBe(1);
    await killed.stop("SIGKILL");

    writeFileSync(flag, "");
    const gateway = await start();
    expect((await gateway.call("sessions.list", {})).count).toBe(1);
    expect(await textsIn(gateway)).toContain("repeat hello");
    expect((await gateway.ready()).status).toBe(503);
    expect((await gateway.call("runs.get", { runId })).run.state).toBe("queued");
    rmSync(flag);
    const outcome = await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "ok", reply: "pear" });
  });
});

describe("a start on a full disk after a clean stop", () => {
  beforeEach(async () => {
    const stopped = await start();
    await stopped.ask("repeat hello", "one");
    expect(await stopped.stop()).toBe(0);
    expect(fs.existsSync(join(stopped.root, "gateway.json"))).toBe(false);
  });

  test("without room for gateway.json it warns, answers reads, and writes the file when there is room", async () => {
    writeFileSync(flag, "files");
    const gateway = await start();
    const file = join(gateway.root, "gateway.json");
    expect(gateway.process.err).toContain(`${file} could not be written (ENOSPC`);
    expect(gateway.process.err).toContain("Free some disk space");
    expect(await textsIn(gateway)).toContain("repeat hello");
    expect(fs.existsSync(file)).toBe(false);
    rmSync(flag);
    await expect.poll(() => fs.existsSync(file)).toBe(true);
    expect(JSON.parse(fs.readFileSync(file, "utf8")).url).toBe(gateway.url);
    expect((await gateway.ask("repeat pear", "two")).reply).toBe("pear");
    expect(await gateway.stop()).toBe(0);
    expect(fs.existsSync(file)).toBe(false);
    expect(gateway.output).not.toContain("another gateway");
  });

  test("[ATF20] without room for the files of SQLite it reports what is full and what to do", async () => {
    writeFileSync(flag, "");
    const file = join(folder.path, "root", "work.db");
    const problem = `${file} could not be written: the disk is full. Free up space on this file's disk, then try again.`;
    await expect(start()).rejects.toThrow(problem);
    rmSync(flag);
    expect(await textsIn(await start())).toContain("repeat hello");
  });
});

describe("a stale work-counts.json", () => {
  const stale = '{"queuedInputs":7,"unfinishedRuns":5,"tokens":9}\n';
  const nothing = '{"queuedInputs":0,"unfinishedRuns":0,"tokens":0}\n';

  test.each([
    ["counts too many", stale],
    ["counts nothing", nothing],
    ["is cut off", stale.slice(0, 20)],
  ])("accepted input is answered despite one that %s", async (_, text) => {
    const dir = join(folder.path, "root");
    const accepting = await withScript(answering(), {}, { dir, workers: false });
    const { runId } = await accepting.skein.session({ sessionId: "trip" }).accept("Hello");
    await accepting.skein.close();
    writeFileSync(join(dir, "work-counts.json"), text);
    const { skein } = await withScript(answering(), {}, { dir });
    expect(await skein.ended(runId)).toMatchObject({ state: "ok", outcome: { reply: "Yes. 1" } });
  });

  test("a killed gateway loses nothing, and counts again", async () => {
    const { config, asked } = await silentModel();
    const killed = await start(config);
    await send(killed, "repeat hello");
    await asked;
    const { runId } = await send(killed, "repeat pear");
    const { token } = await killed.call("tokens.create", { scopes: ["read"], label: "a" });
    await killed.stop("SIGKILL");
    const file = join(killed.root, "work-counts.json");
    writeFileSync(file, nothing);
    const gateway = await start();
    const outcome = await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "ok", reply: "pear" });
    expect((await gateway.rpc("sessions.list", {}, token)).status).toBe(200);
    expect(gateway.process.err).not.toMatch(/lost:|rebuilt/);
    const counted = () => fs.readFileSync(file, "utf8");
    await expect.poll(counted).toBe('{"queuedInputs":0,"unfinishedRuns":0,"tokens":1}\n');
  });

  test("after work.db was lost, the message repeats its numbers, and new input is answered", async () => {
    const stopped = await start();
    await stopped.ask("repeat hello", "one");
    await stopped.stop();
    for (const name of fs.readdirSync(stopped.root).filter((each) => each.startsWith("work.db")))
      rmSync(join(stopped.root, name));
    writeFileSync(join(stopped.root, "work-counts.json"), stale);
    const gateway = await start();
    expect(gateway.process.err).toContain(
      "lost: 7 queued inputs, 5 unfinished runs and 9 tokens, as last counted at",
    );
    expect(await textsIn(gateway)).toContain("repeat hello");
    expect((await gateway.call("runs.list", {})).runs.filter(({ endedAt }) => endedAt === undefined)).toEqual(
      [],
    );
    expect((await gateway.ask("repeat pear", "two")).reply).toBe("pear");
  });
});

describe("a disk fault", () => {
  test("[ATF13] a run that it ends in the middle of a turn is continued by a retry", async () => {
    const fillDisk = [() => writeFileSync(flag, "files")];
    const config = await localModel((_, response) => {
      fillDisk.pop()?.();
      const choice = { index: 0, delta: { role: "assistant", content: "pear" }, finish_reason: "stop" };
      const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "any", choices: [choice] };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    });
    const gateway = await start(config);
    const { runId } = await send(gateway, "repeat pear");
    const failed = await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    expect(failed).toMatchObject({ state: "error", error: { code: "write_failed" } });
    expect(JSON.stringify(failed)).toContain(`skein runs retry ${runId}`);
    rmSync(flag);
    const retry = await gateway.call("runs.retry", { runId });
    const outcome = await gateway.call("agent.wait", { runId: retry.runId, timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "ok", reply: "pear" });
    expect((await textsIn(gateway)).match(/repeat pear/g)).toHaveLength(1);
  });
});

describe("a fault of one session's file", () => {
  test("[ATF14] it does not delay the runs of other sessions", async () => {
    const deferred = Promise.withResolvers<void>();
    const dir = join(folder.path, "root");
    const { skein } = await withScript(
      answering(),
      {},
      {
        dir,
        report: (error) => {
          // From now on, no pause ends.
          vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
          expect(error).toMatchObject({ code: "write_failed" });
          deferred.resolve();
        },
      },
    );
    const [trip, other] = [skein.session({ sessionId: "trip" }), skein.session({ sessionId: "other" })];
    await trip.send("Hello").result;
    await other.send("Hello").result;
    ends.push(breakFile(join(dir, "agents/main/sessions/trip.log.jsonl")));
    const { runId } = await trip.accept("Hello again");
    await deferred.promise;
    expect((await other.send("Hello again").result).reply).toBe("Yes. 3");
    expect((await skein.runs.get(runId))?.state).not.toBe("ok");
  });
});

describe("a work.db that another process keeps locked", () => {
  test("[ATF4] [HLT1] calls that write are unavailable, /readyz answers 503, and reads answer", async () => {
    const gateway = await start();
    await gateway.ask("repeat hello", "one");
    const other = new DatabaseSync(join(gateway.root, "work.db"), { timeout: 30_000 });
    ends.push(() => other.close());
    other.exec("BEGIN IMMEDIATE");
    const sent = () =>
      gateway.rpc("chat.send", { sessionKey: "main", message: "repeat pear", idempotencyKey: "two" });
    const [ready, first] = await Promise.all([gateway.ready(), sent()]);
    expect([ready.status, first.status, first.body.error.code]).toEqual([503, 503, "unavailable"]);
    expect(first.body.error.message).toContain("locked");
    expect((await gateway.problems()).join()).toContain("locked");
    expect((await sent()).status).toBe(503);
    expect(await textsIn(gateway)).toContain("repeat hello");
    other.exec("ROLLBACK");
    await expect.poll(async () => (await gateway.ready()).status).toBe(200);
    expect((await gateway.ask("repeat pear", "two")).reply).toBe("pear");
    expect(gateway.output).not.toContain("This is a bug");
  });
});

describe("damaged tokens in work.db", () => {
  /** Overwrites every page of the token table and makes the gateway read it again. */
  function damageTokens(root: string): void {
    const path = join(root, "work.db");
    const other = new DatabaseSync(path, { timeout: 30_000 });
    ends.push(() => other.close());
    other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const number = (sql: string, name: string) => Number(other.prepare(sql).get()?.[name]);
    const size = number("PRAGMA page_size", "page_size");
    const sql =
      "SELECT pageno FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'gateway_tokens')";
    const pages = other.prepare(sql).all();
    expect(pages.length).toBeGreaterThan(1);
    const file = openSync(path, "r+");
    for (const { pageno } of pages)
      writeSync(file, Buffer.alloc(size, 0xa5), 0, size, (Number(pageno) - 1) * size);
    closeSync(file);
    other.exec(`PRAGMA user_version = ${number("PRAGMA user_version", "user_version")}`);
  }

  test("/readyz still gives the reason to admins, and to no one else", async () => {
    const gateway = await start();
    const create = (scopes: ("admin" | "read")[]) => gateway.call("tokens.create", { scopes, label: "a" });
    const [revoked, reader] = [await create(["admin"]), await create(["read"])];
    for (const { token } of [revoked, reader]) await gateway.rpc("sessions.list", {}, token);
    await gateway.call("tokens.revoke", { tokenId: revoked.tokenId });
    damageTokens(gateway.root);
    expect((await gateway.rpc("tokens.list")).status).toBe(503);
    expect((await gateway.problems()).join()).toContain("skein doctor --fix");
    for (const token of [revoked.token, reader.token, `${gateway.token.slice(0, -1)}_`]) {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${gateway.url}/readyz`, { headers });
      expect([answer.status, await answer.json()]).toEqual([503, { status: "not_ready" }]);
    }
  });
});

describe("a request with very many properties", () => {
  test("is refused with the first mistakes", async () => {
    const gateway = await start();
    const crowd = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, 0]));
    const listed = await gateway.rpc("sessions.list", crowd);
    expect([listed.status, listed.body.error.details.problems.length]).toEqual([400, 20]);
    expect(listed.body.error.details.problems[0]).toEqual({ path: "k0", problem: "is not a known field" });
    const invoked = await gateway.rpc("tools.invoke", { name: "sessions_list", arguments: crowd });
    const problem = "must not have more than 256 properties";
    expect([invoked.status, invoked.body.error.details.problems]).toEqual([
      400,
      [{ path: "arguments", problem }],
    ]);
  });
});

describe("a process that was killed in the middle of a turn", () => {
  test("[ATF15] runs ls, runs show and doctor report that it is gone and what continues the run", async () => {
    const { config, asked } = await silentModel();
    const killed = await start(config);
    const { runId } = await send(killed, "repeat hello");
    await asked;
    const shown = async (...args: string[]) =>
      (await run([...args, "--dir", killed.root], { cwd: folder.path })).out;
    const isGone = async () => JSON.parse(await shown("runs", "show", runId, "--json")).run.ownerGone;
    expect(await isGone()).toBeUndefined();
    await killed.stop("SIGKILL");
    expect(await isGone()).toBe(true);
    const listed = JSON.parse(await shown("runs", "ls", "--json")).runs;
    expect(listed).toMatchObject([{ runId, state: "running", ownerGone: true }]);
    const text = "its process no longer exists; the next `skein start` will continue it";
    expect(await shown("runs", "ls")).toContain(text);
    expect(await shown("runs", "show", runId)).toContain(text);
    expect(await shown("doctor")).toContain(
      `Run ${runId} in agent:main:main is unfinished, but its process no longer exists`,
    );
  });
});

describe("the attachments of a spawn", () => {
  test.each(["the call in the parent", "the task in the child"])(
    "[ATF16] redacting %s removes them",
    async (what) => {
      const dir = join(folder.path, "root");
      const work = join(folder.path, "work");
      mkdirSync(work);
      const attachments = [{ name: "note.txt", content: "the secret of the family" }];
      const spawn = (more: object) => ({
        name: "sessions_spawn",
        arguments: { task: "Look", attachments, ...more },
      });
      const calls = [spawn({}), spawn({ attachAs: { mountPath: "in" } })];
      const script = (_: unknown, index: number) => (index === 0 ? { calls } : { text: "Done." });
      const { skein } = await withScript(script, { cwd: work }, { dir });
      await skein.session({ sessionId: "trip" }).send("Go").result;
      const left = () =>
        [dir, work].flatMap((each) =>
          fs
            .readdirSync(each, { recursive: true, encoding: "utf8" })
            .filter((name) => name.endsWith("note.txt")),
        );
      expect(left()).toHaveLength(2);
      const { store } = skein;
      const { sessions } = await skein.sessions.list({ limit: 10 });
      const redacted = sessions
        .map(({ sessionId }) => sessionId)
        .filter((sessionId) => (sessionId === "trip") === (what === "the call in the parent"));
      for (const sessionId of redacted) {
        const page = await store.sessions.page({}, sessionId, { along: "branch", limit: 100 });
        const role = sessionId === "trip" ? "assistant" : "user";
        const entry = page?.entries.find((each) => each.type === "message" && each.message.role === role);
        await store.sessions.redact({}, sessionId, [entry?.id ?? ""]);
      }
      expect(left()).toEqual([]);
      expect(fs.readdirSync(work)).toEqual([]);
    },
  );
});

describe("doctor next to a running gateway", () => {
  test("[ATF9] [HLT7] --fix is refused, and a damaged work.db is never called a bug", async () => {
    const gateway = await start();
    await gateway.ask("repeat hello", "one");
    const refused = await runCommand(folder.path, "doctor", "--fix");
    expect(refused.exit).toBe(1);
    expect(refused.err).toContain(`The gateway at ${gateway.url}`);
    expect(refused.err).toContain("Stop the gateway");
    const path = join(gateway.root, "work.db");
    const other = new DatabaseSync(path, { timeout: 30_000 });
    other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    other.close();
    const file = openSync(path, "r+");
    const size = statSync(path).size - 4096;
    writeSync(file, Buffer.alloc(size, 0xa5), 0, size, 4096);
    closeSync(file);
    for (const args of [["doctor"], ["doctor", "--fix"], ["sessions", "ls"]]) {
      const { exit, out, err } = await runCommand(folder.path, ...args);
      expect([args, exit, `${out}${err}`.includes("This is a bug")]).toEqual([args, 1, false]);
    }
  });
});

describe("a repeated idempotency key", () => {
  test("[LBR7] a request with another system prompt, queue mode, label or model, or for a note, is a conflict", async () => {
    const gateway = await start();
    const calls = {
      agent: { sessionKey: "main", message: "repeat a", idempotencyKey: "a", system: "Be brief." },
      "chat.send": { sessionKey: "main", message: "repeat b", idempotencyKey: "b", queueMode: "followup" },
      "chat.inject": { sessionKey: "main", message: "A note", idempotencyKey: "c" },
    };
    for (const [method, params] of Object.entries(calls)) {
      const { runId } = (await gateway.rpc(method, params)).body;
      expect((await gateway.rpc(method, params)).body.runId).toBe(runId);
    }
    const others: [string, object][] = [
      ["agent", { ...calls.agent, system: "Be long." }],
      ["chat.send", { ...calls["chat.send"], queueMode: "interrupt" }],
      ["chat.send", calls["chat.inject"]],
      ["chat.inject", { sessionKey: "main", message: "repeat b", idempotencyKey: "b" }],
    ];
    for (const [method, params] of others) {
      const { status, body } = await gateway.rpc(method, params);
      expect([method, status, body.error?.code]).toEqual([method, 409, "idempotency_conflict"]);
    }
    const spawn = async (more: object) => {
      const args = { task: "repeat one", label: "one", ...more };
      const params = { sessionKey: "main", name: "sessions_spawn", arguments: args, idempotencyKey: "d" };
      return JSON.stringify((await gateway.rpc("tools.invoke", params)).body);
    };
    const first = await spawn({});
    expect(first).toContain("runId");
    expect(await spawn({})).not.toContain("idempotency_conflict");
    expect(await spawn({ label: "two" })).toContain("idempotency_conflict");
    expect(await spawn({ model: "rehearsal/basic" })).toContain("idempotency_conflict");
  });
});

describe("a folder or a pipe in place of a session's file", () => {
  const makers = {
    folder: (path: string) => mkdirSync(path),
    pipe: (path: string) => void execFileSync("mkfifo", [path]),
  };
  const cases = (["folder", "pipe"] as const).flatMap((kind) =>
    (["trip.log.jsonl", "trip.jsonl"] as const).map((name) => ({ kind, name })),
  );

  test.each(cases)(
    "[ATF12] a $kind as $name is reported with a remedy, and other sessions work",
    async ({ kind, name }) => {
      const dir = join(folder.path, "root");
      const { skein } = await withScript(answering(), {}, { dir });
      const [trip, other] = [skein.session({ sessionId: "trip" }), skein.session({ sessionId: "other" })];
      await trip.send("Hello").result;
      await other.send("Hello").result;
      const file = join(dir, "agents/main/sessions", name);
      rmSync(file);
      makers[kind](file);

      writeFileSync(join(folder.path, "skein.yaml"), rehearsal);
      const cli = (...args: string[]) => run([...args, "--dir", dir], { cwd: folder.path });
      for (const args of [
        ["sessions", "show", "trip"],
        ["send", "trip", "repeat pear"],
      ]) {
        const { exit, err } = await cli(...args);
        expect([args, exit]).toEqual([args, 1]);
        expect(err).toContain(`${file} cannot be read: it is`);
        expect(err).toContain("Move it elsewhere");
      }
      const { err: listed } = await cli("sessions", "ls", "--json");
      expect(listed).not.toContain("This is a bug");
      expect((await cli("doctor")).out).toContain(`${file}: `);
      // The session is open here and encounters the file at its next read or write.
      const sent = trip.send("Hello again");
      await expect(sent.result).rejects.toMatchObject({ code: "unreadable_file" });
      expect((await other.send("Hello").result).reply).toBe("Yes. 3");
      rmSync(file, { recursive: true });
      expect((await cli("sessions", "show", "trip")).out).toContain("Yes. 1");
      // The message was accepted and can be retried now that the file has been removed.
      const { runId } = await skein.runs.retry(sent.runId);
      expect((await skein.ended(runId)).outcome?.reply).toBe("Yes. 4");
    },
  );
});
