import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein } from "../../src/index.ts";
import { StartedInside } from "../support/cli-inside.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { configure, wholeGateway } from "../support/whole-gateway.ts";

let home: TemporaryFolder;
let gateway: WholeGateway | null = null;

beforeEach(() => {
  home = temporaryFolder("skein-schedules-");
});
afterEach(async () => {
  await gateway?.close();
  gateway = null;
  home.remove();
});

/** Due only on January 1, so that no schedule is due by itself during a test. */
const schedule = (more = "") => `{ cron: "0 0 1 1 *", message: status${more} }`;
const config = `agents: { main: {} }\nschedules:\n  hers: ${schedule(", user: ann")}\n  common: ${schedule()}\n`;

async function skein(...args: string[]) {
  const command = new StartedInside([...args, "--dir", join(home.path, "root")], home.path);
  const exit = await command.end();
  return { exit, out: command.out, err: command.err };
}

test("[SCH14] a token reaches only its user's schedules", async () => {
  gateway = await wholeGateway({ folder: home, config });
  const { token, rpc } = gateway;
  const scopes = ["read", "write"] as const;
  const [ann, bob] = await Promise.all(
    ["ann", "bob"].map((userId) => token({ scopes: [...scopes], userId })),
  );
  const names = async (by?: string, params = {}) => {
    const { body } = await rpc("schedules.list", params, by);
    return (body as Result<"schedules.list">).schedules.map(({ name }) => name);
  };
  expect(await names(ann)).toEqual(["hers"]);
  expect(await names(bob)).toEqual([]);
  expect(await names()).toEqual(["common"]);
  expect(await names(undefined, { allUsers: true })).toEqual(["hers", "common"]);
  for (const method of ["pause", "resume", "run"]) {
    const params = { name: "hers", ...(method === "run" ? { idempotencyKey: "k" } : {}) };
    expect(await rpc(`schedules.${method}`, params, bob)).toMatchObject({ status: 404 });
    expect(await rpc(`schedules.${method}`, params, ann)).toMatchObject({ status: 200 });
  }
  const reader = await token({ scopes: ["read"], userId: "ann" });
  expect(await rpc("schedules.pause", { name: "hers" }, reader)).toMatchObject({ status: 403 });
});

test("[SCH16] a reload adds, changes and removes schedules, and keeps those that are paused", async () => {
  gateway = await wholeGateway({ folder: home, config });
  const { rpc } = gateway;
  await rpc("schedules.pause", { name: "common" });
  configure(home.path, `${config.replace("  hers: ", "  other: ").replace("status }", "changed }")}`);
  const list = async () => {
    const { body } = await rpc("schedules.list", { allUsers: true });
    return (body as Result<"schedules.list">).schedules.map(({ name, message }) => `${name}: ${message}`);
  };
  await soon(list).toEqual(["other: status", "common: changed"]);
  const { body } = await rpc("schedules.list");
  expect(body).toMatchObject({ schedules: [{ name: "common", pausedAt: expect.any(Number) }] });
});

test("[SCH16] a reload with a mistake in a schedule keeps the previous schedules", async () => {
  gateway = await wholeGateway({ folder: home, config });
  configure(home.path, `${config}  broken: ${schedule(", agent: nobody")}\n`);
  expect((await gateway.rpc("config.reload")).status).toBe(503);
  expect(readFileSync(join(home.path, "log"), "utf8")).toContain("schedules.broken.agent");
  expect((await gateway.rpc("schedules.list", { allUsers: true })).body).toMatchObject({ count: 2 });
});

test("[SCH9] the command line runs, pauses and resumes schedules, with and without a gateway", async () => {
  configure(home.path, config);
  await createSkein({ dir: join(home.path, "root"), config: null, env: {}, quiet: true }).then((each) =>
    each.close(),
  );
  for (const hasGateway of [false, true]) {
    if (hasGateway) gateway = await wholeGateway({ folder: home, config });
    const listed = await skein("schedules", "ls", "--json");
    expect(JSON.parse(listed.out)).toMatchObject({
      count: 1,
      schedules: [{ name: "common", agentId: "main" }],
    });
    const run = await skein("schedules", "run", "common");
    expect({ ...run, out: run.out.length > 1 }).toEqual({ exit: 0, out: true, err: "" });
    const accepted = await skein("schedules", "run", "common", "--json");
    expect(JSON.parse(accepted.out)).toMatchObject({ status: "accepted" });
    const paused = await skein("schedules", "pause", "common", "--json");
    expect(JSON.parse(paused.out)).toMatchObject({ name: "common", pausedAt: expect.any(Number) });
    expect((await skein("schedules")).out).toContain("paused");
    expect((await skein("schedules", "resume", "common")).out).toMatch(
      /^the schedule common continues; next due: /,
    );
    expect((await skein("--user", "ann", "schedules")).out).toContain("hers");
    const unknown = await skein("schedules", "run", "weekly");
    expect(unknown.exit).toBe(1);
    expect(unknown.err).toContain('"weekly"');
  }
});

test("a folder from before schedules is updated", async () => {
  const dir = join(home.path, "root");
  const file = join(home.path, "skein.yaml");
  writeFileSync(file, `defaults: { model: rehearsal/basic }\n${config}`);
  const open = () => createSkein({ dir, config: file, env: {}, quiet: true });
  const before = await open();
  await before.session({ sessionId: "letters" }).send("Hello").result;
  await before.close();
  const db = new DatabaseSync(join(dir, "work.db"), { timeout: 30_000 });
  db.exec("DROP TABLE schedules; UPDATE facts SET value = '9' WHERE name = 'schema.runs'");
  db.close();
  const after = await open();
  expect(await after.schedules.pause("common")).toMatchObject({ pausedAt: expect.any(Number) });
  expect(await after.runs.list({})).toHaveLength(1);
  await after.close();
});
