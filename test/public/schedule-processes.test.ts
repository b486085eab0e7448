import { afterEach, beforeEach, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { HeldModel } from "../support/held-model.ts";
import { Machines } from "../support/machines.ts";
import type { DatabaseServer } from "../support/postgres-server.ts";
import { serverFor } from "../support/postgres-server.ts";
import { soon } from "../support/soon.ts";

const day = 86_400_000;
/** Far enough from the next due time that none passes by itself during a test. */
const start = Date.parse("2100-01-05T21:00:00Z");
const firstDue = Date.parse("2100-01-06T09:00:00Z");

let server: DatabaseServer;
let machines: Machines;

beforeEach(async (context) => {
  server = await serverFor(context);
  machines = await Machines.open(context);
  await administer(
    "CREATE SCHEMA test; GRANT USAGE ON SCHEMA test TO public",
    "CREATE TABLE test.clock (ahead interval); GRANT SELECT ON test.clock TO public",
    `CREATE FUNCTION test.clock_timestamp() RETURNS timestamptz LANGUAGE sql
      RETURN pg_catalog.clock_timestamp() + (SELECT ahead FROM test.clock)`,
    `ALTER DATABASE ${machines.database.name} SET search_path = test, pg_catalog`,
  );
  await setClock(start);
});

afterEach(() => machines?.close());

const administer = (...sql: readonly string[]) => server.administer(machines.database.name, ...sql);

/** Sets the clock of the database, which all processes follow. */
async function setClock(time: number): Promise<void> {
  await administer(
    `BEGIN; DELETE FROM test.clock;
      INSERT INTO test.clock SELECT to_timestamp(${time / 1000}) - pg_catalog.clock_timestamp(); COMMIT`,
  );
}

/**
 * Starts a gateway with the schedule `shared` and one of its own. Schedules are processed in order, so a run of its own
 * schedule shows that the process has handled `shared` before.
 */
function startMachine(
  name: string,
  model = "defaults: { model: rehearsal/basic }\n",
): Promise<GatewayProcess> {
  const schedule = (message: string) => `{ cron: "0 9 * * *", missed: once, message: ${message} }`;
  const schedules = `schedules:\n  shared: ${schedule("shared")}\n  own-${name}: ${schedule(`own-${name}`)}\n`;
  // Without a timeout, because a run might be in progress when the process learns that a day has passed.
  const agents = "agents: { main: { runTimeoutSeconds: 0 } }";
  const config = `${agents}\nlanes: { cron: 4 }\nlogging: { level: warn }\n${model}${schedules}`;
  return machines.start(name, { config });
}

/** The name of the schedule, and the due time, of every run. Both are sorted. */
async function listRuns(gateway: GatewayProcess, isEnded: (state: string) => boolean = () => true) {
  const { runs } = await gateway.call("runs.list", { limit: 500 });
  return runs
    .filter(({ state }) => isEnded(state))
    .map(({ preview, createdAt }) => `${preview} ${Math.floor((createdAt - firstDue) / day)}`)
    .toSorted();
}
const listEnded = (gateway: GatewayProcess) => listRuns(gateway, (state) => state === "ok");

test("[SCH1] each due time starts one run, although two gateways share a database", async () => {
  const gateways = await Promise.all([startMachine("a"), startMachine("b")]);
  const expected: string[] = [];
  for (const at of [0, 1, 2]) {
    await setClock(firstDue + at * day);
    expected.push(`own-a ${at}`, `own-b ${at}`, `shared ${at}`);
    for (const gateway of gateways) await soon(() => listEnded(gateway)).toEqual(expected.toSorted());
  }
  for (const { output } of gateways) expect(output).not.toMatch(/error/i);
});

test("[SCH1] the run of a process that was killed is continued by the other, and not started again", async () => {
  const model = await HeldModel.start();
  const gateways = await Promise.all(["a", "b"].map((name) => startMachine(name, model.config)));
  await setClock(firstDue);
  // One request for each of the three schedules.
  await model.request(2);
  const [any] = gateways as [GatewayProcess];
  const { runs } = await any.call("runs.list", {});
  const shared = runs.find(({ preview }) => preview === "shared");
  const owner = (await any.call("runs.get", { runId: shared?.runId ?? "" })).run.worker;
  const killed = gateways.find(({ process }) => process.child.pid === owner?.pid) as GatewayProcess;
  const survivor = gateways.find((gateway) => gateway !== killed) as GatewayProcess;
  await machines.stop(killed, "SIGKILL");
  let answered = 0;
  const answerAndList = async () => {
    while (answered < model.count) {
      const request = await model.request(answered++);
      if (!request.isAbandoned) request.finish("Done.");
    }
    return listEnded(survivor);
  };
  const expected = ["own-a 0", "own-b 0", "shared 0"];
  await soon(answerAndList).toEqual(expected);
  expect(await listRuns(survivor)).toEqual(expected);
  model.close();
});

test("[SCH1] a due time starts one run, although the process that started it was killed before it could note this", async () => {
  // The due time of `shared` cannot be noted as handled, in any process.
  await startMachine("setup").then((gateway) => machines.stop(gateway));
  await administer(
    `CREATE FUNCTION skein.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`,
    `CREATE TRIGGER fail BEFORE UPDATE ON skein.schedules FOR EACH ROW
      WHEN (new.name = 'shared' AND new.settled_until > old.settled_until) EXECUTE FUNCTION skein.fail()`,
  );
  const here = await startMachine("a");
  await setClock(firstDue);
  await soon(() => listEnded(here)).toEqual(["own-a 0", "shared 0"]);
  await machines.stop(here, "SIGKILL");
  await administer("DROP TRIGGER fail ON skein.schedules");
  const gateways = await Promise.all([startMachine("b"), startMachine("c")]);
  const settled = () =>
    server.administer(
      machines.database.name,
      "SELECT settled_until FROM skein.schedules WHERE name = 'shared'",
    );
  await soon(async () => Number((await settled())[0]?.rows[0].settled_until)).toBe(firstDue);
  await setClock(firstDue + day);
  const expected = ["own-a 0", "own-b 1", "own-c 1", "shared 0", "shared 1"];
  for (const gateway of gateways) await soon(() => listEnded(gateway)).toEqual(expected);
});
