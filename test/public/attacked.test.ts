import { closeSync, openSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { GatewayProcess, runCommand } from "../support/gateway-process.ts";

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
afterEach(() => {
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

/** Settings with a model that never answers. `asked` resolves when it was asked. */
async function silentModel(): Promise<{ config: string; asked: Promise<void> }> {
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const provider = `models: { providers: { local: { baseUrl: "http://127.0.0.1:${port}/v1" } } }`;
  const config = `defaults: { model: local/silent }\n${provider}\nqueue: { mode: followup }\n`;
  return { config, asked: asked.promise };
}

const send = (gateway: GatewayProcess, message: string) =>
  gateway.call("chat.send", { sessionKey: "main", message, idempotencyKey: message });

async function textsIn(gateway: GatewayProcess): Promise<string> {
  return JSON.stringify((await gateway.call("chat.history", { sessionKey: "main" })).messages);
}

describe("a full disk", () => {
  test("[ATF1] [ATF2] a run whose input cannot be written waits, and is answered when there is room", async () => {
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

  test("[ATF3] a gateway that was killed starts on it, reads answer, and queued input is answered later", async () => {
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

describe("a work.db that another process keeps locked", () => {
  test("[ATF4] [ATF5] calls that write are unavailable, /readyz answers 503, and reads answer", async () => {
    const gateway = await start();
    await gateway.ask("repeat hello", "one");
    const other = new DatabaseSync(join(gateway.root, "work.db"));
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
    expect(gateway.output).not.toContain("bug");
  });
});

describe("a request with very many properties", () => {
  test("[ATF6] it is refused with the first mistakes", async () => {
    const gateway = await start();
    const crowd = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, 0]));
    const listed = await gateway.rpc("sessions.list", crowd);
    expect([listed.status, listed.body.error.details.problems.length]).toEqual([400, 20]);
    expect(listed.body.error.details.problems[0]).toEqual({ path: "k0", problem: "is not known" });
    const invoked = await gateway.rpc("tools.invoke", { name: "sessions_list", arguments: crowd });
    const problem = "must not have more than 256 properties";
    expect([invoked.status, invoked.body.error.details.problems]).toEqual([
      400,
      [{ path: "arguments", problem }],
    ]);
  });
});

describe("doctor beside a running gateway", () => {
  test("[ATF9] [ATF10] --fix is refused, and a damaged work.db is never called a bug", async () => {
    const gateway = await start();
    await gateway.ask("repeat hello", "one");
    const refused = await runCommand(folder.path, "doctor", "--fix");
    expect(refused.exit).toBe(1);
    expect(refused.err).toContain(`The gateway at ${gateway.url}`);
    expect(refused.err).toContain("Stop it first");
    const path = join(gateway.root, "work.db");
    const other = new DatabaseSync(path);
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
  test("[ATF11] a request with another system prompt, queue mode, label or model, or for a note, is a conflict", async () => {
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
