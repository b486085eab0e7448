import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ListedSession, SessionReach } from "../contract.ts";
import { emptyDigest } from "../digest.ts";
import { queryTerms } from "../search/query-terms.ts";
import { wordsOf } from "../search/words.ts";
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

function say(index: IndexDb, uid: string, position: number, said = "kyoto"): void {
  const place = { position, offset: 0, length: 0, parent: null, leaf: null, state: 0 };
  const entry = { ...place, id: `${uid}-${position}`, role: "user", time: 1, text: wordsOf(said), blobs: [] };
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
  before.exec("DROP TABLE said_totals; DROP TABLE embeddings; PRAGMA user_version = 2");
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
    return searchWords(index, wordSearch({ userId: "ann" }, query, queryTerms("kyoto"), null, 5)).found.map(
      ({ entry }) => entry.uid,
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
    say(index, "root", 0, "kyoto in osaka");
    for (let position = 1; position <= 40_002; position++)
      say(index, "root", position, position % 2 === 0 ? "kyoto" : "osaka");
  });
  const terms = queryTerms("kyoto osaka");
  const { found } = searchWords(index, wordSearch({ userId: "ann" }, { text: "" }, terms, null, 2));
  expect(found.map(({ entry, hasAllWords }) => [entry.entryId, hasAllWords])).toEqual([
    ["root-0", true],
    ["root-1", false],
  ]);
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

test.each([
  ["of a user", {}, "sessions_user (user=? AND archived=?)"],
  ["of an agent", { agentId: "main" }, "sessions_agent (user=? AND agent=? AND archived=?)"],
])("the sessions %s are searched by name in an index alone", (_, agent, found) => {
  const index = new IndexDb(path);
  put(index, "trip");
  const prepared = vi.spyOn(index.db, "sql");
  const scope = { userId: "ann", ...agent };
  expect(countSessions(index, scope, { text: "TRI" })).toBe(1);
  expect(listSessions(index, scope, { text: "TRI" }, 10, null).map(({ uid }) => uid)).toEqual(["trip"]);
  const plans = prepared.mock.calls.map(([sql]) => {
    const values = Array.from(sql.matchAll(/\?/g), () => "");
    return index.db.sql(`EXPLAIN QUERY PLAN ${sql}`).all(...values)[0]?.detail;
  });
  // The list reads the records of its hits from the table.
  expect(plans).toEqual([
    `SEARCH sessions USING COVERING INDEX ${found}`,
    `SEARCH sessions USING INDEX ${found}`,
  ]);
  index.close();
});
