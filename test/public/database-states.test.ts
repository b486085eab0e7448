import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { runCommand } from "../support/gateway-process.ts";
import { Machines } from "../support/machines.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import type { DatabaseServer } from "../support/postgres-server.ts";
import { migrator, serverFor } from "../support/postgres-server.ts";

let server: DatabaseServer;
let machines: Machines;

beforeEach(async (context) => {
  server = await serverFor(context);
  machines = await Machines.open(context);
});

afterEach(() => machines?.close());

/** Changes a setting of the database, and ends all connections so that new ones use it. */
async function setDefault(setting: string, value: string): Promise<void> {
  const { name } = machines.database;
  await server.administer(
    "postgres",
    `ALTER DATABASE ${name} SET ${setting} = ${value}`,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
  );
}

const asked = { sessionKey: "main", idempotencyKey: "2" };
const statusOf = async (gateway: GatewayProcess) => (await gateway.ready()).status;

/** Starts a gateway that cannot start, and returns what it prints. */
async function refused(store: string): Promise<string> {
  const home = join(machines.folder.path, "refused");
  mkdirSync(home, { recursive: true });
  const { exit, out, err } = await runCommand(home, "start", "--port", "0", "--store", store);
  expect({ isRefused: exit > 0, out }).toEqual({ isRefused: true, out: "" });
  return err;
}

describe("a gateway whose PostgreSQL database cannot be used", () => {
  test("[MCH3] is not ready while it is read-only, still reads, and becomes ready by itself", async () => {
    const gateway = await machines.start("a");
    expect(await gateway.ask("Before", "1")).toMatchObject({ state: "ok" });
    await setDefault("default_transaction_read_only", "on");
    await expect.poll(() => statusOf(gateway)).toBe(503);
    const answer = await gateway.rpc("chat.send", { ...asked, message: "During" });
    expect(answer).toMatchObject({
      status: 503,
      body: { error: { details: { reason: "database_read_only" }, retryable: true } },
    });
    const rolesOf = async () =>
      (await gateway.call("chat.history", { sessionKey: "main" })).messages.map(({ role }) => role);
    expect(await rolesOf()).toEqual(["user", "assistant"]);
    await setDefault("default_transaction_read_only", "off");
    await expect.poll(() => statusOf(gateway)).toBe(200);
    expect(await gateway.ask("After", "3")).toMatchObject({ state: "ok" });
    expect(await rolesOf()).toEqual(["user", "assistant", "user", "assistant"]);
  });

  test("[MCH3] stores and acknowledges nothing while it is full, and continues by itself", async () => {
    const gateway = await machines.start("a");
    expect(await gateway.ask("Before", "1")).toMatchObject({ state: "ok" });
    await server.administer(
      machines.database.name,
      `CREATE FUNCTION public.fail_as_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
       END $$`,
      "CREATE TRIGGER full_disk BEFORE INSERT ON skein.runs EXECUTE FUNCTION public.fail_as_full()",
    );
    const answer = await gateway.rpc("chat.send", { ...asked, message: "During" });
    expect(answer).toMatchObject({
      status: 503,
      body: { error: { details: { reason: "database_full" }, retryable: true } },
    });
    await server.administer(machines.database.name, "DROP TRIGGER full_disk ON skein.runs");
    expect(await gateway.ask("After", "3")).toMatchObject({ state: "ok" });
    const { messages } = await gateway.call("chat.history", { sessionKey: "main" });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  });

  test("[MCH3] is not ready while it does not answer, and says so", async () => {
    const proxy = await startPostgresProxy(machines.database.url(migrator));
    const gateway = await machines.start("a", { env: { SKEIN_STORE: proxy.url } });
    proxy.pause();
    expect(await statusOf(gateway)).toBe(503);
    expect(await gateway.rpc("chat.send", { ...asked, message: "During" })).toMatchObject({
      status: 503,
      body: { error: { details: { reason: "database_unavailable" }, retryable: true } },
    });
    proxy.resume();
    await expect.poll(() => statusOf(gateway)).toBe(200);
    expect(await gateway.problems()).toEqual([]);
    expect(await gateway.ask("After", "3")).toMatchObject({ state: "ok" });
    await proxy.close();
  });

  test("does not start on tables of a newer version, and one that runs there is no longer ready", async () => {
    const gateway = await machines.start("a");
    const { name } = machines.database;
    await server.administer(name, "INSERT INTO skein.migrations (number) VALUES (9999)");
    await expect.poll(() => statusOf(gateway)).toBe(503);
    expect(await refused(machines.database.url(migrator))).toMatch(
      /are at version 9999, but this version of Skein supports only version \d+\. Nothing was changed\. Upgrade Skein/,
    );
    await server.administer(name, "DELETE FROM skein.migrations WHERE number = 9999");
    await expect.poll(() => statusOf(gateway)).toBe(200);
  });

  test("is not ready while its tables are those of an older version, and says so", async () => {
    const gateway = await machines.start("a");
    const { name } = machines.database;
    const newest = "SELECT max(number) FROM skein.migrations";
    await server.administer(name, `DELETE FROM skein.migrations WHERE number = (${newest})`);
    await expect.poll(() => statusOf(gateway)).toBe(503);
    expect((await gateway.problems()).join()).toMatch(
      /are at version \d+, but this version of Skein needs version \d+/,
    );
    await server.administer(name, `INSERT INTO skein.migrations (number) SELECT (${newest}) + 1`);
    await expect.poll(() => statusOf(gateway)).toBe(200);
    expect(await gateway.ask("After", "1")).toMatchObject({ state: "ok" });
  });

  test("does not start if the database, its tables or its server are missing, and hides the password", async () => {
    const empty = await server.createDatabase();
    const withPassword = (url: string) => url.replace("@", ":hunter2@");
    const printed = [
      await refused(withPassword(server.urlOf("absent", migrator))),
      await refused(withPassword(empty.url())),
      await refused("postgres://ann:hunter2@127.0.0.1:1/skein"),
    ];
    expect(printed[0]).toContain('database "absent" does not exist');
    expect(printed[1]).toMatch(
      /are at version 0, but this version of Skein needs version \d+\..* role that owns the tables/s,
    );
    expect(printed[2]).toContain("Check that the server is running and reachable");
    for (const text of printed) expect(text).not.toContain("hunter2");
    await empty.drop();
  });

  test("skein doctor says whether the database can be used, and shows no password", async () => {
    const url = machines.database.url(migrator);
    const home = join(machines.folder.path, "doctor");
    mkdirSync(home);
    const examine = async (store: string) => {
      writeFileSync(join(home, "skein.yaml"), `store: ${JSON.stringify(store)}\n`);
      return runCommand(home, "doctor");
    };
    expect((await examine(url)).out).toContain("are at version 0, but this version of Skein needs version");
    await machines.start("a");
    const good = await examine(`${url}?password=hun%2Fter2&application_name=x`);
    expect(good.exit).toBe(0);
    expect(good.out).toContain(`Database       ${new URL(url).host}/${machines.database.name}`);
    const bad = await examine(url.replace("@", ":hun@ter2@").replace(/:\d+\//, ":1/"));
    expect(bad.exit).not.toBe(0);
    expect(bad.out).toContain("Check that the server is running and reachable");
    for (const { out, err } of [good, bad]) expect(out + err).not.toMatch(/ter2/);
    const unreadable = await examine(url.replace("@", ":hun/ter2@"));
    expect(unreadable.out).toContain("percent-encoded");
    expect(unreadable.out + unreadable.err).not.toMatch(/ter2/);
  });

  test("commands and starts without the store's address do not create other sessions in its folder", async () => {
    await machines.stop(await machines.start("a"));
    const home = join(machines.folder.path, "a");
    writeFileSync(join(home, "skein.yaml"), "agents: { main: {} }\n");
    for (const command of [
      ["send", "main", "Hello"],
      ["sessions", "ls"],
      ["start", "--port", "0"],
    ]) {
      const { exit, err } = await runCommand(home, ...command);
      expect([exit > 0, err]).toEqual([true, expect.stringContaining("keeps its sessions in the database")]);
    }
    expect((await runCommand(home, "doctor")).out).toContain("keeps its sessions in the database");
    expect(existsSync(join(home, "root", "work.db"))).toBe(false);
  });
});
