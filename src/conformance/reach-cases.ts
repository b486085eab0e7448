import assert from "node:assert/strict";
import type { SearchQuery, SessionMeta, SessionQuery, SessionReach, Store } from "../store/contract.ts";
import { append, bob, laterMillisecond, listed, refused } from "./expect.ts";
import type { CaseTemplate } from "./harness.ts";

/** Covers all of a user's sessions because a lineage can include several agents. */
const alice = { userId: "alice" };
const root = "agent:main:main";
const key = (name: string, agentId = "main") => `agent:${agentId}:session:${name}`;

type Kin = readonly [sessionId: string, key: string, spawnedBy?: string];

/** A session with two generations of descendants from two agents, and two unrelated sessions. */
const family: readonly Kin[] = [
  ["root", root],
  ["child", key("child"), root],
  ["grandchild", key("grandchild", "research"), key("child")],
  ["greatgrandchild", key("greatgrandchild"), key("grandchild", "research")],
  ["aside", key("aside")],
  ["other", key("other", "other")],
];

async function settle(store: Store, kin: readonly Kin[], scope = alice): Promise<void> {
  for (const [sessionId, itsKey, spawnedBy] of kin) {
    const meta: SessionMeta = spawnedBy === undefined ? {} : { spawnedBy };
    await store.sessions.create(scope, { key: itsKey, sessionId, cwd: "/w", meta });
  }
}

const tree = (treeOf: string | null, ...agentIds: string[]): SessionReach => ({ treeOf, agentIds });
const all = family.map(([sessionId]) => sessionId).toSorted();

async function reached(store: Store, reach: SessionReach, query: SessionQuery = {}): Promise<string[]> {
  return (await listed(store, alice, { ...query, reach })).toSorted();
}

/** Reads page by page, with one session per page. */
async function paged(store: Store, query: SessionQuery): Promise<string[]> {
  const seen: string[] = [];
  for (let cursor: string | null = null, pages = 0; pages < 20; pages++) {
    const from: { cursor?: string } = cursor === null ? {} : { cursor };
    const page = await store.sessions.list(alice, { ...query, limit: 1, ...from });
    assert.equal(page.sessions.length, 1, "every page except the last is full");
    seen.push(...page.sessions.map((each) => each.sessionId));
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  return seen;
}

/** Cases for the sessions that a caller can reach in lists, counts and searches. */
export const reachCases: readonly CaseTemplate[] = [
  {
    id: "RCH1",
    title:
      "a list within a reach has a session, its descendants at any depth and for any agent, all sessions of certain agents, and nothing else",
    async run({ store }) {
      await settle(store, family);
      const kin = ["child", "grandchild", "greatgrandchild", "root"];
      assert.deepEqual(await reached(store, tree(root)), kin);
      assert.deepEqual(await reached(store, tree(key("child"))), kin.slice(0, 3));
      assert.deepEqual(await reached(store, { ...tree(root), descendants: false }), ["root"]);
      assert.deepEqual(await reached(store, tree(key("grandchild", "research"), "other")), [
        "grandchild",
        "greatgrandchild",
        "other",
      ]);
      assert.deepEqual(await reached(store, tree(null, "main", "research")), [
        "aside",
        "child",
        "grandchild",
        "greatgrandchild",
        "root",
      ]);
      assert.deepEqual(await reached(store, tree(null)), []);
      assert.deepEqual(await reached(store, tree(key("nobody"))), []);
      assert.deepEqual(await reached(store, { treeOf: null, agentIds: "all" }), all);
    },
  },
  {
    id: "RCH2",
    title:
      "a reach combines with the scope, every filter and paging; archived sessions connect, and a cycle ends",
    async run({ store }) {
      await settle(store, family);
      const within = { reach: tree(root) };
      assert.deepEqual(await listed(store, { ...alice, agentId: "research" }, within), ["grandchild"]);
      assert.deepEqual(await reached(store, tree(root), { text: "great" }), ["greatgrandchild"]);
      assert.deepEqual(await reached(store, tree(root), { spawnedBy: key("child") }), ["grandchild"]);
      const parents = [key("child"), key("grandchild", "research")];
      assert.deepEqual(await reached(store, tree(root), { spawnedBy: parents }), [
        "grandchild",
        "greatgrandchild",
      ]);
      assert.deepEqual(await reached(store, tree(root), { kinds: ["main"] }), ["root"]);
      await laterMillisecond();
      await append(store, alice, "aside", "newer than all of them");
      assert.deepEqual((await paged(store, within)).toSorted(), await reached(store, tree(root)));
      await store.sessions.patch(alice, "child", { archived: true });
      assert.deepEqual(await reached(store, tree(root)), ["grandchild", "greatgrandchild", "root"]);
      assert.deepEqual(await reached(store, tree(root), { archived: true }), ["child"]);
      await settle(store, [
        ["hen", key("hen"), key("egg")],
        ["egg", key("egg"), key("hen")],
        ["self", key("self"), key("self")],
      ]);
      assert.deepEqual(await reached(store, tree(key("hen"))), ["egg", "hen"]);
      assert.deepEqual(await reached(store, tree(key("self"))), ["self"]);
    },
  },
  {
    id: "RCH3",
    title: "a reach never includes another user's sessions or passes through them",
    async run({ store }) {
      await settle(store, [
        ["root", root],
        ["heir", key("heir"), key("between")],
      ]);
      await settle(
        store,
        [
          ["root", root],
          ["between", key("between"), root],
          ["theirs", key("theirs"), root],
        ],
        bob as { userId: string },
      );
      await append(store, bob, "theirs", "secret");
      assert.deepEqual(await reached(store, tree(root)), ["root"]);
      assert.deepEqual(await reached(store, { treeOf: root, agentIds: "all" }), ["heir", "root"]);
      assert.equal(await store.sessions.count(alice, { reach: tree(root) }), 1);
      const search: SearchQuery = { text: "secret", reach: { treeOf: root, agentIds: "all" } };
      assert.deepEqual((await store.search.search(alice, search)).hits, []);
      assert.equal((await store.search.search(bob, search)).hits.length, 1);
    },
  },
  {
    id: "RCH4",
    title: "a search within a reach finds its entries, even if hits outside it rank higher",
    async run({ store }) {
      await settle(store, family);
      await append(store, alice, "grandchild", "somewhere in a long text about this and that stands kyoto");
      await append(store, alice, "other", "kyoto of another agent, in some more words than need be");
      for (let index = 0; index < 60; index++) await append(store, alice, "aside", `kyoto kyoto ${index}`);
      const found = async (query: Partial<SearchQuery>) => {
        const { hits } = await store.search.search(alice, { text: "kyoto", limit: 5, ...query });
        return [...new Set(hits.map(({ sessionId }) => sessionId))].toSorted();
      };
      assert.deepEqual(await found({}), ["aside"]);
      assert.deepEqual(await found({ reach: tree(root) }), ["grandchild"]);
      assert.deepEqual(await found({ reach: tree(root, "other") }), ["grandchild", "other"]);
      assert.deepEqual(await found({ reach: { ...tree(root), descendants: false } }), []);
      assert.deepEqual(await found({ reach: tree(root), sessionId: "other" }), []);
      assert.deepEqual(await found({ reach: tree(null) }), []);
      assert.deepEqual(await found({ reach: { treeOf: null, agentIds: "all" } }), ["aside"]);
      await store.sessions.patch(alice, "child", { archived: true });
      assert.deepEqual(await found({ reach: tree(root) }), ["grandchild"]);
    },
  },
  {
    id: "RCH5",
    title: "a count equals the number of rows on all pages of a list",
    async run({ store }) {
      const { sessions } = store;
      assert.equal(await sessions.count(alice, {}), 0);
      await settle(store, family);
      await sessions.create(alice, { key: "global", sessionId: "g", cwd: "/w" });
      await sessions.patch(alice, "aside", { archived: true });
      assert.equal(await sessions.count(alice, {}), 5);
      assert.equal(await sessions.count(alice, { includeGlobal: true }), 6);
      assert.equal(await sessions.count(alice, { archived: true }), 1);
      assert.equal(await sessions.count(alice, { limit: 2 }), 5);
      const { nextCursor } = await sessions.list(alice, { limit: 2 });
      assert.equal(await sessions.count(alice, { limit: 2, cursor: nextCursor ?? "" }), 5);
      assert.equal(await sessions.count(alice, { reach: tree(root), text: "child" }), 3);
      assert.equal(await sessions.count({ ...alice, agentId: "main" }, { reach: tree(root) }), 3);
      await sessions.remove(alice, "child");
      assert.equal(await sessions.count(alice, {}), 4);
      assert.equal(await sessions.count(bob, {}), 0);
    },
  },
  {
    id: "RCH6",
    title: "the agents with sessions are listed in order, including archived ones, each once",
    async run({ store }) {
      const { sessions } = store;
      assert.deepEqual(await sessions.agentIds(alice), []);
      await settle(store, family);
      await sessions.patch(alice, "grandchild", { archived: true });
      assert.deepEqual(await sessions.agentIds(alice), ["main", "other", "research"]);
      assert.deepEqual(await sessions.agentIds({ ...alice, agentId: "other" }), ["other"]);
      await sessions.remove(alice, "other");
      assert.deepEqual(await sessions.agentIds(alice), ["main", "research"]);
      assert.deepEqual(await sessions.agentIds(bob), []);
    },
  },
  {
    id: "RCH7",
    title: "lineage survives a reset of the parent and of the child, and is written once",
    async run({ store }) {
      await settle(store, family);
      const lineage = { spawnDepth: 1, spawnMode: "session", role: "leaf", rootId: "r", toolLayers: [["x"]] };
      await store.sessions.patch(alice, "child", lineage);
      for (const [field, value] of Object.entries({ ...lineage, spawnedBy: root })) {
        const other = typeof value === "number" ? value + 1 : `not ${value}`;
        await refused("conflict", () => store.sessions.patch(alice, "child", { [field]: other }), field);
        await refused("conflict", () => store.sessions.patch(alice, "child", { [field]: null }), field);
      }
      const { fresh } = await store.sessions.reset(alice, "child", { sessionId: "child2" });
      assert.deepEqual(fresh.meta, { spawnedBy: root, ...lineage });
      await store.sessions.reset(alice, "root", { sessionId: "root2" });
      const kin = ["child", "child2", "grandchild", "greatgrandchild", "root2"];
      assert.deepEqual(await reached(store, tree(root)), kin);
      assert.deepEqual(await reached(store, tree(key("child"))), kin.slice(1, 4));
    },
  },
];
