import assert from "node:assert/strict";
import { parseSession } from "../core/parse-session.ts";
import { SessionTree } from "../core/tree.ts";
import type { Scope } from "../store/contract.ts";
import { alice, answered, append, bob, create, ids, listed, nobody, refused, said } from "./expect.ts";
import type { CaseTemplate } from "./harness.ts";

/** Reset, adopt, redact and purge, and the digests in a list. */
export const removalCases: readonly CaseTemplate[] = [
  {
    id: "ST25",
    title: "a reset starts a new session under the key, and the old one can still be read",
    async run({ store }) {
      const old = await create(store, alice, "trip", {
        label: "holiday",
        archived: true,
        thinkingLevel: "high",
      });
      await append(store, alice, "trip", "before");
      await refused("invalid_session_id", () => store.sessions.reset(alice, "trip", { sessionId: "../x" }));
      await refused("conflict", () => store.sessions.reset(alice, "trip", { sessionId: "TRIP" }));
      assert.equal((await store.sessions.get(alice, "trip"))?.key, old.key, "a refusal changes nothing");
      const done = await store.sessions.reset(alice, "trip", { sessionId: "trip2" });
      assert.equal(done.old.key, "agent:main:reset:trip");
      assert.equal(done.old.uid, old.uid);
      assert.equal(done.old.meta.label, undefined);
      assert.equal(done.fresh.key, old.key);
      assert.equal(done.fresh.sessionId, "trip2");
      assert.notEqual(done.fresh.uid, old.uid);
      assert.deepEqual(done.fresh.meta, { label: "holiday", thinkingLevel: "high" });
      assert.equal(done.fresh.leafId, null);
      assert.deepEqual(await ids(store, alice, "trip2"), []);
      assert.equal((await ids(store, alice, "trip")).includes("before"), true);
      const byKey = async (key: string) =>
        (await store.sessions.find(alice, { by: "key", key })).map((each) => each.sessionId);
      assert.deepEqual(await byKey(old.key), ["trip2"]);
      assert.deepEqual(await byKey("agent:main:reset:trip"), ["trip"]);
      const byUid = async (scope: Scope, uid: string) =>
        (await store.sessions.find(scope, { by: "uid", uid })).map((each) => each.sessionId);
      assert.deepEqual(await byUid(alice, old.uid), ["trip"]);
      assert.deepEqual(await byUid(alice, done.fresh.uid), ["trip2"]);
      assert.deepEqual(await byUid(bob, old.uid), []);
      await refused("conflict", () => store.sessions.reset(alice, "trip"));
      await refused("not_found", () => store.sessions.reset(bob, "trip2"));
      await append(store, alice, "trip", "after");
      assert.equal((await store.sessions.get(alice, "trip"))?.key, "agent:main:reset:trip");
    },
  },
  {
    id: "ST26",
    title: "an adopted session keeps the IDs of its entries, and none of its old store's names",
    async run({ store }) {
      const tree = SessionTree.create(
        { cwd: "/theirs", id: "elsewhere" },
        { clock: { now: () => 86_400_000 } },
      );
      const first = tree.append(said("one"), { id: "one" });
      tree.append(answered("two"), { id: "two" });
      tree.append({ type: "label", targetId: first.id, label: "start" });
      tree.branch("one");
      tree.append(said("three"), { id: "three" });
      const init = { key: "agent:main:session:ours", sessionId: "ours", cwd: "/w", meta: { label: "l" } };
      const made = await store.sessions.adopt(alice, init, tree);
      assert.equal(made.sessionId, "ours");
      assert.equal(made.cwd, "/w");
      assert.equal(made.updatedAt, 86_400_000);
      assert.deepEqual(made.meta, { label: "l" });
      assert.equal(made.leafId, "three");
      const context = await store.sessions.context(alice, "ours");
      assert.deepEqual(context?.entryIds, ["one", "three"]);
      assert.equal((await ids(store, alice, "ours")).length, tree.size);
      await append(store, alice, "ours", "four");
      assert.equal(tree.size, 5, "the tree is the caller's own");
      await refused("conflict", () => store.sessions.adopt(alice, init, tree));
      assert.deepEqual(await listed(store, bob), []);
      const timeless = SessionTree.from(
        parseSession(Buffer.from('{"type":"session","version":3,"id":"x"}\n')),
      );
      const now = await store.sessions.adopt(alice, { key: "agent:main:main", cwd: "/w" }, timeless);
      assert.ok(now.createdAt > made.createdAt, "a session without a start time starts now");
    },
  },
  {
    id: "ST27",
    title: "a redacted entry is erased from the session, its forks and the trash, and keeps its place",
    async run({ store }) {
      for (const scope of [alice, bob]) {
        await create(store, scope, "s");
        await append(store, scope, "s", "plain", "topsecret", "later");
      }
      const fork = { key: "agent:main:session:f", sessionId: "f", cwd: "/w" };
      await store.sessions.fork(alice, "s", "later", fork);
      await store.sessions.fork(alice, "s", "later", {
        ...fork,
        key: "agent:main:session:g",
        sessionId: "g",
      });
      await store.sessions.remove(alice, "g");
      const summary = {
        type: "compaction" as const,
        summary: "S",
        firstKeptEntryId: "later",
        tokensBefore: 1,
      };
      await store.sessions.append(alice, "s", [{ draft: summary, id: "sum" }]);
      const { sessions, mayRepeat } = await store.sessions.redact(alice, "s", ["topsecret"]);
      assert.deepEqual(sessions.map((each) => each.sessionId).toSorted(), ["f", "g", "s"]);
      assert.deepEqual(mayRepeat, [{ sessionId: "s", entryId: "sum" }]);
      await store.sessions.restore(alice, "g");
      for (const sessionId of ["s", "f", "g"]) {
        const page = await store.sessions.page(alice, sessionId, { along: "all", limit: 100 });
        const gone = page?.entries.find((entry) => entry.id === "topsecret");
        assert.equal(gone?.parentId, "plain");
        assert.equal(JSON.stringify({ ...gone, id: "" }).includes("topsecret"), false);
        assert.equal(
          page?.entries.some((entry) => entry.id === "later" && entry.parentId === "topsecret"),
          true,
        );
      }
      assert.deepEqual((await store.search.search(alice, { text: "topsecret" })).hits, []);
      assert.equal((await store.search.search(bob, { text: "topsecret" })).hits.length, 1);
      assert.deepEqual((await store.sessions.redact(alice, "s", ["topsecret"])).sessions, []);
      const again = await store.sessions.redact(alice, "f", ["plain"]);
      assert.equal(again.sessions[0]?.sessionId, "f", "the session itself comes first");
      await refused("not_found", () => store.sessions.redact(alice, "s", ["no-such-entry"]));
      await append(store, alice, "s", "and on");
    },
  },
  {
    id: "ST28",
    title: "a purged session is permanently deleted with its state, and its ID is free",
    async run({ store }) {
      await create(store, alice, "s", { label: "l" });
      await store.state.set(alice, "s", "k", 1);
      assert.equal(await store.sessions.purge(alice, "s"), false);
      await store.sessions.remove(alice, "s");
      const [trashed] = await store.sessions.trashed(alice);
      assert.equal(trashed?.sessionId, "s");
      assert.equal(trashed?.label, "l");
      assert.ok((trashed?.removedAt ?? 0) > 0);
      assert.deepEqual(await store.sessions.trashed(bob), []);
      assert.equal(await store.sessions.purge(bob, "s"), false);
      assert.equal(await store.sessions.purge(alice, "s"), true);
      assert.deepEqual(await store.sessions.trashed(alice), []);
      await refused("not_found", () => store.sessions.restore(alice, "s"));
      await create(store, alice, "s");
      assert.equal(await store.state.get(alice, "s", "k"), null);
      assert.deepEqual(await ids(store, alice, "s"), []);
    },
  },
  {
    id: "ST29",
    title: "a purged user has nothing left, and other users are unaffected",
    async run({ store }) {
      for (const scope of [alice, bob, nobody]) {
        await create(store, scope, "s");
        await append(store, scope, "s", "word");
        await store.state.set(scope, "s", "k", 1);
      }
      await create(store, alice, "t");
      await store.sessions.remove(alice, "t");
      await store.sessions.create({ userId: "alice" }, { key: "agent:other:main", cwd: "/w" });
      const bytes = new Uint8Array([1, 2, 3]);
      const sha256 = await store.blobs.put(alice, bytes);
      await store.blobs.put(bob, bytes);
      assert.deepEqual(await store.purgeUser("alice"), { sessions: 3 });
      assert.deepEqual(await listed(store, { userId: "alice" }), []);
      assert.deepEqual(await store.sessions.trashed(alice), []);
      assert.deepEqual((await store.search.search(alice, { text: "word" })).hits, []);
      assert.equal(await store.blobs.get(alice, sha256), null);
      assert.notEqual(await store.blobs.get(bob, sha256), null);
      for (const scope of [bob, nobody]) {
        assert.deepEqual(await ids(store, scope, "s"), ["word"]);
        assert.equal((await store.state.get(scope, "s", "k"))?.value, 1);
      }
      await refused("invalid_user_id", () => store.purgeUser(""));
      await create(store, alice, "s");
      assert.equal(await store.state.get(alice, "s", "k"), null);
    },
  },
  {
    id: "ST30",
    title: "a list summarizes the entries of each session",
    async run({ store }) {
      await create(store, alice, "s");
      await append(store, alice, "s", "Plan three days");
      await store.sessions.append(alice, "s", [
        { draft: answered("Gladly"), id: "a" },
        { draft: { type: "thinking_level_change", thinkingLevel: "high" }, id: "t" },
      ]);
      const digestOf = async (sessionId: string) =>
        (await store.sessions.list(alice, {})).sessions.find((each) => each.sessionId === sessionId)?.digest;
      const digest = await digestOf("s");
      assert.equal(digest?.entries, 3);
      assert.ok((digest?.bytes ?? 0) > 300);
      assert.deepEqual(digest?.model, { provider: "p", modelId: "m" });
      assert.equal(digest?.thinkingLevel, "high");
      assert.equal(digest?.totalTokens, 2);
      assert.equal(digest?.contextTokens, 2);
      assert.equal(digest?.costUsd, 0);
      assert.equal(digest?.summary, "Plan three days");
      assert.ok((digest?.lastInputAt ?? 0) > 0);
      const note = { role: "user", content: "psst", provenance: { kind: "inter_session" } } as const;
      await store.sessions.append(alice, "s", [{ draft: { type: "message", message: note }, id: "n" }]);
      assert.equal((await digestOf("s"))?.lastInputAt, digest?.lastInputAt);
      const summary = "## Goal\nSee Kyoto\n\n## Done\nNothing";
      const compaction = { type: "compaction" as const, summary, firstKeptEntryId: "n", tokensBefore: 9 };
      await store.sessions.append(alice, "s", [{ draft: compaction, id: "c" }]);
      const after = await digestOf("s");
      assert.equal(after?.summary, "See Kyoto");
      assert.equal(after?.compactions, 1);
      assert.equal(after?.contextTokens, null);
    },
  },
];
