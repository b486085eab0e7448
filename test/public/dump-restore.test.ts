import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { Machines } from "../support/machines.ts";
import type { DatabaseServer } from "../support/postgres-server.ts";
import { migrator, serverFor } from "../support/postgres-server.ts";

let machines: Machines;

beforeEach(async (context) => {
  machines = await Machines.open(context);
});

afterEach(() => machines?.close());

/** Skips the test if there is no pg_dump for the version of the server. */
async function requireDumpTools(context: TestContext, server: DatabaseServer): Promise<void> {
  const [shown] = await server.administer("postgres", "SHOW server_version_num");
  const serverMajor = Math.floor(Number(shown?.rows[0].server_version_num) / 10_000);
  const found = /\d+/.exec(spawnSync("pg_dump", ["--version"], { encoding: "utf8" }).stdout ?? "")?.[0];
  if (found === undefined || Number(found) < serverMajor)
    context.skip(`pg_dump ${serverMajor} is not installed`);
}

function runTool(name: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(name, args, { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
}

async function readHistory(gateway: GatewayProcess, token: string) {
  const { messages, leafId } = await gateway.call("chat.history", { sessionKey: "main" }, token);
  return { leafId, messages };
}

test("[DPL3] a database that pg_restore created from a dump has the sessions, idempotency keys and tokens", async (context) => {
  const server = await serverFor(context);
  await requireDumpTools(context, server);
  const before = await machines.start("before");
  await before.ask("Plan three days in Kyoto", "kyoto");
  const ann = await before.call("tokens.create", { userId: "ann", scopes: ["read", "write"] });
  const sent = { sessionKey: "main", message: "list the sessions", idempotencyKey: "ann-1" };
  const { runId } = await before.call("chat.send", sent, ann.token);
  await before.call("agent.wait", { runId, timeoutMs: 150_000 }, ann.token);
  const histories = [await readHistory(before, before.token), await readHistory(before, ann.token)];

  // As in docs/operations.md, with the gateway running.
  const dump = join(machines.folder.path, "skein.dump");
  const address = (database: string) => server.urlOf(database, "postgres");
  const { name } = machines.database;
  runTool(
    "pg_dump",
    "--dbname",
    address(name),
    "--format",
    "custom",
    "--no-unlogged-table-data",
    "--file",
    dump,
  );
  await machines.stop(before);
  const restored = `${name}_restored`;
  await server.administer("postgres", `CREATE DATABASE ${restored} OWNER ${migrator}`);
  try {
    runTool("pg_restore", "--dbname", address(restored), "--exit-on-error", "--single-transaction", dump);
    const store = `store: ${JSON.stringify(server.urlOf(restored, migrator))}\n`;
    const config = `defaults: { model: rehearsal/basic }\n${store}`;
    const after = await machines.start("after", {
      config,
      args: ["--store", server.urlOf(restored, migrator)],
    });
    expect([await readHistory(after, after.token), await readHistory(after, ann.token)]).toEqual(histories);
    expect(await after.call("chat.send", sent, ann.token)).toMatchObject({ runId });
    expect((await after.ask("And by train?", "train")).state).toBe("ok");
    await machines.stop(after);
  } finally {
    await server.administer("postgres", `DROP DATABASE ${restored} WITH (FORCE)`);
  }
});
