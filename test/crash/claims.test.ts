import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createIdSource } from "../../src/core/ids.ts";
import { LedgerRuns } from "../../src/runs/ledger/ledger-runs.ts";
import { migrateRuns } from "../../src/runs/ledger/schema.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { supportProgram } from "../support/programs.ts";
import { create, ids } from "../support/store-calls.ts";

const child = supportProgram("claim-child");
const root = mkdtempSync(join(tmpdir(), "skein-claims-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const scope = { userId: "alice", agentId: "main" };

async function work(...args: string[]): Promise<string[]> {
  const running = spawn(process.execPath, [child, root, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  running.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await once(running, "close");
  return said.split("\n").filter((line) => line.startsWith("claimed "));
}

test("[KIL1] eight processes on one work.db: each input is claimed by one and written once, even if one was killed", async () => {
  const store = await openFilesStore({ root, index: "in place", durability: "os" });
  migrateRuns(store.work.ledger);
  const runs = new LedgerRuns({
    engine: store.work.engine,
    clock: systemClock,
    newId: createIdSource(),
    emit: () => undefined,
    isGone: () => false,
    underLock: async () => ({ leafId: null }),
  });
  const written = new Map<string, string[]>();
  for (const sessionId of ["a", "b", "c", "d", "e", "f"]) {
    const { uid, userId, agentId, key } = await create(store, scope, sessionId);
    const session = { uid, userId, agentId, key, sessionId };
    const expected: string[] = [];
    for (let at = 0; at < 5; at++) {
      const message = { role: "user" as const, content: `${sessionId} ${at}` };
      const { run } = await runs.accept({ session, kind: at % 2 === 0 ? "user" : "send", message });
      expected.push(run.entryId);
    }
    written.set(sessionId, expected);
  }
  expect(await runs.changedByOthers()).toBe(false);
  // The first process claims a run and is killed.
  const [taken] = await work("dead", "dies");
  expect(taken).toMatch(/ 1$/);
  expect(await runs.changedByOthers()).toBe(true);
  expect(await runs.changedByOthers()).toBe(false);
  const claims = (await Promise.all(Array.from({ length: 8 }, (_, at) => work(`owner-${at}`)))).flat();
  expect(new Set(claims).size).toBe(claims.length);
  const runIds = claims.map((line) => line.split(" ")[1]);
  expect(runIds.length).toBe(30);
  expect(new Set(runIds).size).toBe(30);
  expect(claims).toContain(taken?.replace(/ 1$/, " 3"));
  for (const [sessionId, expected] of written) expect(await ids(store, scope, sessionId)).toEqual(expected);
  expect((await runs.list({ states: ["ok"], limit: 1000 })).length).toBe(30);
  await store.close();
});
