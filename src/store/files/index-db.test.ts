import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Database, databaseEndings } from "./database.ts";
import { IndexDb, indexSteps } from "./index-db.ts";
import { listSessions } from "./index-lists.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-index-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("the index of an older Skein lists the same sessions, using the same indexes", () => {
  const path = join(folder, "index.db");
  const old = new Database(path, "", indexSteps.slice(0, 3));
  const insert = `INSERT INTO sessions (uid, user, agent, kind, archived, spawned_by, updated_at, names, home, record, log_bytes,
    log_identity, fold, key) VALUES (?, 'ann', 'main', 'other', 0, ?, ?, '', '', ?, 7, 'i', '{"states":1}', ?)`;
  for (const [uid, spawnedBy, at] of [
    ["a", null, 1],
    ["b", "key of a", 2],
  ] as const) {
    old.run(insert, uid, spawnedBy, at, JSON.stringify({ uid }), `key of ${uid}`);
  }
  const identity = old.sql("SELECT value FROM identity").get()?.value;
  const made = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name";
  const indexes = old.sql(made).all();
  old.close();

  const index = new IndexDb(path);
  const scope = { userId: "ann" };
  expect(listSessions(index, scope, {}, 9, null).map(({ uid }) => uid)).toEqual(["b", "a"]);
  expect(listSessions(index, scope, { spawnedBy: "key of a" }, 9, null)).toEqual([{ uid: "b" }]);
  // The words of an older Skein are of no use, so the session will be indexed from the start.
  expect(index.known("a")).toEqual({ logBytes: 7, identity: "", fold: { states: 1 } });
  const added = ["all", "forks", "channel", "created", "tokens", "cost", "name"].map((name) => ({
    name: `sessions_${name}`,
  }));
  expect(index.identity).not.toBe(identity);
  expect(index.db.sql(made).all()).toEqual(expect.arrayContaining([...indexes, ...added]));
  expect(index.db.sql(made).all()).toHaveLength(indexes.length + added.length);
  const isShort = "SELECT wr FROM pragma_table_list WHERE name = 'sessions'";
  expect(index.db.sql(isShort).get()?.wr).toBe(0);
  index.close();
});

test("an index is not left behind in a folder that took the place of its own", () => {
  const path = join(folder, "index.db");
  let isGone = false;
  const index = new IndexDb(path, () => {
    if (isGone) throw new Error("gone");
  });
  isGone = true;
  for (const ending of databaseEndings) rmSync(path + ending);
  expect(() => index.followName()).toThrow("gone");
  expect(readdirSync(folder)).toEqual([]);
  index.close();
});

test("the words of an older Skein are indexed again", () => {
  const path = join(folder, "index.db");
  const old = new Database(path, "", indexSteps.slice(0, -3), { functions: { channel_of: () => "unknown" } });
  const insert = `INSERT INTO sessions (uid, user, agent, kind, archived, updated_at, names, home, record, log_bytes,
    log_identity, fold, key) VALUES ('a', 'ann', 'main', 'other', 0, 1, '', '', '{}', 7, 'i', '{}', 'k')`;
  old.run(insert);
  const identity = old.sql("SELECT value FROM identity").get()?.value;
  old.close();
  const index = new IndexDb(path);
  expect(index.knownBytes("a")).toEqual({ logBytes: 7, identity: "" });
  expect(index.identity).not.toBe(identity);
  index.close();
});
