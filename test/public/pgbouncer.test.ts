import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCommand } from "../support/gateway-process.ts";
import { eventsUntil, Machines } from "../support/machines.ts";
import type { PgBouncer } from "../support/pgbouncer.ts";
import { startPgBouncer } from "../support/pgbouncer.ts";
import { migrator, roles } from "../support/postgres-server.ts";

let machines: Machines;
let bouncer: PgBouncer;

beforeEach(async (context) => {
  machines = await Machines.open(context);
  bouncer = await startPgBouncer(context, {
    target: machines.database.url(),
    folder: machines.folder.path,
    roles: [migrator, ...Object.values(roles)],
    poolSize: 3,
  });
});

afterEach(async () => {
  await machines?.close();
  await bouncer?.stop();
});

/** The addresses of all roles through PgBouncer. */
function pooledUrls(): NodeJS.ProcessEnv {
  return {
    SKEIN_STORE: bouncer.url(machines.database.url(roles.app)),
    SKEIN_POSTGRES__WORKER_URL: bouncer.url(machines.database.url(roles.worker)),
    SKEIN_POSTGRES__MIGRATOR_URL: bouncer.url(machines.database.url(migrator)),
  };
}

describe("gateways behind PgBouncer in transaction mode, with three connections to the server", () => {
  test("[MCH8] create the tables, answer at the same time, and share events and tokens", async () => {
    const env = { ...pooledUrls(), SKEIN_POSTGRES__DIRECT_URL: machines.database.url(roles.app) };
    const [here, there] = await Promise.all([machines.start("a", { env }), machines.start("b", { env })]);
    const send = (gateway: typeof here, index: number) =>
      gateway.call("chat.send", {
        sessionKey: `agent:main:session:s${index % 4}`,
        message: `Message ${index}`,
        idempotencyKey: String(index),
      });
    const numbers = Array.from({ length: 12 }, (_, index) => index);
    const runs = await Promise.all(numbers.map((index) => send(index % 2 === 0 ? here : there, index)));
    const ends = runs.map(({ runId }) => there.call("agent.wait", { runId, timeoutMs: 150_000 }));
    expect((await Promise.all(ends)).map(({ state }) => state)).toEqual(numbers.map(() => "ok"));

    const watching = await machines.connect(there, there.token);
    const key = "agent:main:session:trip";
    const asked = { sessionKey: key, message: "Plan three days in Kyoto", idempotencyKey: "trip" };
    const events = await eventsUntil(watching, key, "run.ended", () => here.call("chat.send", asked));
    const names = events.map(({ event }) => event);
    expect(names).toEqual(expect.arrayContaining(["run.started", "run.delta", "entry.appended"]));
    expect(names).not.toContain("gap");

    const created = await here.call("tokens.create", { userId: "ann", scopes: ["read", "write"] });
    const history = () => there.rpc("chat.history", { sessionKey: "main" }, created.token);
    expect((await history()).status).not.toBe(401);
    await here.call("tokens.revoke", { tokenId: created.tokenId });
    expect((await history()).status).toBe(401);
    for (const { output } of [here, there]) expect(output).not.toMatch(/pooler|error/i);
  });

  test("[MCH8] notice each other's changes without notifications, and report once that there are none", async () => {
    const unreachable = "postgres://nobody@127.0.0.1:1/none";
    const direct = { ...pooledUrls(), SKEIN_POSTGRES__DIRECT_URL: unreachable };
    const [here, there] = await Promise.all([
      machines.start("a", { env: pooledUrls() }),
      machines.start("b", { env: direct }),
    ]);
    const reports = (gateway: typeof here) =>
      gateway.output.split("\n").filter((line) => line.includes("The connection for notifications"));
    for (const gateway of [here, there]) await expect.poll(() => reports(gateway).length).toBe(1);
    const key = "agent:main:session:trip";
    for (const [sender, receiver] of [
      [here, there],
      [there, here],
    ] as const) {
      const watching = await machines.connect(receiver, receiver.token);
      const asked = { sessionKey: key, message: "Plan three days in Kyoto", idempotencyKey: sender.url };
      const events = await eventsUntil(watching, key, "run.ended", () => sender.call("chat.send", asked));
      expect(events.map(({ event }) => event)).not.toContain("gap");
    }
    expect(reports(here)).toEqual([expect.stringContaining("goes through a pooler")]);
    expect(reports(there)).toEqual([expect.stringContaining("ECONNREFUSED")]);
  });

  test("skein store migrate refuses an address that cannot keep its lock", async () => {
    const to = bouncer.url(machines.database.url(migrator));
    const gateway = await machines.start("a", { env: { SKEIN_STORE: to } });
    await machines.stop(gateway);
    const target = join(machines.folder.path, "copy");
    const refused = await runCommand(
      gateway.home,
      "store",
      "migrate",
      "--from",
      to,
      "--to",
      `files:${target}`,
    );
    expect(refused.exit).not.toBe(0);
    expect(refused.err).toContain("is a connection pooler");
    expect(refused.err).toContain("Use the address of the PostgreSQL server itself");
  });
});
