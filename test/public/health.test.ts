import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein } from "../../src/index.ts";
import { GatewayProcess, runCommand } from "../support/gateway-process.ts";

const preload = fileURLToPath(new URL("../support/full-disk.ts", import.meta.url));
const rehearsal = "defaults: { model: rehearsal/basic }\n";
const gateways: GatewayProcess[] = [];
const ends: (() => void)[] = [];
let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => {
  for (const { process } of gateways.splice(0)) process.child.kill("SIGKILL");
  for (const end of ends.splice(0)) end();
  folder.remove();
});

async function start(config = rehearsal, options: { node?: string[]; env?: NodeJS.ProcessEnv } = {}) {
  const gateway = await GatewayProcess.start(folder.path, { config, ...options });
  gateways.push(gateway);
  return gateway;
}

/** A model that never answers, so that input stays queued behind the run that called it. */
async function silentModel(): Promise<{ config: string; asked: Promise<void> }> {
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const config = [
    "defaults: { model: local/silent }",
    `models: { providers: { local: { baseUrl: "http://127.0.0.1:${port}/v1" } } }`,
    "queue: { mode: followup }\n",
  ].join("\n");
  return { config, asked: asked.promise };
}

async function say(gateway: GatewayProcess, key: string, message = key): Promise<string> {
  const params = { sessionKey: "main", message, idempotencyKey: key };
  return (await gateway.call("chat.send", params)).runId;
}

async function makeTokens(
  gateway: GatewayProcess,
  count: number,
): Promise<{ token: string; tokenId: string }[]> {
  const made = [];
  for (let at = 0; at < count; at++)
    made.push(await gateway.call("tokens.create", { scopes: ["read"], label: `${at} ${"x".repeat(80)}` }));
  return made;
}

/** Overwrites leaf pages in the middle of a table of `work.db`. Returns the number of rows in the table. */
function damage(root: string, table: string, pages = 1): number {
  const path = join(root, "work.db");
  const db = new DatabaseSync(path, { timeout: 30_000 });
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const size = Number(db.prepare("PRAGMA page_size").get()?.page_size);
  const sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path";
  const leaves = db
    .prepare(sql)
    .all(table)
    .map(({ pageno }) => Number(pageno));
  const rows = Number(db.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.count);
  expect(leaves.length).toBeGreaterThan(2 * pages + 1);
  const file = openSync(path, "r+");
  for (let at = 0; at < pages; at++) {
    const page = leaves[2 * at + 1] as number;
    writeSync(file, Buffer.alloc(size, 0xa5), 0, size, (page - 1) * size);
  }
  closeSync(file);
  // A gateway rereads pages that it has read since the checkpoint only after a change.
  db.exec(`PRAGMA user_version = ${Number(db.prepare("PRAGMA user_version").get()?.user_version)}`);
  db.close();
  return rows;
}

const shown = ({ out, err }: { out: string; err: string }) => `${out}\n${err}`;

describe("a damaged work.db", () => {
  test("[HLT1] [HLT7] damage found while running makes the gateway not ready, and its errors name the remedy", async () => {
    const gateway = await start();
    await makeTokens(gateway, 120);
    expect((await gateway.ready()).status).toBe(200);
    damage(gateway.root, "gateway_tokens");
    await expect.poll(async () => (await gateway.rpc("tokens.list")).status).toBe(503);
    const refused = await gateway.rpc("tokens.list");
    expect(refused.body.error).toMatchObject({ code: "unavailable", details: { reason: "store_damaged" } });
    expect(refused.body.error.message).toContain("skein doctor --fix");
    const { status, text } = await gateway.ready();
    expect([status, JSON.parse(text)]).toEqual([503, { status: "not_ready" }]);
    expect((await gateway.problems()).join()).toContain("skein doctor --fix");
    const sent = await gateway.rpc("chat.send", { sessionKey: "main", message: "x", idempotencyKey: "x" });
    expect([sent.status, sent.body.error.details.reason]).toEqual([503, "store_damaged"]);
    expect(await gateway.stop()).toBe(0);
    expect(shown(gateway.process)).not.toContain("This is a bug");
  });

  test("[HLT2] doctor --fix saves what is readable, keeps the damaged file and lists what is lost", async () => {
    const gateway = await start((await silentModel()).config);
    const tokens = await makeTokens(gateway, 120);
    const runs = [];
    for (let at = 0; at < 12; at++) runs.push(await say(gateway, `${at}`, "y".repeat(1500)));
    await gateway.stop("SIGKILL");
    damage(gateway.root, "gateway_tokens", 2);
    damage(gateway.root, "run_inputs");

    const before = await runCommand(folder.path, "doctor");
    expect(before.exit).toBe(1);
    expect(shown(before)).toContain("doctor --fix");
    const fixed = await runCommand(folder.path, "doctor", "--fix", "--json");
    expect(shown(fixed)).not.toContain("This is a bug");
    const report = JSON.parse(fixed.out);
    const found = report.findings.find(({ file }: { file: string }) => file.endsWith("work.db"));
    const lostTokens = Number(/(\d+) tokens?\b/.exec(found.what)?.[1]);
    const lostRuns = Number(/(\d+) runs?\b/.exec(found.what)?.[1]);
    expect(found).toMatchObject({ severity: "error", fixed: true });
    expect(readdirSync(gateway.root).filter((name) => /^work\.db\.damaged-\d+$/.test(name))).toHaveLength(1);

    const again = await start((await silentModel()).config);
    const alive = await Promise.all(tokens.map(({ token }) => again.rpc("sessions.list", {}, token)));
    const valid = alive.filter(({ status }) => status === 200).length;
    expect(lostTokens).toBeGreaterThan(0);
    expect(valid).toBe(tokens.length - lostTokens);
    const left = await Promise.all(runs.map((runId) => again.rpc("runs.get", { runId })));
    expect(lostRuns).toBeGreaterThan(0);
    expect(left.filter(({ status }) => status === 200)).toHaveLength(runs.length - lostRuns);
    expect((await again.ready()).status).toBe(200);
    expect(again.process.err).toContain(`${lostTokens} tokens`);
    const later = await runCommand(folder.path, "doctor");
    expect(shown(later)).toContain(`${lostTokens} tokens`);
  });

  test("[HLT2] doctor --fix saves what is left of a truncated work.db", async () => {
    const gateway = await start();
    const tokens = await makeTokens(gateway, 120);
    await gateway.stop();
    const path = join(gateway.root, "work.db");
    truncateSync(path, statSync(path).size - 4 * 4096);

    const fixed = await runCommand(folder.path, "doctor", "--fix");
    expect([fixed.exit, shown(fixed)]).toEqual([0, expect.stringMatching(/fixed .*work\.db/)]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const again = await start();
    const alive = await Promise.all(tokens.map(({ token }) => again.rpc("sessions.list", {}, token)));
    const lost = alive.filter(({ status }) => status !== 200).length;
    expect(lost).toBeGreaterThan(0);
    expect(lost).toBeLessThan(tokens.length);
    expect(again.process.err).toContain(`${lost} tokens`);
  });

  test("[HLT2] doctor --fix rebuilds an unreadable work.db from the session logs", async () => {
    const gateway = await start();
    await gateway.ask("repeat hello", "one");
    await makeTokens(gateway, 3);
    const counts = () => readFileSync(join(gateway.root, "work-counts.json"), "utf8");
    await expect.poll(counts).toContain('"tokens":3');
    await gateway.stop();
    const path = join(gateway.root, "work.db");
    truncateSync(path, 8192);

    const fixed = await runCommand(folder.path, "doctor", "--fix");
    expect([fixed.exit, shown(fixed)]).toEqual([0, expect.stringMatching(/lost: .* 3 tokens/)]);
    expect(readdirSync(gateway.root)).toContainEqual(expect.stringMatching(/^work\.db\.unreadable-\d+$/));
    expect(readdirSync(gateway.root)).not.toContainEqual(expect.stringContaining("salvaged"));
    const again = await start();
    expect((await again.ask("repeat again", "two")).reply).toBe("again");
    expect((await again.call("sessions.list", {})).count).toBe(1);
  });
});

test("[HLT14] a damaged index.db is rebuilt while the gateway runs", async () => {
  const gateway = await start();
  await gateway.call("agent.wait", { runId: await say(gateway, "a pear"), timeoutMs: 100_000 });
  const listed = async () => (await gateway.rpc("sessions.list")).body;
  expect((await listed()).count).toBe(1);
  const path = join(gateway.root, "index.db");
  const db = new DatabaseSync(path, { timeout: 30_000 });
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const size = Number(db.prepare("PRAGMA page_size").get()?.page_size);
  const pages = Number(db.prepare("PRAGMA page_count").get()?.page_count);
  const file = openSync(path, "r+");
  writeSync(file, Buffer.alloc(size * (pages - 1), 0xa5), 0, size * (pages - 1), size);
  closeSync(file);
  // The gateway rereads cached pages only after a change.
  db.exec(`PRAGMA user_version = ${Number(db.prepare("PRAGMA user_version").get()?.user_version)}`);
  db.close();
  await expect.poll(async () => (await gateway.rpc("sessions.search", { query: "pear" })).body.count).toBe(2);
  await expect.poll(async () => (await listed()).count).toBe(1);
  const aside = readdirSync(gateway.root).filter((name) => /^index\.db\.unreadable-\d+$/.test(name));
  expect(aside).not.toEqual([]);
  expect((await gateway.ready()).status).toBe(200);
});

describe("a lost database", () => {
  test("[HLT3] skein start and doctor report what a missing work.db contained, in numbers", async () => {
    const { config, asked } = await silentModel();
    const gateway = await start(config);
    await makeTokens(gateway, 3);
    await say(gateway, "a");
    await asked;
    for (const key of ["b", "c"]) await say(gateway, key);
    const counted = () => readFileSync(join(gateway.root, "work-counts.json"), "utf8");
    await expect.poll(counted).toBe('{"queuedInputs":2,"unfinishedRuns":1,"tokens":3}\n');
    await gateway.stop("SIGKILL");
    for (const name of readdirSync(gateway.root).filter((each) => each.startsWith("work.db")))
      rmSync(join(gateway.root, name));
    const again = await start();
    await again.process.until(/rebuilt/);
    expect(again.process.err).toMatch(/work\.db was missing and was rebuilt from 1 session log/);
    expect(again.process.err).toContain("2 queued inputs, 1 unfinished run");
    expect(again.process.err).toContain("3 tokens");
    const later = await runCommand(folder.path, "doctor");
    expect(later.out).toContain("2 queued inputs, 1 unfinished run");
    expect(later.out).toContain("3 tokens");
    await again.stop();
    const third = await start();
    expect(third.process.err).toBe("");
  });
});

describe("/readyz", () => {
  test.each(["moved", "deleted"])(
    "[HLT4] a root folder that was %s is never created again, and nothing is accepted",
    async (how) => {
      const gateway = await start();
      await say(gateway, "first");
      const token = (await makeTokens(gateway, 1))[0]?.token ?? "";
      const away = join(folder.path, "away");
      if (how === "moved") renameSync(gateway.root, away);
      else rmSync(gateway.root, { recursive: true });
      const sent = await gateway.rpc("chat.send", { sessionKey: "main", message: "x", idempotencyKey: "x" });
      expect([sent.status, sent.body.error.code]).toEqual([503, "unavailable"]);
      expect((await gateway.ready()).status).toBe(503);
      for (const method of ["sessions.create", "sessions.list", "tokens.create"])
        expect(
          (await gateway.rpc(method, method === "tokens.create" ? { scopes: ["read"] } : {}, token)).status,
        ).not.toBe(200);
      gateway.process.child.kill("SIGHUP"); // reloads
      expect((await gateway.ready()).status).toBe(503);
      expect(existsSync(gateway.root)).toBe(false);
      if (how === "moved") {
        renameSync(away, gateway.root);
        await expect.poll(async () => (await gateway.ready()).status).toBe(200);
        expect((await gateway.rpc("sessions.list")).status).toBe(200);
      } else {
        await gateway.stop();
        expect(existsSync(gateway.root)).toBe(false);
        expect(shown(gateway.process)).not.toContain("This is a bug");
      }
    },
  );

  test("[HLT4] an empty folder in place of the root folder stays empty", async () => {
    const gateway = await start();
    await gateway.ask("repeat hello", "one");
    rmSync(gateway.root, { recursive: true });
    mkdirSync(gateway.root);
    expect((await gateway.rpc("sessions.list")).status).toBe(503);
    await gateway.stop();
    expect(readdirSync(gateway.root)).toEqual([]);
    expect(shown(gateway.process)).not.toContain("This is a bug");
  });

  test.each(["moved", "deleted"])(
    "[HLT4] a search while the root folder is %s leaves nothing in a new one",
    async (how) => {
      const root = join(folder.path, "root");
      const skein = await createSkein({
        dir: root,
        config: { defaults: { model: "rehearsal/basic" } },
        quiet: true,
      });
      await skein.session({ sessionId: "one" }).send("repeat hello").result;
      // The first search starts a thread, which then finds another folder.
      process.once("worker", () => {
        if (how === "moved") renameSync(root, join(folder.path, "away"));
        else rmSync(root, { recursive: true });
        mkdirSync(root);
      });
      await expect(skein.sessions.search({ query: "hello" })).rejects.toMatchObject({ code: "unavailable" });
      await skein.close().catch((error) => expect(error).toMatchObject({ code: "unavailable" }));
      expect(readdirSync(root)).toEqual([]);
    },
  );

  test("[HLT1] an index that is far behind makes it not ready, until it has caught up", async () => {
    const gateway = await start();
    await gateway.call("sessions.search", { query: "x" }); // from now on, the index runs in its own thread
    const index = new DatabaseSync(join(gateway.root, "index.db"), { timeout: 30_000 });
    index.exec("BEGIN IMMEDIATE");
    const numbers = Array.from({ length: 520 }, (_, at) => at);
    const make = async () => {
      for (let at = numbers.pop(); at !== undefined; at = numbers.pop())
        await gateway.call("sessions.create", { key: `agent:main:session:s${at}` });
    };
    await Promise.all(Array.from({ length: 20 }, make));
    await expect.poll(async () => (await gateway.ready()).status).toBe(503);
    expect((await gateway.problems()).join()).toContain("index");
    index.exec("ROLLBACK");
    index.close();
    await expect.poll(async () => (await gateway.ready()).status).toBe(200);
  });
});

describe("a full disk", () => {
  test("[HLT6] [HLT1] [HLT12] it is not ready, reads work, and a token is revoked at once and permanently", async () => {
    const flag = join(folder.path, "full");
    const gateway = await start(rehearsal, { node: ["--import", preload], env: { FULL_DISK_FLAG: flag } });
    const runId = await say(gateway, "a pear");
    await gateway.call("agent.wait", { runId, timeoutMs: 100_000 });
    const [token] = await makeTokens(gateway, 1);
    if (token === undefined) throw new Error("no token");
    expect((await gateway.ready()).status).toBe(200);
    await gateway.call("sessions.rename", { key: "main", name: "Fruit" });

    writeFileSync(flag, "");
    await expect.poll(async () => (await gateway.ready()).status).toBe(503);
    expect((await gateway.problems()).join()).toContain("full");
    expect((await gateway.call("sessions.list", {})).count).toBe(1);
    expect((await gateway.call("chat.history", { sessionKey: "main" })).messages.length).toBeGreaterThan(1);
    expect((await gateway.call("sessions.search", { query: "pear" })).hits.length).toBeGreaterThan(0);
    expect(JSON.stringify(await gateway.call("sessions.export", { key: "main", format: "md" }))).toContain(
      "pear",
    );
    const sent = await gateway.rpc("chat.send", { sessionKey: "main", message: "x", idempotencyKey: "x" });
    expect([sent.status, sent.body.error.details.reason]).toEqual([503, "write_failed"]);

    expect((await gateway.rpc("sessions.list", {}, token.token)).status).toBe(200);
    expect(await gateway.call("tokens.revoke", { tokenId: token.tokenId })).toMatchObject({
      isUnsaved: true,
    });
    expect((await gateway.rpc("sessions.list", {}, token.token)).status).toBe(401);
    rmSync(flag);
    await expect.poll(async () => (await gateway.ready()).status).toBe(200);
    const isUnsaved = async () =>
      (await gateway.call("tokens.list", {})).tokens.find(
        (row: { tokenId: string }) => row.tokenId === token.tokenId,
      )?.isUnsaved;
    await expect.poll(isUnsaved).toBe(undefined);
    await gateway.stop("SIGKILL");
    const again = await start();
    expect((await again.rpc("sessions.list", {}, token.token)).status).toBe(401);
  });
});
