import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { text as readText } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { runCommand } from "../support/gateway-process.ts";
import { HeldModel, LoopbackServer } from "../support/held-model.ts";
import { eventsUntil, Machines } from "../support/machines.ts";
import type { DatabaseServer } from "../support/postgres-server.ts";
import { serverFor } from "../support/postgres-server.ts";
import { soon } from "../support/soon.ts";
import { signatureOf } from "../support/webhook-signature.ts";

const key = "agent:main:session:trip";
const secret = "between-the-desk-and-us";

let machines: Machines;
let model: HeldModel;
let desk: LoopbackServer;
let delivered: string[];
/** The status with which the desk answers. `null` if it does not answer. */
let answer: number | null;
let server: DatabaseServer;

beforeEach(async (context) => {
  server = await serverFor(context);
  answer = 200;
  machines = await Machines.open(context);
  model = await HeldModel.start();
  delivered = [];
  desk = await LoopbackServer.listen((request, response) => {
    void readText(request).then((body) => {
      delivered.push((JSON.parse(body) as { text: string }).text);
      if (answer !== null) response.writeHead(answer).end();
    });
  });
});

afterEach(async () => {
  await machines?.close();
  model?.close();
  desk?.close();
});

/** Starts a gateway without workers, or a worker. Their model answers when the test allows it. */
function start(name: string, option: "--no-workers" | "--workers-only"): Promise<GatewayProcess> {
  const channel = `{ type: webhook, secret: "${secret}", url: "${desk.url}" }`;
  const config = `agents: { main: {} }\nlogging: { level: warn }\n${model.config}channels: { desk: ${channel} }\n`;
  return machines.start(name, { config, args: [option] });
}

const startBoth = () => Promise.all([start("gateway", "--no-workers"), start("worker", "--workers-only")]);

async function send(gateway: GatewayProcess, message: string, more: object = {}): Promise<string> {
  const asked = { sessionKey: key, message, idempotencyKey: randomUUID(), ...more };
  return (await gateway.call("chat.send", asked)).runId;
}

/** Delivers a message of a person at the desk to a gateway. */
async function receive(gateway: GatewayProcess, text: string, peer = "17"): Promise<void> {
  const body = JSON.stringify({ text, peer });
  const [timestamp, messageId] = [String(Math.floor(Date.now() / 1000)), randomUUID()];
  const headers = {
    "content-type": "application/json",
    "x-skein-timestamp": timestamp,
    "x-skein-message-id": messageId,
    "x-skein-signature": signatureOf(secret, { timestamp, messageId, body }),
  };
  const given = await fetch(`${gateway.url}/channels/desk/inbound`, { method: "POST", headers, body });
  expect(given.status).toBe(202);
}

/** Returns the values on the page `/metrics`, by name and labels. */
async function metricsOf({ url, token }: GatewayProcess): Promise<Record<string, number>> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const lines = (await answer.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

const ended = (gateway: GatewayProcess, runId: string) =>
  gateway.call("agent.wait", { runId, timeoutMs: 150_000 });

describe("a gateway without workers", () => {
  test("[MCH5] accepts input that a worker executes, and shows its answer while it is written", async () => {
    const gateway = await start("gateway", "--no-workers");
    expect(gateway.process.out).toMatch(/workers +none in this process/);
    const early = await send(gateway, "Before there is a worker");
    expect((await gateway.call("runs.get", { runId: early })).run).toMatchObject({
      state: "queued",
      why: { kind: "worker", text: "No worker is running. It will start as soon as one does." },
    });
    const list = gateway.cli("runs", "ls");
    expect(await list.end()).toBe(0);
    expect(list.out).toContain("for a worker; none is running");
    await start("worker", "--workers-only");
    (await model.request(0)).finish("Now there is one.");
    expect(await ended(gateway, early)).toMatchObject({ state: "ok", reply: "Now there is one." });
    const client = await machines.connect(gateway, gateway.token);
    const events = await eventsUntil(client, key, "run.delta", async () => {
      await send(gateway, "Plan three days");
      (await model.request(1)).stream("Kyoto, ");
    });
    expect(events.map(({ event }) => event)).toContain("run.started");
    (await model.request(1)).finish("Nara.");
  });

  test("shows admins which process executes a run", async () => {
    const gateway = await start("gateway", "--no-workers");
    const worker = await start("worker", "--workers-only");
    const runId = await send(gateway, "Who are you?");
    const asked = await model.request(0);
    const workerHere = { host: hostname(), pid: worker.process.child.pid };
    const runOf = async (token?: string) => (await gateway.call("runs.get", { runId }, token)).run;
    const listed = async () => (await gateway.call("lanes.list", {})).processes;
    await soon(async () => (await runOf()).worker).toEqual(workerHere);
    await soon(listed).toEqual([
      expect.objectContaining({ pid: gateway.process.child.pid, executesRuns: false, runs: 0 }),
      expect.objectContaining({ ...workerHere, executesRuns: true, runs: 1 }),
    ]);
    const shown = gateway.cli("runs", "show", runId);
    expect(await shown.end()).toBe(0);
    expect(shown.out).toMatch(new RegExp(`worker +${workerHere.host}, process ${workerHere.pid}\n`));
    const { token } = await gateway.call("tokens.create", { scopes: ["read"] });
    expect(await runOf(token)).toMatchObject({ state: "running" });
    expect(await runOf(token)).not.toHaveProperty("worker");
    expect(await gateway.call("lanes.list", {}, token)).not.toHaveProperty("processes");
    asked.finish("A worker.");
    await ended(gateway, runId);
    await machines.stop(worker);
    await soon(listed).toBeUndefined();
  });

  test("steers, aborts and waits for the runs of a worker", async () => {
    const [gateway] = await startBoth();
    const first = await send(gateway, "First");
    const asked = await model.request(0);
    const steering = await send(gateway, "And this", { queueMode: "steer" });
    asked.callTool("sessions_list", {});
    (await model.request(1)).finish("Both.");
    expect(await ended(gateway, first)).toMatchObject({ state: "ok", reply: "Both." });
    expect(await ended(gateway, steering)).toMatchObject({ reply: "Both." });
    const second = await send(gateway, "Second");
    (await model.request(2)).stream("This takes ");
    await gateway.call("runs.abort", { runId: second });
    expect(await ended(gateway, second)).toMatchObject({ state: "aborted" });
    const third = { key, message: "Third", timeoutMs: 150_000, idempotencyKey: "3" };
    const waiting = gateway.call("sessions.send", third);
    (await model.request(3)).finish("Three.");
    expect(await waiting).toMatchObject({ finished: true, state: "ok", reply: "Three." });
  });

  test("takes the answer to an approval that a worker's run waits for", async () => {
    const env = { SKEIN_DEFAULTS__TOOLS__ASK: "sessions_list" };
    const config = `agents: { main: {} }\nlogging: { level: warn }\n${model.config}`;
    const gateway = await machines.start("gateway", { config, env, args: ["--no-workers"] });
    await machines.start("worker", { config, env, args: ["--workers-only"] });
    const runId = await send(gateway, "List them");
    (await model.request(0)).callTool("sessions_list", {});
    await soon(async () => (await gateway.call("approvals.list", { runId })).count).toBe(1);
    const executed = async () => (await gateway.call("lanes.list", {})).processes?.map(({ runs }) => runs);
    await soon(executed).toEqual([0, 0]);
    const [approval] = (await gateway.call("approvals.list", { runId })).approvals;
    await gateway.call("approvals.resolve", {
      approvalId: approval?.approvalId ?? "",
      answer: "approved",
    });
    (await model.request(1)).finish("Listed.");
    expect(await ended(gateway, runId)).toMatchObject({ state: "ok", reply: "Listed." });
  });

  test("receives a channel's message, and a worker delivers the answer", async () => {
    const [gateway] = await startBoth();
    await receive(gateway, "Is the door open?");
    (await model.request(0)).finish("It is open.");
    await soon(() => delivered).toEqual(["It is open."]);
  });

  test("[MCH13] another worker delivers the message that a killed one was delivering", async () => {
    answer = null;
    const [gateway, worker] = await startBoth();
    await receive(gateway, "Is the door open?");
    (await model.request(0)).finish("It is open.");
    await soon(() => delivered).toEqual(["It is open."]);
    await machines.stop(worker, "SIGKILL");
    // Only the end of its process can make the message due again.
    const later = Date.now() + 24 * 3_600_000;
    await server.administer(machines.database.name, `UPDATE skein.outbox SET lease_until = ${later}`);
    answer = 200;
    await start("other", "--workers-only");
    await soon(() => delivered).toEqual(["It is open.", "It is open."]);
    const listDelivered = () => gateway.call("outbox.list", { states: ["delivered"], allUsers: true });
    await soon(async () => (await listDelivered()).count).toBe(1);
  });

  test("[MCH14] messages to a target wait while another process delivers to it, and keep their order", async () => {
    answer = 503;
    const [gateway] = await startBoth();
    const say = async (text: string, at: number, peer?: string) => {
      await receive(gateway, `Say ${text}`, peer);
      (await model.request(at)).finish(text);
    };
    await say("one", 0);
    await soon(() => delivered).toContain("one");
    // Stands for a process on another machine that takes the message for its next attempt.
    // Its row is due, so that the order does not depend on how long the retry would have waited.
    const lease = `UPDATE skein.outbox SET owner = 'other', lease_until = ${Date.now() + 24 * 3_600_000},
      next_at = created_at WHERE state = 'queued' AND owner IS NULL`;
    const change = async (sql: string) => (await server.administer(machines.database.name, sql))[0]?.rowCount;
    await soon(() => change(lease)).toBe(1);
    answer = 200;
    delivered.length = 0;
    await say("two", 1);
    await say("hello", 2, "18");
    await soon(() => delivered).toEqual(["hello"]);
    await change("UPDATE skein.outbox SET owner = NULL, lease_until = NULL WHERE owner = 'other'");
    await soon(() => delivered).toEqual(["hello", "one", "two"]);
  });

  test("shows the same unfinished runs in its metrics as the worker, which measures those it executes", async () => {
    const gateway = await start("gateway", "--no-workers");
    const first = await send(gateway, "First");
    await send(gateway, "Second");
    expect(await metricsOf(gateway)).toMatchObject({ 'skein_runs_open{state="queued"}': 2 });
    const worker = await start("worker", "--workers-only");
    const asked = await model.request(0);
    const open = { 'skein_runs_open{state="queued"}': 1, 'skein_runs_open{state="running"}': 1 };
    expect(await metricsOf(gateway)).toMatchObject(open);
    expect(await metricsOf(worker)).toMatchObject(open);
    asked.finish("One.");
    await ended(gateway, first);
    const second = await model.request(1);
    expect(await metricsOf(worker)).toMatchObject({
      'skein_runs_open{state="queued"}': 0,
      'skein_runs_open{state="running"}': 1,
      'skein_runs_total{state="ok",lane="main"}': 1,
      'skein_run_queue_seconds_count{lane="main"}': 2,
      'skein_run_duration_seconds_count{state="ok"}': 1,
    });
    const shown = Object.keys(await metricsOf(gateway)).filter((name) => name.startsWith("skein_run"));
    expect(shown.filter((name) => !name.startsWith("skein_runs_open"))).toEqual([]);
    second.finish("Two.");
  });

  test("is refused on a folder, because its runs would wait forever", async () => {
    using folder = temporaryFolder();
    for (const [option, other] of [
      ["--no-workers", "execute its runs"],
      ["--workers-only", "serve its clients"],
    ] as const) {
      const { exit, err } = await runCommand(folder.path, "start", "--port", "0", option);
      expect(exit).not.toBe(0);
      expect(err).toContain(`no other process would ${other}`);
      expect(err).toContain(option);
    }
  });
});

describe("a worker", () => {
  test("[MCH6] serves its health and metrics, but no clients", async () => {
    const worker = await start("worker", "--workers-only");
    expect(worker.process.out).toContain("The worker is running");
    expect(worker.process.out).not.toContain("#code=");
    const get = async (path: string, headers = {}) =>
      (await fetch(`${worker.url}${path}`, { headers })).status;
    expect([await get("/healthz"), await get("/readyz")]).toEqual([200, 200]);
    expect(await get("/metrics", { authorization: `Bearer ${worker.token}` })).toBe(200);
    expect([await get("/"), await get("/events"), await get("/openapi.json")]).toEqual([404, 404, 404]);
    expect(await worker.rpc("sessions.list")).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringContaining("serves no clients") } },
    });
    const socket = new WebSocket(`${worker.url.replace("http", "ws")}/ws`);
    const refused = await new Promise((resolve) => {
      socket.once("unexpected-response", (_, { statusCode }) => resolve(statusCode));
      socket.once("open", () => resolve("open"));
      socket.on("error", () => undefined);
    });
    expect(refused).toBe(404);
  });

  test("shares the folder of a gateway, which commands still find", async () => {
    const gateway = await start("machine", "--no-workers");
    const worker = await start("machine", "--workers-only");
    expect(worker.token).toBe(gateway.token);
    const list = gateway.cli("sessions", "ls", "--json");
    expect(await list.end()).toBe(0);
    await machines.stop(gateway);
    const alone = gateway.cli("sessions", "ls");
    expect(await alone.end()).not.toBe(0);
    expect(alone.err).toContain("no gateway is running");
  });
});
