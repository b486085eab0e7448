import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Balancer } from "../../scripts/balancer.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Talker } from "../support/gateway-clients.ts";
import type { Line } from "../support/gateway-clients-count.ts";
import { expectComplete } from "../support/gateway-clients-count.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { ServerKeeper } from "../support/postgres-broker.ts";
import type { TestDatabase } from "../support/postgres-server.ts";
import { DatabaseServer, findServer, migrator } from "../support/postgres-server.ts";
import { repetitions } from "../support/repetitions.ts";

const { machineSessions: clients, machineRounds: rounds } = repetitions;
const names = ["a", "b", "c"];
const basic = "agents: { main: {} }\ndefaults: { model: rehearsal/basic }\nlogging: { level: warn }\n";

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

/** How often runs have lost their owners, in all. */
const countLosses = () => queryNumber("SELECT sum(lost) AS value FROM skein.runs");

/** Waits until other machines have taken over the runs of a process, and reports how long that took. */
async function untilTakenOver(pid: number | undefined, fault: string): Promise<void> {
  const held = `SELECT count(*) AS value FROM skein.runs WHERE state = 'running' AND owner LIKE '%"pid":${pid},%'`;
  const [since, runs] = [await databaseTime(), await queryNumber(held)];
  await expect.poll(() => queryNumber(held), { timeout: 120_000, interval: 100 }).toBe(0);
  const seconds = (await databaseTime()) - since;
  process.stdout.write(`taken over ${seconds.toFixed(1)} s after a ${fault}: ${runs} runs\n`);
}

async function killMachine(name: string): Promise<void> {
  const { pid } = machine(name).process.child;
  await machine(name).stop("SIGKILL");
  const restarted = startMachine(name);
  await untilTakenOver(pid, "kill");
  await restarted;
}

/** Stalls a machine for much longer than a lease. Its runs continue elsewhere before it is back. */
async function stallMachine(name: string): Promise<void> {
  const { child } = machine(name).process;
  child.kill("SIGSTOP");
  await Promise.all([untilTakenOver(child.pid, "stall"), sleep(20_000)]);
  child.kill("SIGCONT");
}

/** Reports how many runs changed their machine, which should be none or few on a machine that is not busy. */
async function restartDatabase(progress: () => Promise<void>): Promise<void> {
  const before = await countLosses();
  await keeper.crash();
  await keeper.start();
  await progress();
  const lost = (await countLosses()) - before;
  process.stdout.write(`changed their machine after a crash of the database: ${lost} runs\n`);
}

/** Reads a session's entries in the order of the log. */
async function entriesOf({ key }: Talker): Promise<readonly Line[]> {
  const { entries } = await machine("b").call("sessions.entries", { key, along: "all", limit: 1000 });
  return entries as readonly Line[];
}

test("machines that are killed and stalled, and a database that crashes, lose and repeat nothing", async (context) => {
  const found = await findServer();
  if (typeof found === "string") return context.skip(found);
  await Promise.all(names.map(startMachine));
  const { token } = machine("a");
  const talkers = await Promise.all(
    Array.from({ length: clients }, (_, at) => Talker.connect({ url: balancer.url, token, name: `t${at}` })),
  );
  let isEnough = false;
  const talking = Promise.all(talkers.map((talker) => talker.talk(() => isEnough, 300)));
  const count = () => talkers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  /** Waits until `more` further messages have been accepted. */
  const progress = async (more: number) => {
    const before = count();
    await vi.waitUntil(() => count() >= before + more, { timeout: 120_000, interval: 20 });
  };
  const faults = [
    () => killMachine("b"),
    () => restartDatabase(() => progress(2 * clients)),
    () => stallMachine("c"),
    () => killMachine("a"),
    () => restartDatabase(() => progress(2 * clients)),
  ];
  for (let round = 0; round < rounds; round++)
    for (const fault of faults) {
      await progress(clients);
      await fault();
    }
  await progress(2 * clients);
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
}, 600_000);
