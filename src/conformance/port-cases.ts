import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Entry } from "../core/entries.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { StoreChange } from "../store/contract.ts";
import { alice, answered, append, bob, create, refused, said } from "./expect.ts";
import type { CaseTemplate } from "./harness.ts";

/** Search, state, blobs and change events. */
export const portCases: readonly CaseTemplate[] = [
  {
    id: "SR1",
    title:
      "search finds entries with any of the words, including identifiers and Chinese, and lists entries with all words first",
    async run({ store }) {
      await create(store, alice, "s");
      await append(
        store,
        alice,
        "s",
        "The quick brown fox",
        "call getUserName(user_id) first",
        "我们去北京大学",
        "nothing of interest",
      );
      const found = async (text: string) =>
        (await store.search.search(alice, { text })).hits.map((hit) => hit.entryId);
      assert.deepEqual(await found("QUICK fox"), ["The quick brown fox"]);
      assert.deepEqual((await found("quick getusername")).toSorted(), [
        "The quick brown fox",
        "call getUserName(user_id) first",
      ]);
      assert.equal((await found("Where did the brown fox go?"))[0], "The quick brown fox");
      assert.deepEqual(await found("getUserName"), ["call getUserName(user_id) first"]);
      assert.deepEqual(await found("username name"), ["call getUserName(user_id) first"]);
      assert.deepEqual(await found("user name"), ["call getUserName(user_id) first"]);
      assert.deepEqual(await found("user_id"), ["call getUserName(user_id) first"]);
      assert.deepEqual(await found("北京"), ["我们去北京大学"]);
      assert.deepEqual(await found("京"), ["我们去北京大学"]);
      assert.deepEqual(await found("学"), ["我们去北京大学"]);
      assert.equal((await found("北京在哪里"))[0], "我们去北京大学");
      assert.deepEqual(await found("北大"), []);
      assert.deepEqual(await found('  "*( AND'), []);
      assert.deepEqual(await found(""), []);
      const repeated = "tea tea tea tea";
      const all = "whoever makes tea in the kitchen of the second floor should also buy milk";
      await append(store, alice, "s", repeated, all, "milk");
      assert.equal((await found("tea milk"))[0], all);
      assert.deepEqual((await found("tea milk")).toSorted(), ["milk", repeated, all].toSorted());
    },
  },
  {
    id: "SR2",
    title: "search also reads tool results and call arguments, and can be limited by role, session and time",
    async run({ store }) {
      await create(store, alice, "s");
      await create(store, alice, "t");
      const result: EntryDraft = {
        type: "message",
        message: {
          role: "toolResult",
          toolCallId: "c",
          toolName: "read",
          content: [{ type: "text", text: "needle in a haystack" }],
          isError: false,
        },
      };
      await store.sessions.append(alice, "s", [{ draft: result, id: "r" }]);
      await store.sessions.append(alice, "t", [
        { draft: said("another needle"), id: "u" },
        { draft: answered("no such thing"), id: "v" },
      ]);
      const found = async (query = {}) =>
        (await store.search.search(alice, { text: "needle", ...query })).hits;
      assert.deepEqual((await found()).map((hit) => hit.entryId).toSorted(), ["r", "u"]);
      const [best] = await found({ limit: 1 });
      const [second, ...more] = await found({ limit: 1, offset: 1 });
      assert.deepEqual([best?.entryId, second?.entryId].toSorted(), ["r", "u"]);
      assert.deepEqual([more, await found({ offset: 2 })], [[], []]);
      const [hit] = await found({ sessionId: "S" });
      assert.deepEqual(
        { ...hit, time: 0 },
        {
          sessionId: "s",
          key: "agent:main:session:s",
          entryId: "r",
          role: "toolResult",
          time: 0,
          snippet: "needle in a haystack",
        },
      );
      assert.deepEqual(
        (await found({ role: "user" })).map((each) => each.entryId),
        ["u"],
      );
      assert.equal((await found({ limit: 1 })).length, 1);
      assert.deepEqual(await found({ since: (hit?.time ?? 0) + 3_600_000 }), []);
      assert.deepEqual(await found({ until: (hit?.time ?? 0) - 3_600_000 }), []);
      assert.equal(
        (await found({ since: (hit?.time ?? 0) - 3_600_000, until: (hit?.time ?? 0) + 3_600_000 })).length,
        2,
      );
    },
  },
  {
    id: "SR3",
    title: "search uses the displayed text if the requester sees less than was written",
    async run({ store }) {
      await create(store, alice, "s");
      await append(
        store,
        alice,
        "s",
        "deploy then with password tulip",
        "deploy deploy",
        "deploy at once",
        "or tulip",
      );
      const shownText = (entry: Entry) => {
        const content: unknown = entry.type === "message" ? Reflect.get(entry.message, "content") : null;
        return typeof content === "string" ? content.replace("tulip", "***") : null;
      };
      const found = async (text: string, limit: number, more = {}) =>
        (await store.search.search(alice, { text, limit, ...more })).hits;
      assert.equal((await found("deploy tulip", 1))[0]?.snippet, "deploy then with password tulip");
      for (const query of ["deploy tulip", "who keeps the tulip of the deploy"])
        for (const limit of [1, 2, 3]) {
          const hits = await found(query, limit, { shownText });
          assert.deepEqual(hits, await found(query.replace("tulip", "roses"), limit, { shownText }));
          assert.equal(hits.length, limit);
        }
      assert.deepEqual(await found("where is the tulip now", 3, { shownText }), []);
      const snippets = (await found("deploy tulip", 3, { shownText })).map(({ snippet }) => snippet);
      assert.ok(snippets.includes("deploy then with password ***"));
      assert.deepEqual(await found("tulip", 3, { shownText }), []);
      // In a sentence, the message after a match can be a hit too.
      const near = (await found("what is there to deploy", 9, { shownText })).map(({ snippet }) => snippet);
      assert.ok(near.length > 0 && near.every((snippet) => !snippet.includes("tulip")));
      assert.deepEqual(await found("deploy", 3, { shownText: () => null }), []);
    },
  },
  {
    id: "SS1",
    title: "state is empty for a new session, has versions, and is stored by session and key",
    async run({ store }) {
      await create(store, alice, "s");
      await create(store, alice, "t");
      assert.equal(await store.state.get(alice, "s", "tools"), null);
      assert.deepEqual(await store.state.keys(alice, "s"), []);
      assert.equal(await store.state.set(alice, "s", "tools", { active: ["a"] }), 1);
      assert.equal(await store.state.set(alice, "s", "tools", null), 2);
      assert.equal(await store.state.set(alice, "s", "other", [1, "two"]), 1);
      assert.deepEqual(await store.state.get(alice, "s", "tools"), { value: null, version: 2 });
      assert.deepEqual(await store.state.keys(alice, "s"), ["other", "tools"]);
      assert.equal(await store.state.get(alice, "t", "tools"), null);
      assert.equal(await store.state.get(bob, "s", "tools"), null);
      await refused("not_found", () => store.state.set(alice, "none", "tools", 1));
      await refused("not_found", () => store.state.set(bob, "s", "tools", 1));
      await refused("invalid_arguments", () => store.state.set(alice, "s", "../x", 1));
      for (const value of [undefined, () => 1, 1n, { deep: Number.NaN }]) {
        await refused("invalid_arguments", () => store.state.set(alice, "s", "tools", value as never));
      }
      assert.deepEqual(await store.state.get(alice, "s", "tools"), { value: null, version: 2 });
    },
  },
  {
    id: "SS2",
    title: "setting state with an outdated version is a conflict",
    async run({ store }) {
      await create(store, alice, "s");
      await store.state.set(alice, "s", "k", 1, { ifVersion: null });
      await refused("conflict", () => store.state.set(alice, "s", "k", 2, { ifVersion: null }));
      await refused("conflict", () => store.state.set(alice, "s", "k", 2, { ifVersion: 0 }));
      assert.equal(await store.state.set(alice, "s", "k", 2, { ifVersion: 1 }), 2);
      await refused("conflict", () => store.state.set(alice, "s", "k", 3, { ifVersion: 1 }));
      assert.equal(await store.state.delete(alice, "s", "k"), true);
      assert.equal(await store.state.delete(alice, "s", "k"), false);
      await refused("conflict", () => store.state.set(alice, "s", "k", 3, { ifVersion: 2 }));
      await store.state.set(alice, "s", "k", 3, { ifVersion: null });
      const held = { list: [1] };
      await store.state.set(alice, "s", "k", held);
      held.list.push(2);
      assert.deepEqual((await store.state.get(alice, "s", "k"))?.value, { list: [1] });
    },
  },
  {
    id: "SB1",
    title: "blobs are found by their hash, for their user and agent",
    async run({ store }) {
      const bytes = new TextEncoder().encode("large");
      const sha256 = await store.blobs.put(alice, bytes);
      assert.equal(sha256, createHash("sha256").update("large").digest("hex"));
      assert.equal(await store.blobs.put(alice, bytes), sha256);
      assert.deepEqual(await store.blobs.get(alice, sha256), bytes);
      assert.equal(await store.blobs.get(bob, sha256), null);
      assert.equal(await store.blobs.get({ userId: "alice", agentId: "other" }, sha256), null);
      assert.equal(await store.blobs.get(alice, "0".repeat(64)), null);
      assert.equal(await store.blobs.get(alice, "../../etc/passwd"), null);
      assert.deepEqual(
        await store.blobs.get(alice, await store.blobs.put(alice, new Uint8Array(0))),
        new Uint8Array(0),
      );
      await create(store, alice, "s");
      const blob = { sha256, bytes: bytes.length, mimeType: "text/plain", was: "text" };
      const content = [{ type: "text", text: "cut", skein: { blob } }];
      const draft = { type: "message", message: { role: "user", content } } as EntryDraft;
      await store.sessions.append(alice, "s", [{ draft, id: "e" }]);
      const fork = { key: "agent:other:session:f", sessionId: "f", cwd: "/w" };
      await store.sessions.fork({ userId: "alice" }, "s", "e", fork);
      assert.deepEqual(await store.blobs.get({ userId: "alice", agentId: "other" }, sha256), bytes);
      assert.equal(await store.blobs.get({ userId: "bob", agentId: "other" }, sha256), null);
    },
  },
  {
    id: "SW1",
    title:
      "changes are reported once they are stored, in order, within the scope, until the subscription ends",
    async run({ store }) {
      const seen: string[] = [];
      const note = (change: StoreChange) =>
        seen.push(
          `${change.type} ${change.session.sessionId}${change.type === "appended" ? ` ${change.entries.map((entry) => entry.id).join()}` : ""}`,
        );
      const stop = store.watch.subscribe(alice, note);
      await create(store, bob, "theirs");
      await create(store, alice, "s");
      await append(store, alice, "s", "a", "b");
      await append(store, alice, "s", "a");
      await Promise.all([append(store, alice, "s", "c"), append(store, alice, "s", "d")]);
      const summary = { type: "compaction" as const, summary: "S", firstKeptEntryId: "d", tokensBefore: 1 };
      await Promise.all([
        store.sessions.append(alice, "s", [{ draft: summary, id: "sum" }]),
        append(store, alice, "s", "f"),
        append(store, alice, "s", "g"),
      ]);
      await store.sessions.patch(alice, "s", { model: "x" });
      await store.sessions.remove(alice, "s");
      await store.sessions.restore(alice, "s");
      stop();
      await append(store, alice, "s", "e");
      assert.deepEqual(seen, [
        "created s",
        "appended s a,b",
        "appended s c",
        "appended s d",
        "appended s sum",
        "appended s f",
        "appended s g",
        "patched s",
        "removed s",
        "restored s",
      ]);
    },
  },
];
