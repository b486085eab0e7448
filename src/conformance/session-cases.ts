import assert from "node:assert/strict";
import { buildContext } from "../core/context.ts";
import type { SessionMeta } from "../store/contract.ts";
import {
  alice,
  allEntries,
  answered,
  append,
  bob,
  create,
  ids,
  laterMillisecond,
  listed,
  nobody,
  refused,
} from "./expect.ts";
import type { CaseTemplate } from "./harness.ts";

/** Sessions: lookups, uniqueness, and the separation of users. */
export const sessionCases: readonly CaseTemplate[] = [
  {
    id: "ST1",
    title: "a created session is found by ID, key, label, spawn ID and prefix",
    async run({ store }) {
      const made = await create(store, alice, "Trip", { label: "holiday" });
      assert.equal(made.key, "agent:main:session:Trip");
      assert.equal(made.kind, "other");
      assert.equal(made.version, 1);
      assert.deepEqual(made.meta, { label: "holiday" });
      assert.equal(made.leafId, null);
      assert.deepEqual(await store.sessions.get(alice, "Trip"), made);
      assert.deepEqual(await store.sessions.get(alice, "tRIP"), made);
      const child = await store.sessions.create(alice, { key: "agent:main:subagent:Trip:sp1", cwd: "/w" });
      const found = async (lookup: Parameters<typeof store.sessions.find>[1]) =>
        (await store.sessions.find(alice, lookup)).map((each) => each.uid);
      assert.deepEqual(await found({ by: "key", key: made.key }), [made.uid]);
      assert.deepEqual(await found({ by: "sessionId", sessionId: "TRIP" }), [made.uid]);
      assert.deepEqual(await found({ by: "label", label: "holiday", agentId: "main" }), [made.uid]);
      assert.deepEqual(await found({ by: "label", label: "holiday", agentId: "other" }), []);
      assert.deepEqual(await found({ by: "prefix", prefix: "Tri" }), [made.uid]);
      assert.deepEqual(await found({ by: "spawnId", spawnId: "sp1" }), [child.uid]);
      assert.notEqual(child.sessionId, made.sessionId);
    },
  },
  {
    id: "ST2",
    title: "key, session ID (ignoring case) and label are unique",
    async run({ store }) {
      await create(store, alice, "trip", { label: "holiday" });
      const key = "agent:main:session:trip";
      const again = (init: { key: string; sessionId: string; meta?: SessionMeta }) => () =>
        store.sessions.create(alice, { cwd: "/w", ...init });
      const free = "agent:main:session:free";
      await refused("conflict", again({ key, sessionId: "other" }), key);
      await refused("conflict", again({ key: free, sessionId: "TRIP" }), "TRIP");
      await refused(
        "conflict",
        again({ key: free, sessionId: "other", meta: { label: "holiday" } }),
        "holiday",
      );
      assert.deepEqual(await listed(store, alice), ["trip"]);
      await store.sessions.create(
        { userId: "alice" },
        { key: "agent:other:main", cwd: "/w", meta: { label: "holiday" } },
      );
    },
  },
  {
    id: "ST3",
    title: "users stay separate, even with the same keys, IDs and labels",
    async run({ store }) {
      for (const scope of [alice, bob, nobody]) await create(store, scope, "trip", { label: "holiday" });
      await append(store, alice, "trip", "secret");
      assert.deepEqual(await ids(store, bob, "trip"), []);
      assert.deepEqual(await ids(store, nobody, "trip"), []);
      assert.deepEqual(await ids(store, alice, "trip"), ["secret"]);
      await store.sessions.patch(bob, "trip", { displayName: "of bob" });
      assert.equal((await store.sessions.get(alice, "trip"))?.meta.displayName, undefined);
      assert.equal(await store.sessions.remove(bob, "trip"), true);
      assert.deepEqual(await listed(store, bob), []);
      assert.deepEqual(await listed(store, alice), ["trip"]);
      assert.deepEqual(await listed(store, nobody), ["trip"]);
      assert.deepEqual(await store.sessions.find(bob, { by: "key", key: "agent:main:session:trip" }), []);
      assert.deepEqual((await store.search.search(bob, { text: "secret" })).hits, []);
      assert.equal((await store.search.search(alice, { text: "secret" })).hits.length, 1);
    },
  },
  {
    id: "ST4",
    title: "a scope limited to one agent reaches no other agent",
    async run({ store }) {
      const everything = { userId: "alice" };
      await store.sessions.create(everything, {
        key: "agent:other:session:work",
        sessionId: "work",
        cwd: "/w",
      });
      await create(store, alice, "trip");
      assert.deepEqual(await listed(store, alice), ["trip"]);
      assert.equal((await listed(store, everything)).length, 2);
      assert.equal(await store.sessions.get(alice, "work"), null);
      assert.equal(await store.sessions.context(alice, "work"), null);
      await refused("not_found", () => append(store, alice, "work", "x"));
      await refused("invalid_key", () =>
        store.sessions.create(alice, { key: "agent:other:main", cwd: "/w" }),
      );
    },
  },
  {
    id: "ST12",
    title: "metadata has versions, removable fields and reusable labels; lineage is written once",
    async run({ store }) {
      await create(store, alice, "a", { label: "one", spawnedBy: "agent:main:main" });
      await create(store, alice, "b", { label: "two" });
      const patched = await store.sessions.patch(
        alice,
        "a",
        { label: "three", model: "x/y", custom: { deep: [1] } },
        { ifVersion: 1 },
      );
      assert.equal(patched.version, 2);
      assert.deepEqual(patched.meta, {
        label: "three",
        spawnedBy: "agent:main:main",
        model: "x/y",
        custom: { deep: [1] },
      });
      await refused("conflict", () => store.sessions.patch(alice, "a", { model: null }, { ifVersion: 1 }));
      await refused("conflict", () => store.sessions.patch(alice, "a", { label: "two" }));
      await refused("conflict", () => store.sessions.patch(alice, "a", { spawnedBy: "agent:main:cron:x" }));
      await refused("invalid_arguments", () => store.sessions.patch(alice, "a", { label: " " }));
      assert.deepEqual(await store.sessions.get(alice, "a"), patched);
      await store.sessions.patch(alice, "b", { label: "one" });
      const bare = await store.sessions.patch(alice, "a", { label: null, model: null, custom: null });
      assert.deepEqual(bare.meta, { spawnedBy: "agent:main:main" });
      const same = await store.sessions.patch(alice, "a", { spawnedBy: "agent:main:main", label: null });
      assert.equal(same.version, bare.version);
    },
  },
  {
    id: "ST13",
    title:
      "lists show the newest conversation first and support every filter; metadata does not count as activity",
    async run({ store }) {
      await create(store, alice, "first");
      await store.sessions.create(alice, {
        key: "agent:main:cron:daily",
        sessionId: "second",
        cwd: "/w",
        meta: { spawnedBy: "agent:main:main" },
      });
      await create(store, alice, "third", { label: "L", displayName: "Holiday plans" });
      await laterMillisecond();
      await append(store, alice, "first", "x");
      const { updatedAt } = (await store.sessions.get(alice, "first")) ?? { updatedAt: 0 };
      await store.sessions.patch(alice, "second", { model: "x/y" });
      await store.sessions.append(alice, "third", [{ draft: { type: "session_info", name: "Named" } }]);
      const all = await listed(store, alice);
      assert.equal(all[0], "first");
      assert.deepEqual(all.toSorted(), ["first", "second", "third"]);
      assert.deepEqual(await listed(store, alice, { kinds: ["cron"] }), ["second"]);
      assert.deepEqual((await listed(store, alice, { kinds: [] })).length, 3);
      assert.deepEqual(await listed(store, alice, { channels: ["internal", "none"] }), ["second"]);
      assert.deepEqual(await listed(store, alice, { channels: [] }), []);
      const third = await store.sessions.get(alice, "third");
      assert.deepEqual(await listed(store, alice, { uids: [third?.uid ?? "", "none"] }), ["third"]);
      assert.deepEqual(await listed(store, alice, { uids: [] }), []);
      assert.deepEqual(await listed(store, alice, { label: "L" }), ["third"]);
      assert.deepEqual(await listed(store, alice, { text: "hOLIDAY" }), ["third"]);
      assert.deepEqual(await listed(store, alice, { text: "named" }), ["third"]);
      assert.deepEqual(await listed(store, alice, { spawnedBy: "agent:main:main" }), ["second"]);
      const parents = ["agent:main:nobody", "agent:main:main"];
      assert.deepEqual(await listed(store, alice, { spawnedBy: parents }), ["second"]);
      assert.deepEqual(await listed(store, alice, { spawnedBy: [] }), []);
      const forkedFrom = { sessionId: "first", entryId: null };
      const fork = { key: "agent:main:session:fork", sessionId: "fork", cwd: "/w", meta: { forkedFrom } };
      await store.sessions.fork(alice, "first", null, fork);
      assert.deepEqual(await listed(store, alice, { forkedFrom: ["none", "first"] }), ["fork"]);
      assert.deepEqual(await listed(store, alice, { forkedFrom: [] }), []);
      await store.sessions.remove(alice, "fork");
      assert.deepEqual(await listed(store, alice, { activeSince: updatedAt }), ["first"]);
      await store.sessions.patch(alice, "second", { archived: true });
      assert.deepEqual((await listed(store, alice)).toSorted(), ["first", "third"]);
      assert.deepEqual(await listed(store, alice, { archived: true }), ["second"]);
      assert.equal((await store.sessions.find(alice, { by: "key", key: "agent:main:cron:daily" })).length, 1);
      await store.sessions.create(alice, { key: "global", sessionId: "g", cwd: "/w" });
      assert.ok(!(await listed(store, alice)).includes("g"));
      assert.ok((await listed(store, alice, { includeGlobal: true })).includes("g"));
      await refused("invalid_arguments", () => store.sessions.list(alice, { limit: 0 }));
      await refused("invalid_arguments", () => store.sessions.list(alice, { cursor: "../x" }));
    },
  },
  {
    id: "ST14",
    title: "paging through a list returns each session once, even while sessions are created and reordered",
    async run({ store }) {
      for (let index = 0; index < 12; index++) await create(store, alice, `s${index}`);
      const seen: string[] = [];
      for (let cursor: string | null = null, pages = 0; pages < 20; pages++) {
        const from: { cursor?: string } = cursor === null ? {} : { cursor };
        const page = await store.sessions.list(alice, { limit: 5, ...from });
        seen.push(...page.sessions.map((each) => each.sessionId));
        if (page.nextCursor === null) break;
        cursor = page.nextCursor;
        await create(store, alice, `late${pages}`);
        await append(store, alice, seen[0] as string, `again${pages}`);
      }
      assert.equal(new Set(seen).size, seen.length);
      assert.deepEqual(seen.toSorted(), Array.from({ length: 12 }, (_, index) => `s${index}`).toSorted());
    },
  },
  {
    id: "ST15",
    title: "a removed session is not found, its key and label are free, and it can be restored",
    async run({ store }) {
      await create(store, alice, "trip", { label: "holiday" });
      await append(store, alice, "trip", "kept words");
      assert.equal(await store.sessions.remove(alice, "trip"), true);
      assert.equal(await store.sessions.remove(alice, "trip"), false);
      assert.equal(await store.sessions.get(alice, "trip"), null);
      assert.equal(await store.sessions.context(alice, "trip"), null);
      assert.equal(await store.sessions.page(alice, "trip", { along: "all", limit: 10 }), null);
      assert.deepEqual(
        await store.sessions.find(alice, { by: "label", label: "holiday", agentId: "main" }),
        [],
      );
      assert.deepEqual((await store.search.search(alice, { text: "words" })).hits, []);
      await refused("not_found", () => append(store, alice, "trip", "more"));
      await refused("not_found", () => store.sessions.restore(bob, "trip"));
      const other = await store.sessions.create(alice, {
        key: "agent:main:session:trip",
        sessionId: "new",
        cwd: "/w",
      });
      await refused("conflict", () => store.sessions.restore(alice, "trip"));
      await store.sessions.remove(alice, other.sessionId);
      const back = await store.sessions.restore(alice, "TRIP");
      assert.equal(back.meta.label, "holiday");
      assert.deepEqual(await ids(store, alice, "trip"), ["kept words"]);
      assert.equal((await store.search.search(alice, { text: "words" })).hits.length, 1);
    },
  },
  {
    id: "ST17",
    title: "reading a missing session returns null, and writing to it throws not_found",
    async run({ store }) {
      assert.equal(await store.sessions.get(alice, "none"), null);
      assert.equal(await store.sessions.context(alice, "none"), null);
      assert.equal(await store.sessions.page(alice, "none", { along: "branch", limit: 5 }), null);
      assert.equal(await store.sessions.entry(alice, "none", "x"), null);
      await create(store, alice, "some");
      await append(store, alice, "some", "one", "two");
      assert.equal((await store.sessions.entry(alice, "some", "one"))?.id, "one");
      assert.equal(await store.sessions.entry(alice, "some", "three"), null);
      assert.equal(await store.sessions.entry(bob, "some", "one"), null);
      await refused("not_found", () => append(store, alice, "none", "x"));
      await refused("not_found", () => store.sessions.patch(alice, "none", { model: "x" }));
      await refused("not_found", () => store.sessions.branch(alice, "none", null));
      await refused("not_found", () => store.sessions.restore(alice, "none"));
      await refused("not_found", () =>
        store.sessions.fork(alice, "none", null, { key: "agent:main:main", cwd: "/w" }),
      );
      assert.deepEqual(await listed(store, alice), ["some"]);
    },
  },
  {
    id: "ST18",
    title: "IDs that would point outside their folder are rejected",
    async run({ store }) {
      for (const sessionId of ["../x", "a/b", "..", "", "a\0b", "main", "x.jsonl", "x.lock"]) {
        await refused("invalid_session_id", () =>
          store.sessions.create(alice, { key: "agent:main:main", sessionId, cwd: "/w" }),
        );
        assert.equal(await store.sessions.get(alice, sessionId), null);
      }
      await refused("invalid_key", () =>
        store.sessions.create(alice, { key: "agent:main:session:../x", cwd: "/w" }),
      );
      assert.deepEqual(await listed(store, alice), []);
    },
  },
  {
    id: "ST19",
    title: "everything acknowledged still exists after the store is closed and reopened",
    needs: "reopen",
    async run({ store, reopen }) {
      await create(store, alice, "trip", { label: "holiday" });
      await append(store, alice, "trip", "a", "b", "c");
      await store.sessions.append(alice, "trip", [
        { draft: answered("d"), id: "d" },
        { draft: { type: "label", targetId: "a", label: "start" } },
      ]);
      await store.sessions.branch(alice, "trip", "b");
      await store.sessions.patch(alice, "trip", { model: "x/y" });
      await create(store, alice, "gone");
      await store.sessions.remove(alice, "gone");
      await store.sessions.fork(alice, "trip", "a", {
        key: "agent:main:session:aside",
        sessionId: "aside",
        cwd: "/w",
      });
      const before = {
        record: await store.sessions.get(alice, "trip"),
        entries: await allEntries(store, alice, "trip"),
        context: await store.sessions.context(alice, "trip"),
        list: await listed(store, alice),
      };
      const again = await reopen();
      assert.deepEqual(await again.sessions.get(alice, "trip"), before.record);
      assert.deepEqual(await allEntries(again, alice, "trip"), before.entries);
      assert.deepEqual(await again.sessions.context(alice, "trip"), before.context);
      assert.deepEqual(await listed(again, alice), before.list);
      await refused("conflict", () => create(again, alice, "new", { label: "holiday" }));
      assert.equal((await again.sessions.restore(alice, "gone")).sessionId, "gone");
      assert.deepEqual(
        (await again.search.search(alice, { text: "c" })).hits.map((hit) => hit.entryId),
        ["c"],
      );
    },
  },
  {
    id: "ST20",
    title: "everything acknowledged still exists after a power failure",
    needs: "powerCut",
    async run({ store, powerCut }) {
      await create(store, alice, "trip", { label: "holiday" });
      await append(store, alice, "trip", "a", "b");
      await store.sessions.branch(alice, "trip", "a");
      await append(store, alice, "trip", "c");
      await store.state.set(alice, "trip", "tools", { active: ["x"] });
      const sha256 = await store.blobs.put(alice, new Uint8Array([1, 2, 3]));
      await store.sessions.patch(alice, "trip", { model: "x/y" });
      const record = await store.sessions.get(alice, "trip");
      const again = await powerCut();
      assert.deepEqual(await again.sessions.get(alice, "trip"), record);
      const context = await again.sessions.context(alice, "trip");
      assert.deepEqual(context?.entryIds, ["a", "c"]);
      assert.deepEqual((await again.state.get(alice, "trip", "tools"))?.value, { active: ["x"] });
      assert.deepEqual(await again.blobs.get(alice, sha256), new Uint8Array([1, 2, 3]));
      const entries = await allEntries(again, alice, "trip");
      assert.deepEqual(buildContext(entries).messages, context?.messages);
      await append(again, alice, "trip", "d");
      assert.deepEqual((await again.sessions.context(alice, "trip"))?.entryIds, ["a", "c", "d"]);
    },
  },
];
