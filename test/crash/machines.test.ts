import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Balancer } from "../../scripts/balancer.ts";
import { connect } from "../../src/entry-client.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Talker } from "../support/gateway-clients.ts";
import type { Line } from "../support/gateway-clients-count.ts";
import { expectComplete } from "../support/gateway-clients-count.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { ServerKeeper } from "../support/postgres-broker.ts";
import type { TestDatabase } from "../support/postgres-server.ts";
import { DatabaseServer, findServer, migrator } from "../support/postgres-server.ts";
import { repetitions } from "../support/repetitions.ts";

const { machineRounds: rounds } = repetitions;
const clientCount = 20;
const sessionsPerClient = 10;
/** The number of messages that are accepted between two faults. */
const pace = 100;
const names = ["a", "b", "c"];
const basic = `agents: { main: {} }
defaults: { model: rehearsal/basic }
lanes: { main: 60 }
logging: { level: warn }
`;

const folder = temporaryFolder();
let keeper: ServerKeeper;
let balancer: Balancer;
let server: DatabaseServer;
let database: TestDatabase;
const machines = new Map<string, GatewayProcess>();

beforeAll(async () => {
  const found = await findServer();
  if (typeof found === "string") return;
  keeper = new ServerKeeper();
  const kept = await keeper.server;
  if ("missing" in kept) throw new Error(kept.missing);
  server = new DatabaseServer(kept.port);
  await server.createRoles();
  database = await server.createDatabase();
  balancer = await Balancer.start();
});

afterAll(async () => {
  await Promise.all([...machines.values()].map((each) => each.stop()));
  await balancer?.close();
  await keeper?.stop();
  folder.remove();
});

async function startMachine(name: string): Promise<void> {
  const home = join(folder.path, name);
  mkdirSync(home, { recursive: true });
  const port = machines.has(name) ? Number(new URL(String(machines.get(name)?.url)).port) : 0;
  const config = `${basic}store: ${JSON.stringify(database.url(migrator))}\n`;
  machines.set(name, await GatewayProcess.start(home, { config, port }));
  balancer.ports = [...machines.values()].map((each) => Number(new URL(each.url).port));
}

const machine = (name: string) => machines.get(name) as GatewayProcess;

async function queryNumber(text: string): Promise<number> {
  const [result] = await server.administer(database.name, text);
  return Number(result?.rows[0]?.value ?? 0);
}

const databaseTime = () => queryNumber("SELECT extract(epoch FROM clock_timestamp()) AS value");

const secondsSinceStart = () =>
  queryNumber("SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS value");

/** How often runs have lost their owners, in all. */
const countLosses = () => queryNumber("SELECT sum(lost) AS value FROM skein.runs");

const heldRuns = (pid: number | undefined) =>
  queryNumber(
    `SELECT count(*) AS value FROM skein.runs WHERE state = 'running' AND owner LIKE '%"pid":${pid},%'`,
  );

/** Sends a signal to a machine while it executes runs. */
async function signalMachine(name: string, signal: "SIGKILL" | "SIGSTOP"): Promise<void> {
  const { child } = machine(name).process;
  await expect.poll(() => heldRuns(child.pid), { timeout: 120_000, interval: 5 }).toBeGreaterThan(0);
  child.kill(signal);
}

/** Waits until other machines have taken over the runs of a process, and reports how long that took. */
async function untilTakenOver(pid: number | undefined, fault: string): Promise<void> {
  const [since, runs] = [await databaseTime(), await heldRuns(pid)];
  await expect.poll(() => heldRuns(pid), { timeout: 120_000, interval: 100 }).toBe(0);
  const seconds = (await databaseTime()) - since;
  process.stdout.write(`taken over ${seconds.toFixed(1)} s after a ${fault}: ${runs} runs\n`);
}

async function killMachine(name: string): Promise<void> {
  const { pid } = machine(name).process.child;
  await signalMachine(name, "SIGKILL");
  await machine(name).stop("SIGKILL");
  const restarted = startMachine(name);
  await untilTakenOver(pid, "kill");
  await restarted;
}

/** Stalls a machine for much longer than a lease. Its runs continue elsewhere before it is back. */
async function stallMachine(name: string): Promise<void> {
  const { child } = machine(name).process;
  await signalMachine(name, "SIGSTOP");
  await Promise.all([untilTakenOver(child.pid, "stall"), sleep(20_000)]).finally(() => child.kill("SIGCONT"));
}

/**
 * Crashes the database. Machines that soon renew their leases keep their runs. On a busy machine, the database might
 * need too long to start for that, so the number of runs that change their machine is only reported.
 */
async function restartDatabase(): Promise<void> {
  const before = await countLosses();
  const since = await databaseTime();
  await keeper.crash();
  await keeper.start();
  const outage = (await databaseTime()) - since;
  await expect.poll(secondsSinceStart, { timeout: 120_000, interval: 200 }).toBeGreaterThan(16);
  const lost = (await countLosses()) - before;
  process.stdout.write(`changed their machine after an outage of ${outage.toFixed(1)} s: ${lost} runs\n`);
}

/** Reads a session's entries in the order of the log. */
async function entriesOf({ key }: Talker): Promise<readonly Line[]> {
  const { entries } = await machine("b").call("sessions.entries", { key, along: "all", limit: 1000 });
  return entries as readonly Line[];
}

/** Connects a client with its own token, because a gateway limits the sockets of a token. */
async function connectClient(_: unknown, at: number): Promise<Talker[]> {
  const { token } = await machine("a").call("tokens.create", { scopes: ["read", "write"] });
  const options = { url: balancer.url, token, timeoutMs: 60_000 };
  const client = connect(options.url, options);
  return Promise.all(
    Array.from({ length: sessionsPerClient }, (_none, session) =>
      Talker.connect({ ...options, name: `t${at}-${session}`, open: () => client }),
    ),
  );
}

test("a machine keeps its runs for 15 seconds after a restart of the database, even if it is silent", async (context) => {
  const found = await findServer();
  if (typeof found === "string") return context.skip(found);
  await Promise.all(["a", "b"].map(startMachine));
  const asked = { sessionKey: "main", message: "be slow for 20 seconds", idempotencyKey: "1" };
  const { runId } = await machine("a").call("chat.send", asked);
  const owner = `SELECT owner::json ->> 'pid' AS value FROM skein.runs WHERE run_id = '${runId}'`;
  await expect.poll(() => queryNumber(owner)).toBeGreaterThan(0);
  const pid = await queryNumber(owner);
  const [silent, other] = machine("a").process.child.pid === pid ? ["a", "b"] : ["b", "a"];
  const { child } = machine(silent).process;
  // A claim is not synced, so without this the crash could undo it.
  await server.administer(database.name, "CHECKPOINT");
  child.kill("SIGSTOP");
  await keeper.crash();
  await keeper.start();
  await vi
    .waitUntil(
      async () => {
        const isTakenOver = (await countLosses()) > 0;
        // The time is read after the count, so the takeover was even earlier.
        if (isTakenOver) expect(await secondsSinceStart()).toBeGreaterThan(15);
        return isTakenOver;
      },
      { timeout: 120_000, interval: 100 },
    )
    .finally(() => child.kill("SIGCONT"));
  const waited = await machine(other).call("agent.wait", { runId, timeoutMs: 120_000 });
  expect(waited).toMatchObject({ state: "ok" });
  const { messages } = await machine(other).call("chat.history", { sessionKey: "main" });
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  await Promise.all(["a", "b"].map((name) => machine(name).stop()));
}, 300_000);

test("machines that are killed and stalled, and a database that crashes, lose and repeat nothing", async (context) => {
  const found = await findServer();
  if (typeof found === "string") return context.skip(found);
  await Promise.all(names.map(startMachine));
  const talkers = (await Promise.all(Array.from({ length: clientCount }, connectClient))).flat();
  let isEnough = false;
  const talking = Promise.all(talkers.map((talker) => talker.talk(() => isEnough, 300)));
  const count = () => talkers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  /** Waits until `more` further messages have been accepted. */
  const progress = async (more: number) => {
    const before = count();
    await vi.waitUntil(() => count() >= before + more, { timeout: 300_000, interval: 20 });
  };
  const faults = [
    () => killMachine("b"),
    restartDatabase,
    () => stallMachine("c"),
    () => killMachine("a"),
    restartDatabase,
  ];
  for (let round = 0; round < rounds; round++)
    for (const fault of faults) {
      await progress(pace);
      await fault();
    }
  await progress(pace);
  isEnough = true;
  await talking;
  const hasAll = async (talker: Talker) =>
    (await entriesOf(talker)).at(-1)?.id === talker.followed.at(-1)?.id;
  for (const talker of talkers) await expect.poll(() => hasAll(talker), { timeout: 120_000 }).toBe(true);
  for (const talker of talkers) {
    expect(talker.failures, talker.name).toEqual([]);
    expectComplete(await entriesOf(talker), talker);
  }
  await Promise.all(talkers.map((talker) => talker.close()));
}, 3_600_000);
