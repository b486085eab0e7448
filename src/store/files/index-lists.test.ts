import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ListedSession, SessionReach } from "../contract.ts";
import { emptyDigest } from "../digest.ts";
import { termsOf } from "../search-text.ts";
import { IndexDb } from "./index-db.ts";
import { emptyIndexState } from "./index-lines.ts";
import { countSessions, listSessions, reachCondition } from "./index-lists.ts";
import { searchWords, wordSearch } from "./index-search.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-reach-"));
  path = join(folder, "index.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(index: IndexDb, name: string, spawnedBy?: string): void {
  const record: ListedSession = {
    uid: name,
    userId: "ann",
    agentId: "main",
    key: `agent:main:session:${name}`,
    kind: "other",
    sessionId: name,
    cwd: "/w",
    version: 1,
    meta: spawnedBy === undefined ? {} : { spawnedBy: `agent:main:session:${spawnedBy}` },
    name: null,
    createdAt: 1,
    updatedAt: 1,
    leafId: null,
    digest: emptyDigest,
  };
  index.putSession(record, "", { logBytes: 0, identity: "", fold: emptyIndexState });
}

function say(index: IndexDb, uid: string, position: number, words: readonly string[] = ["kyoto"]): void {
  const place = { position, offset: 0, length: 0, parent: null, leaf: null, state: 0 };
  const entry = { ...place, id: `${uid}-${position}`, role: "user", time: 1, words, blobs: [] };
  index.putWords({ uid, userId: "ann", agentId: "main" }, entry);
}

const treeOfRoot: SessionReach = { treeOf: "agent:main:session:root", agentIds: [] };
const keysOf = (index: IndexDb) =>
  listSessions(index, { userId: "ann" }, { reach: treeOfRoot }, 10, null).map(({ uid }) => uid);

test("an index of the previous version is migrated with the keys of all its sessions", () => {
  const index = new IndexDb(path);
  put(index, "root");
  put(index, "child", "root");
  put(index, "aside");
  index.close();
  const before = new DatabaseSync(path);
  for (const name of ["forks", "channel", "created", "tokens", "cost", "name"])
    before.exec(`DROP INDEX sessions_${name}`);
  for (const name of ["forked_from", "channel", "created_at", "tokens", "cost", "sort_name"])
    before.exec(`ALTER TABLE sessions DROP COLUMN ${name}`);
  before.exec("DROP INDEX sessions_key; DROP INDEX sessions_lineage; ALTER TABLE sessions DROP COLUMN key;");
  before.exec("PRAGMA user_version = 2");
  before.close();
  const after = new IndexDb(path);
  expect(keysOf(after)).toEqual(["root", "child"]);
  put(after, "grandchild", "child");
  expect(keysOf(after)).toEqual(["root", "grandchild", "child"]);
  expect(countSessions(after, { userId: "ann" }, { reach: treeOfRoot })).toBe(3);
  after.close();
});

test("[RCH4] more hits out of reach than are ever ranked do not hide one within reach", () => {
  const index = new IndexDb(path);
  put(index, "root");
  put(index, "aside");
  index.exclusively(() => {
    say(index, "root", 0);
    for (let position = 0; position < 20_001; position++) say(index, "aside", position);
  });
  const found = (reach?: SessionReach) => {
    const query = { text: "kyoto", ...(reach === undefined ? {} : { reach }) };
    return searchWords(index, wordSearch({ userId: "ann" }, query, termsOf("kyoto"), null, 5)).found.map(
      ({ uid }) => uid,
    );
  };
  expect(found()).toEqual(["aside", "aside", "aside", "aside", "aside"]);
  expect(found(treeOfRoot)).toEqual(["root"]);
  index.close();
});

test("[SR1] an entry with all words is found among more entries with one word than are ever ranked", () => {
  const index = new IndexDb(path);
  put(index, "root");
  index.exclusively(() => {
    say(index, "root", 0, ["kyoto", "in", "osaka"]);
    for (let position = 1; position <= 40_002; position++)
      say(index, "root", position, [position % 2 === 0 ? "kyoto" : "osaka"]);
  });
  const terms = termsOf("kyoto osaka");
  const { found } = searchWords(index, wordSearch({ userId: "ann" }, { text: "" }, terms, null, 2));
  expect(found.map(({ entryId, hasAllWords }) => [entryId, hasAllWords])).toEqual([
    ["root-0", true],
    ["root-40002", false],
  ]);
  index.close();
});

test("[SR1] the index stores how often a term occurs in an entry and how long the entry is", () => {
  const index = new IndexDb(path);
  put(index, "root");
  const repeated = (count: number, length: number) =>
    Array.from({ length }, (_, at) => (at < count ? "kyoto" : `word${at}`));
  const entries = [1, 2, 3, 7, 200, 5000].flatMap((count) =>
    [0, 1, 400, 20_000].map((more) => [count, count + more]),
  );
  for (const [at, [count = 0, length = 0]] of entries.entries())
    say(index, "root", at, repeated(count, length));
  // Matches both as a whole word and as a prefix.
  for (const text of ["kyoto", "kyo"]) {
    const terms = {
      any: [{ words: [text], prefix: text === "kyo" }],
      all: [{ words: ["kyoto"], prefix: false }],
    };
    const { found, statistics } = searchWords(
      index,
      wordSearch({ userId: "ann" }, { text }, terms, null, 50),
    );
    const known = found.toSorted((one, other) => one.row - other.row);
    expect(known.map(({ counts, length }) => [counts[0], length])).toEqual(entries);
    expect(statistics).toEqual({ entries: entries.length, holding: [entries.length] });
  }
  index.close();
});

test("[RCH2] a tree is queried through indexes only, from parents to children", () => {
  const index = new IndexDb(path);
  const { sql, values, table } = reachCondition("ann", treeOfRoot) ?? { sql: "", values: [], table: "" };
  const plan = index.db
    .sql(`EXPLAIN QUERY PLAN SELECT uid FROM ${table} WHERE user = ? AND ${sql}`)
    .all("ann", ...values)
    .map(({ detail }) => String(detail));
  expect(plan).toContain("SEARCH child USING COVERING INDEX sessions_lineage (user=? AND spawned_by=?)");
  expect(plan).toContain("SEARCH sessions USING COVERING INDEX sessions_key (user=? AND key=?)");
  index.close();
});
