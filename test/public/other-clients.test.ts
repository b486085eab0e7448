import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
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

/** Returns the locks that the gateway's process holds on a file, as listed by the kernel. */
function locksOn(name: string): string[] {
  const { ino } = statSync(join(gateway.root, name));
  const lines = readFileSync("/proc/locks", "utf8").split("\n");
  return lines.filter((line) => line.includes(` ${gateway.process.child.pid} `) && line.includes(`:${ino} `));
}

// Without the gateway's lock, the next SQLite client that closes a database assumes that it is the last one and deletes
// the live log.
describe.skipIf(process.platform !== "linux")("the databases of a running gateway", () => {
  test("[GKL9] stay locked, so that no other program deletes accepted input", async () => {
    await gateway.ask("hello", "hello");
    await gateway.call("sessions.list", {});
    for (const name of ["work.db", "index.db"]) expect(locksOn(name), name).not.toEqual([]);
  });
});
