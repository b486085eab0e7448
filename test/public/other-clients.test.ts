import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { GatewayProcess } from "../support/gateway-process.ts";

let home: TemporaryFolder;
let gateway: GatewayProcess;

beforeEach(async () => {
  home = temporaryFolder();
  gateway = await GatewayProcess.start(home.path, { config: "defaults: { model: rehearsal/basic }\n" });
});
afterEach(async () => {
  await gateway.stop("SIGKILL");
  home.remove();
});

describe("another SQLite client that opens and closes the databases of a running gateway", () => {
  test("[GKL9] loses nothing that the gateway accepts afterwards", async () => {
    await gateway.ask("before", "before");
    for (const name of ["work.db", "index.db"]) {
      // Like the last client to close a database, this deletes the log unless the gateway holds its lock.
      const client = new DatabaseSync(join(gateway.root, name), { timeout: 0 });
      expect(() => client.exec("PRAGMA journal_mode = DELETE")).toThrow("database is locked");
      client.close();
      expect(existsSync(join(gateway.root, `${name}-wal`)), name).toBe(true);
    }
    await gateway.ask("after", "after");
    await gateway.stop("SIGKILL");
    gateway = await GatewayProcess.start(home.path);
    const { runs } = await gateway.call("runs.list", {});
    expect(runs.map(({ state }) => state)).toEqual(["ok", "ok"]);
    expect(await gateway.cli("doctor").end()).toBe(0);
  });
});
