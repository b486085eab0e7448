import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { attachIdleRuns } from "../../src/app/runs.ts";
import { sessionRefOf } from "../../src/core/session-ref.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import type { HeldRun } from "../../src/runs/contract.ts";
import type { WorkingStore } from "../../src/store/work.ts";
import { configFile } from "../support/family.ts";
import { borrowDatabase, migrator, openPostgresStore, postgresFor, roles } from "../support/postgres.ts";
import { brief, laterClock, messagesOf } from "../support/run-skein.ts";
import { create, refused, said } from "../support/store-calls.ts";

type Model = ReturnType<typeof scriptedModel>;

let url: (role?: string) => string;
let giveBack: () => Promise<void>;
const stores: WorkingStore[] = [];
const skeins: Skein[] = [];

beforeEach(async (context) => {
  await postgresFor(context);
  const borrowed = await borrowDatabase();
  url = borrowed.database.url;
  giveBack = borrowed.giveBack;
});

afterEach(async () => {
  await Promise.all(skeins.splice(0).map((skein) => skein.close({ graceMs: 0 })));
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await giveBack();
});

/** A Skein instance with connections of its own, as another machine would have. */
async function openMachine(model: Model, more: Partial<SkeinOptions> = {}, role = migrator): Promise<Skein> {
  const workerUrl = role === migrator ? {} : { workerUrl: url(roles.worker) };
  const store = await openPostgresStore({ url: url(role), ...workerUrl, maxConnections: 4, patienceMs: 0 });
  stores.push(store);
  const skein = await createSkein({
    store,
    config: null,
    env: {},
    quiet: true,
    models: { "rehearsal/script": model },
    agents: [defineAgent({ id: "main", model: "rehearsal/script" })],
    app: "machines",
    ...more,
  });
  skeins.push(skein);
  return skein;
}

describe("machines that share a PostgreSQL database", () => {
  test.each([migrator, roles.app])("one accepts a message, another answers it (as %s)", async (role) => {
    const [unused, used] = [scriptedModel([]), scriptedModel([{ text: "From afar." }])];
    const front = await openMachine(unused, { workers: false }, role);
    await openMachine(used, {}, role);
    const { reply } = await front.session({ sessionId: "s" }).send("Hello").result;
    expect(reply).toBe("From afar.");
    expect([unused.requests.length, used.requests.length]).toEqual([0, 1]);
    expect((await messagesOf(front, "s")).map(brief)).toEqual(["user: Hello", "assistant: From afar."]);
  });

  test("each message of many sessions is answered once, in order, whichever machine answers it", async () => {
    const answer = () => ({ text: "Yes." });
    const machines = [await openMachine(scriptedModel(answer)), await openMachine(scriptedModel(answer))];
    const ids = Array.from({ length: 6 }, (_, at) => `s${at}`);
    const texts = ["one", "two", "three"];
    for (const [round, text] of texts.entries()) {
      const sent = ids.map((sessionId, at) =>
        machines[(at + round) % 2]?.session({ sessionId }).send(text, { queueMode: "followup" }),
      );
      await Promise.all(sent.map((each) => each?.result));
    }
    for (const id of ids) {
      const said = (await messagesOf(machines[0] as Skein, id)).map(brief);
      expect(said).toEqual(texts.flatMap((text) => [`user: ${text}`, "assistant: Yes."]));
    }
  });

  test("prepared statements survive a migration by another process", async () => {
    const skein = await openMachine(scriptedModel(() => ({ text: "Yes." })));
    const ask = async () => (await skein.session({ sessionId: "s" }).send("Hello").result).reply;
    // Enough turns that every connection has prepared its statements.
    for (let turn = 0; turn < 4; turn++) await ask();
    const client = new pg.Client({ connectionString: url(migrator) });
    await client.connect();
    await client.query("ALTER TABLE skein.runs ADD COLUMN added_later text");
    await client.end();
    expect(await ask()).toBe("Yes.");
  });

  test("a process that cannot lock one user's runs claims another user's in the meantime", async () => {
    const front = await openMachine(scriptedModel([]), { workers: false });
    const send = (userId: string) => front.session({ userId, sessionId: "s" }).send("Hello");
    const ann = send("ann");
    const stateOfAnn = async () => (await front.runs.get(ann.runId, "ann"))?.state;
    await expect.poll(stateOfAnn).toBe("queued");
    const lock = new pg.Client({ connectionString: url(migrator) });
    await lock.connect();
    // The lock that every change to ann's runs takes.
    await lock.query("SELECT pg_advisory_lock(hashtextextended('skein runs uann', 0))");
    await openMachine(scriptedModel(() => ({ text: "Yes." })));
    expect((await send("bob").result).reply).toBe("Yes.");
    expect(await stateOfAnn()).toBe("queued");
    await lock.end();
    expect((await ann.result).reply).toBe("Yes.");
  });

  test.each([migrator, roles.app])(
    "an agent loop starts its turn for a user and answers in it (as %s)",
    async (role) => {
      const open = async () => {
        const skein = await openMachine(scriptedModel([]), { workers: false }, role);
        return skein.session({ userId: "ann", sessionId: "s" });
      };
      const [loop, late] = [await open(), await open()];
      expect(await loop.startTurn()).toBe(true);
      const question = { role: "user", content: "Hello" } as const;
      await expect(late.append([question])).rejects.toMatchObject({ code: "conflict" });
      const { entries } = await loop.append([question, { role: "assistant", content: "Hi." }]);
      expect(entries).toHaveLength(2);
      // The answer has ended the turn.
      expect(await late.startTurn()).toBe(true);
    },
  );

  test("only one of two agent loops that start a turn at the same time gets it", async () => {
    const machines = [1, 2].map(() => openMachine(scriptedModel([]), { workers: false }));
    const loops = (await Promise.all(machines)).map((skein) =>
      skein.session({ userId: "ann", sessionId: "s" }),
    );
    await loops[0]?.open();
    const lock = new pg.Client({ connectionString: url(migrator) });
    await lock.connect();
    // The lock that every change to ann's runs takes.
    await lock.query("SELECT pg_advisory_lock(hashtextextended('skein runs uann', 0))");
    let started = 0;
    const starting = loops.map((loop) => loop.startTurn().finally(() => started++));
    const outcomes = Promise.allSettled(starting);
    const waiting = async () => (await lock.query("SELECT FROM pg_locks WHERE NOT granted")).rowCount ?? 0;
    await expect.poll(async () => started + (await waiting())).toBe(2);
    expect(started).toBe(0);
    await lock.end();
    const [opened, rejected] = (await outcomes).toSorted((a, b) => a.status.localeCompare(b.status));
    expect(opened).toMatchObject({ status: "fulfilled", value: true });
    expect(rejected).toMatchObject({ status: "rejected", reason: { code: "conflict" } });
  });

  test("a process executes at most `lanes.perProcess` runs, and the next one takes the rest", async () => {
    const config = configFile({ lanes: { main: 3, perProcess: 2 } });
    const models = [1, 2].map(() => scriptedModel(() => ({ text: "Yes.", stall: true })));
    const front = await openMachine(scriptedModel([]), { workers: false });
    const runs = ["a", "b", "c", "d"].map((sessionId) => front.session({ sessionId }).send("Hello"));
    const asked = () => models.map(({ requests }) => requests.length);
    await openMachine(models[0] as Model, { config });
    await expect.poll(asked).toEqual([2, 0]);
    await openMachine(models[1] as Model, { config });
    await expect.poll(asked).toEqual([2, 1]);
    const states = await Promise.all(runs.map(async ({ runId }) => (await front.runs.get(runId))?.state));
    expect(states.toSorted()).toEqual(["queued", "running", "running", "running"]);
    for (const run of runs) await run.abort();
  });

  test("[MCH4] a machine that stalls past its lease loses its run to another, and writes nothing more", async () => {
    // The machine that was too late might be the first to claim the run again.
    const stalled = scriptedModel([{ text: "Too late.", stall: true }, { text: "In time." }]);
    const front = await openMachine(stalled);
    const { result } = front.session({ sessionId: "s" }).send("Hello");
    await expect.poll(() => stalled.requests.length).toBe(1);
    const other = await openMachine(scriptedModel([{ text: "In time." }]), { clock: laterClock });
    expect((await result).reply).toBe("In time.");
    await front.close();
    expect((await messagesOf(other, "s")).map(brief)).toEqual(["user: Hello", "assistant: In time."]);
  });
});

test("a claim that a standby lacks gets another fence after the failover", async (context) => {
  const server = await postgresFor(context);
  const open = async (address: string) => {
    const store = await openPostgresStore({ url: address });
    stores.push(store);
    return { store, runs: attachIdleRuns(store) };
  };
  const first = await open(url(migrator));
  const scope = { agentId: "main" };
  const session = sessionRefOf(await create(first.store, scope, "s"));
  await first.runs.accept({ session, kind: "user", message: { role: "user", content: "Hello" } });
  await Promise.all(stores.splice(0).map((store) => store.close()));
  const standby = await server.createDatabase(new URL(url()).pathname.slice(1));
  const claimed = await (await open(url(migrator))).runs.claim("former");
  const { store, runs } = await open(standby.url(migrator));
  const current = await runs.claim("current");
  const [former, held] = [claimed?.held, current?.held] as [HeldRun, HeldRun];
  expect(former.runId).toBe(held.runId);
  expect([await runs.isHeld(former), await runs.isHeld(held)]).toEqual([false, true]);
  const write = (by: HeldRun) => {
    const items = [{ draft: said("Hi"), id: `e${by.fence}` }];
    return store.sessions.append(scope, "s", items, { fence: runs.heldFence(by) });
  };
  await refused("fenced", () => write(former));
  await refused("fenced", () => runs.end(former, { state: "ok" }));
  await write(held);
  await runs.end(held, { state: "ok" });
  await Promise.all(stores.splice(0).map((each) => each.close()));
  await standby.drop();
});
