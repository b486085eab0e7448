import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { valueScript } from "../../core/script.ts";
import type { TemporaryFolder } from "../../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import type { Recovery } from "./recover.ts";
import { openFilesStore } from "./store.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const rules = { schemas: [], settle: () => valueScript([]) };

async function open(options: { salvage?: typeof rules } = {}): Promise<Recovery[]> {
  const found: Recovery[] = [];
  const report = (each: Recovery) => void found.push(each);
  const store = await openFilesStore({ root: folder.path, index: "in place", report, ...options });
  await store.sessions.create({}, { key: "agent:main:main", cwd: "/" }).catch(() => undefined);
  await store.close();
  return found;
}

/** Makes `work.db` fail its integrity check, and removes the fact that marks it as used. */
function damageWork(): void {
  const db = new DatabaseSync(join(folder.path, "work.db"), { defensive: false });
  db.exec("DELETE FROM facts WHERE name = 'begun'; PRAGMA writable_schema = ON;");
  db.exec("DELETE FROM sqlite_schema WHERE name = 'sessions_state'");
  db.close();
}

test("[HLT3] a salvaged database is not reported as missing, although its facts are lost", async () => {
  await open();
  // The state in which a gateway leaves the folder.
  writeFileSync(
    join(folder.path, "work-counts.json"),
    JSON.stringify({ queuedInputs: 2, unfinishedRuns: 0, tokens: 3 }),
  );
  damageWork();
  const found = await open({ salvage: rules });
  expect(found.map(({ kind }) => kind)).toEqual(["salvaged"]);
  expect(await open({ salvage: rules })).toEqual([]);
});

test("[FS15] a salvaged database has mode 0600", async () => {
  await open();
  damageWork();
  await open({ salvage: rules });
  const files = readdirSync(folder.path).filter((name) => name.startsWith("work.db"));
  expect(files.some((name) => name.includes(".damaged-"))).toBe(true);
  for (const name of files)
    expect([name, statSync(join(folder.path, name)).mode & 0o777]).toEqual([name, 0o600]);
});

test("[HLT2] a refused salvage leaves no file behind", async () => {
  await open();
  damageWork();
  const other = new DatabaseSync(join(folder.path, "work.db"));
  other.prepare("SELECT count(*) FROM sessions").get();
  await expect(open({ salvage: rules })).rejects.toMatchObject({ code: "locked" });
  other.close();
  expect(readdirSync(folder.path).filter((name) => name.includes("salvaged"))).toEqual([]);
});
