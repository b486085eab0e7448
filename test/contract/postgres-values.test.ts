import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { AppendItem, Scope, Store } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { lookupText, userKey } from "../../src/store/postgres/lookup-text.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { openPostgresStore, postgresFor } from "../support/postgres.ts";
import { allEntries, append, create, refused, said } from "../support/store-calls.ts";

/** Text that PostgreSQL cannot store, that does not fit in an index, or that looks like SQL or like a stored form. */
const odd: Readonly<Record<string, string>> = {
  "a zero byte": "a\0b",
  "another zero byte": "a\u0001b",
  "half a character": "a\ud800b",
  "the other half": "a\udc00b",
  "a replacement character": "a\ufffdb",
  "a quote": "a'b\\\"; DROP TABLE skein.sessions; --",
  "a dollar": "$1 $$ {x}",
  "a hash": lookupText("\0"),
  "the unnamed user": "~unnamed",
  "long text": "世".repeat(3000),
  "longer text": `${"世".repeat(3000)}!`,
};

let database: TestDatabase | null = null;
let store: Store;
let memory: Store;
let users = 0;
let scope: Scope;

beforeEach(async (context) => {
  scope = { userId: `user${users++}`, agentId: "main" };
  memory = createMemoryStore();
  if (database !== null) return;
  database = await (await postgresFor(context)).createDatabase();
  store = await openPostgresStore({ url: database.url() });
});
afterAll(async () => {
  await store?.close();
  await database?.drop();
});

describe("values that are hard to store", () => {
  test("lookup forms differ, are short, and can be stored", () => {
    const forms = [...Object.values(odd), "", "plain"].map(lookupText);
    expect(new Set([...forms, userKey(null)]).size).toBe(forms.length + 1);
    for (const form of forms) {
      expect(Buffer.byteLength(form)).toBeLessThanOrEqual(400);
      expect(form).not.toContain("\0");
      expect(form.isWellFormed()).toBe(true);
    }
    expect(lookupText("plain")).toBe("plain");
  });

  test.each(Object.entries(odd))("%s in entry IDs, targets, texts and metadata", async (_, text) => {
    const results = [];
    for (const each of [store, memory]) {
      await create(each, scope, "s", { displayName: text, custom: { [text]: [text] } });
      const items: AppendItem[] = [
        { draft: said(`${text} word`), id: text },
        { draft: { type: "label", targetId: text, label: text }, id: "label" },
        { draft: { type: "session_info", name: text }, id: "name" },
        { draft: { type: "custom", customType: text, data: { text } }, id: "custom" },
      ];
      await each.sessions.append(scope, "s", items);
      await each.sessions.append(scope, "s", items);
      await each.state.set(scope, "s", "k", { [text]: text });
      const {
        uid: _uid,
        createdAt,
        updatedAt,
        ...record
      } = (await each.sessions.get(scope, "s")) ?? {
        uid: "",
        createdAt: 0,
        updatedAt: 0,
      };
      expect([createdAt, updatedAt].every((time) => time > 0)).toBe(true);
      const entries = (await allEntries(each, scope, "s")).map(
        ({ timestamp: _timestamp, ...entry }) => entry,
      );
      const { hits } = await each.search.search(scope, { text: `${text} word`, limit: 5 });
      const texts = await each.sessions.list(scope, { text });
      results.push({
        record,
        entries,
        one: (await each.sessions.entry(scope, "s", text))?.id,
        state: await each.state.get(scope, "s", "k"),
        hits: hits.map(({ time: _time, ...hit }) => hit),
        listed: texts.sessions.map(({ sessionId }) => sessionId),
        unknown: [
          await each.sessions.get(scope, text),
          await each.sessions.find(scope, { by: "sessionId", sessionId: text }),
          await each.sessions.find(scope, { by: "prefix", prefix: text }),
          await each.sessions.find(scope, { by: "uid", uid: text }),
          await each.sessions.list(scope, { label: text, spawnedBy: text, channels: [text], uids: [text] }),
          await each.state.get(scope, "s", text),
          await each.blobs.get(scope, text),
        ],
      });
    }
    expect(results[0]).toEqual(results[1]);
  });

  test("names, labels and keys of the maximum length", async () => {
    const userId = "😀".repeat(256);
    const mine = { userId, agentId: "main" };
    const label = "世".repeat(512);
    const key = `agent:main:x:${"世".repeat(4000)}`;
    const { uid } = await store.sessions.create(mine, { key, sessionId: "s", cwd: "/", meta: { label } });
    expect(await store.sessions.get(mine, "s")).toMatchObject({ userId, key, meta: { label } });
    for (const lookup of [
      { by: "key", key },
      { by: "label", label, agentId: "main" },
    ] as const)
      expect((await store.sessions.find(mine, lookup)).map((each) => each.uid)).toEqual([uid]);
    const other = { key: `${key}!`, sessionId: "t", cwd: "/" };
    await refused("conflict", () => store.sessions.create(mine, { ...other, meta: { label } }));
    await store.sessions.create(mine, { ...other, meta: { spawnedBy: key } });
    expect((await store.sessions.list(mine, { reach: { treeOf: key, agentIds: [] } })).sessions).toHaveLength(
      2,
    );
  });

  test("pages of a list sorted by names that PostgreSQL cannot store", async () => {
    const orders = [];
    for (const each of [store, memory]) {
      for (const [index, name] of Object.values(odd).entries())
        await create(each, scope, `s${index}`, { displayName: name });
      const order: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const from: { cursor?: string } = cursor === "" ? {} : { cursor };
        const page = await each.sessions.list(scope, { sort: "name", limit: 1, ...from });
        order.push(...page.sessions.map(({ sessionId }) => sessionId));
        cursor = page.nextCursor;
      }
      orders.push(order);
    }
    expect(orders[0]?.toSorted()).toEqual(orders[1]?.toSorted());
    expect(orders[0]).toHaveLength(Object.keys(odd).length);
  });

  test("an entry with more words than a tsvector can hold is found by its first and last words", async () => {
    await create(store, scope, "s");
    const words = Array.from({ length: 150_000 }, (_, index) => `word${index}x`);
    const text = `alpha ${words.join(" ")} omega`;
    const draft: EntryDraft = { type: "message", message: { role: "user", content: text } };
    await store.sessions.append(scope, "s", [{ draft, id: "big" }]);
    await append(store, scope, "s", "alpha");
    const found = async (query: string) =>
      (await store.search.search(scope, { text: query })).hits.map(({ entryId }) => entryId);
    expect(await found("word149999x")).toEqual(["big"]);
    expect(await found("alpha word75000x omega")).toEqual(["big", "alpha"]);
  });

  test("a large entry is read back unchanged", async () => {
    await create(store, scope, "s");
    const content = "0123456789abcdef".repeat(512 * 1024);
    const draft: EntryDraft = { type: "message", message: { role: "user", content, timestamp: 1 } };
    const { entries } = await store.sessions.append(scope, "s", [{ draft }]);
    expect(await allEntries(store, scope, "s")).toEqual(entries);
  });
});
