import assert from "node:assert/strict";
import { buildContext } from "../core/context.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { EntryRange } from "../store/contract.ts";
import { alice, allEntries, answered, append, create, ids, refused, said } from "./expect.ts";
import type { CaseTemplate } from "./harness.ts";

/** Entries: order, atomicity, branches, forks, pages and the context. */
export const entryCases: readonly CaseTemplate[] = [
  {
    id: "ST5",
    title: "a batch is written completely or not at all",
    async run({ store }) {
      await create(store, alice, "s");
      await append(store, alice, "s", "a");
      const bad = { type: "message", message: { role: "assistant" } } as unknown as EntryDraft;
      await refused("invalid_entry", () =>
        store.sessions.append(alice, "s", [{ draft: said("b"), id: "b" }, { draft: bad }]),
      );
      const lost: EntryDraft = { type: "label", targetId: "nowhere", label: "x" };
      await refused("not_found", () =>
        store.sessions.append(alice, "s", [{ draft: said("b"), id: "b" }, { draft: lost }]),
      );
      assert.deepEqual(await ids(store, alice, "s"), ["a"]);
      const { entries } = await store.sessions.append(alice, "s", [
        { draft: said("b"), id: "b" },
        { draft: answered("c"), id: "c" },
        { draft: { type: "label", targetId: "b", label: "x" }, id: "l" },
      ]);
      assert.deepEqual(
        entries.map((entry) => [entry.id, entry.parentId]),
        [
          ["b", "a"],
          ["c", "b"],
          ["l", "c"],
        ],
      );
      assert.deepEqual(await ids(store, alice, "s"), ["a", "b", "c", "l"]);
    },
  },
  {
    id: "ST6",
    title:
      "repeating an ID is a no-op, repeating it with different content is a conflict, and an empty append does nothing",
    async run({ store }) {
      const { uid } = await create(store, alice, "s");
      await append(store, alice, "s", "a", "b");
      const before = await store.sessions.get(alice, "s");
      const again = await store.sessions.append(alice, "s", [{ draft: said("a"), id: "a" }], {
        expectedLeafId: null,
      });
      assert.deepEqual(
        again.entries.map((entry) => entry.id),
        ["a"],
      );
      assert.equal(again.leafId, "b");
      await refused("conflict", () => store.sessions.append(alice, "s", [{ draft: said("other"), id: "a" }]));
      await refused("conflict", () =>
        store.sessions.append(alice, "s", [
          { draft: said("c"), id: "c" },
          { draft: said("other"), id: "a" },
        ]),
      );
      assert.deepEqual((await store.sessions.append(alice, "s", [])).entries, []);
      assert.deepEqual(await store.sessions.get(alice, "s"), before);
      assert.equal(before?.uid, uid);
      const mixed = await store.sessions.append(alice, "s", [
        { draft: said("b"), id: "b" },
        { draft: said("c"), id: "c" },
      ]);
      assert.deepEqual(
        mixed.entries.map((entry) => entry.id),
        ["b", "c"],
      );
      assert.deepEqual(await ids(store, alice, "s"), ["a", "b", "c"]);
    },
  },
  {
    id: "ST7",
    title: "an append to a leaf other than the expected one is a conflict",
    async run({ store }) {
      await create(store, alice, "s");
      const item = (id: string) => [{ draft: said(id), id }];
      await store.sessions.append(alice, "s", item("a"), { expectedLeafId: null });
      await refused("conflict", () => store.sessions.append(alice, "s", item("b"), { expectedLeafId: null }));
      await store.sessions.append(alice, "s", [{ draft: { type: "label", targetId: "a", label: "x" } }]);
      await store.sessions.append(alice, "s", item("b"), { expectedLeafId: "a" });
      await refused("conflict", () => store.sessions.append(alice, "s", item("c"), { expectedLeafId: "a" }));
      assert.equal((await store.sessions.get(alice, "s"))?.leafId, "b");
    },
  },
  {
    id: "ST8",
    title: "after the leaf is moved, the next entry is attached there, and unknown targets are rejected",
    async run({ store }) {
      await create(store, alice, "s");
      await append(store, alice, "s", "a", "b", "c");
      const moved = await store.sessions.branch(alice, "s", "a");
      assert.equal(moved.leafId, "a");
      await append(store, alice, "s", "d");
      assert.deepEqual((await store.sessions.context(alice, "s"))?.entryIds, ["a", "d"]);
      await refused("not_found", () => store.sessions.branch(alice, "s", "nowhere"));
      await store.sessions.branch(alice, "s", "c");
      assert.deepEqual((await store.sessions.context(alice, "s"))?.entryIds, ["a", "b", "c"]);
      await store.sessions.branch(alice, "s", null);
      assert.deepEqual((await store.sessions.context(alice, "s"))?.messages, []);
      await append(store, alice, "s", "e");
      assert.deepEqual((await store.sessions.context(alice, "s"))?.entryIds, ["e"]);
    },
  },
  {
    id: "ST8",
    title: "a batch can start its own branch, under the same conditions as any other batch",
    async run({ store }) {
      await create(store, alice, "s");
      await append(store, alice, "s", "a", "b", "c");
      const items = (...names: string[]) => names.map((id) => ({ draft: said(id), id }));
      const context = async () => (await store.sessions.context(alice, "s"))?.entryIds;
      const under = (parentId: string | null, expectedLeafId: string | null, ...names: string[]) =>
        store.sessions.append(alice, "s", items(...names), { parentId, expectedLeafId });
      await refused("conflict", () => under("a", "b", "x"));
      await refused("not_found", () => under("nowhere", "c", "x"));
      assert.deepEqual(await context(), ["a", "b", "c"]);
      assert.equal((await under("a", "c", "d", "e")).leafId, "e");
      assert.deepEqual(await context(), ["a", "d", "e"]);
      await append(store, alice, "s", "f");
      await under("b", "f", "g");
      assert.deepEqual(await context(), ["a", "b", "g"]);
      assert.equal((await under("a", "nowhere", "g")).leafId, "g");
      await under(null, "g", "h");
      assert.deepEqual(await context(), ["h"]);
      const draft: EntryDraft = { type: "compaction", summary: "S", firstKeptEntryId: "e", tokensBefore: 1 };
      await store.sessions.append(alice, "s", [{ draft, id: "k" }], { parentId: "f" });
      assert.deepEqual(await context(), ["k", "e", "f"]);
      await under("a", "k", "i");
      assert.deepEqual(await context(), ["a", "i"]);
    },
  },
  {
    id: "ST9",
    title: "the context follows from the entries, through compactions and branches",
    async run({ store }) {
      await create(store, alice, "s");
      const agrees = async () => {
        const entries = await allEntries(store, alice, "s");
        const { diagnostics: _, ...context } = (await store.sessions.context(alice, "s")) ?? {
          diagnostics: [],
        };
        const { diagnostics: __, ...expected } = buildContext(entries);
        assert.deepEqual(context, expected);
      };
      await append(store, alice, "s", "a", "b", "c", "d");
      await store.sessions.append(alice, "s", [
        { draft: { type: "model_change", provider: "p", modelId: "one" } },
        { draft: { type: "thinking_level_change", thinkingLevel: "high" } },
      ]);
      await agrees();
      const compaction = (summary: string, firstKeptEntryId: string | null): EntryDraft => ({
        type: "compaction",
        summary,
        firstKeptEntryId,
        tokensBefore: 9,
      });
      await store.sessions.append(alice, "s", [{ draft: compaction("first", "c"), id: "c1" }]);
      await append(store, alice, "s", "e", "f");
      await agrees();
      assert.deepEqual((await store.sessions.context(alice, "s"))?.entryIds, ["c1", "c", "d", "e", "f"]);
      await store.sessions.branch(alice, "s", "b");
      await append(store, alice, "s", "g");
      await agrees();
      await store.sessions.branch(alice, "s", "f");
      await agrees();
      await store.sessions.append(alice, "s", [{ draft: compaction("second", "e"), id: "c2" }]);
      await append(store, alice, "s", "h");
      await agrees();
      await store.sessions.append(alice, "s", [{ draft: compaction("third", null), id: "c3" }]);
      await agrees();
      await refused("invalid_entry", () =>
        store.sessions.append(alice, "s", [{ draft: compaction("off", "g") }]),
      );
    },
  },
  {
    id: "ST10",
    title: "pages along the branch and over all entries cover every entry in both directions",
    async run({ store }) {
      await create(store, alice, "s");
      const names = Array.from({ length: 23 }, (_, index) => `e${index}`);
      await append(store, alice, "s", ...names);
      await store.sessions.branch(alice, "s", "e19");
      await append(store, alice, "s", "f");
      for (const along of ["branch", "all"] as const) {
        const everything = await walkBack(along);
        assert.deepEqual(await walkForward(along, everything[0] as string), everything.slice(1));
        assert.equal(everything.at(-1), "f");
        assert.equal(everything.includes("e22"), along === "all");
      }
      const range = await store.sessions.page(alice, "s", {
        along: "branch",
        after: "e3",
        before: "e7",
        limit: 10,
      });
      assert.deepEqual(
        range?.entries.map((entry) => entry.id),
        ["e4", "e5", "e6"],
      );
      assert.deepEqual([range?.hasEarlier, range?.hasLater], [true, true]);
      const short = await store.sessions.page(alice, "s", { along: "branch", after: "e3", limit: 2 });
      assert.deepEqual(
        short?.entries.map((entry) => entry.id),
        ["e4", "e5"],
      );
      await refused("not_found", () =>
        store.sessions.page(alice, "s", { along: "all", before: "nowhere", limit: 5 }),
      );
      await refused("not_found", () =>
        store.sessions.page(alice, "s", { along: "branch", before: "e22", limit: 5 }),
      );
      await store.sessions.branch(alice, "s", null);
      await append(store, alice, "s", "g1", "g2", "g3");
      for (const limit of [1, 3, 100]) {
        const page = await store.sessions.page(alice, "s", { along: "branch", before: "g3", limit });
        assert.equal(page?.hasEarlier, page?.entries[0]?.parentId !== null, `before g3, ${limit} at once`);
        assert.equal(page?.entries.at(-1)?.id, "g2");
      }
      for (const range of [{ after: "f" }, { before: "f" }, { after: "e0", before: "g2" }]) {
        await refused("not_found", () =>
          store.sessions.page(alice, "s", { along: "branch", limit: 3, ...range }),
        );
      }

      async function walkBack(along: EntryRange["along"]): Promise<string[]> {
        const found: string[] = [];
        for (let before: string | undefined; ; before = found[0]) {
          const page = await store.sessions.page(alice, "s", {
            along,
            limit: 4,
            ...(before === undefined ? {} : { before }),
          });
          found.unshift(...(page?.entries ?? []).map((entry) => entry.id));
          if (page?.hasEarlier !== true) return found;
        }
      }
      async function walkForward(along: EntryRange["along"], from: string): Promise<string[]> {
        const found: string[] = [];
        for (let after = from; ; after = found.at(-1) as string) {
          const page = await store.sessions.page(alice, "s", { along, limit: 4, after });
          found.push(...(page?.entries ?? []).map((entry) => entry.id));
          if (page?.hasLater !== true) return found;
        }
      }
    },
  },
  {
    id: "ST11",
    title: "a fork has the path and its labels, and the two sessions are independent",
    async run({ store }) {
      await create(store, alice, "s", { label: "source", model: "x/y" });
      await append(store, alice, "s", "a", "b", "c");
      await store.sessions.append(alice, "s", [{ draft: { type: "label", targetId: "a", label: "start" } }]);
      await store.sessions.patch(alice, "s", { model: "z/z" });
      const fork = await store.sessions.fork(alice, "s", "b", {
        key: "agent:main:session:f",
        sessionId: "f",
        cwd: "/w",
      });
      assert.equal(fork.leafId, "b");
      assert.deepEqual(fork.meta, {});
      await append(store, alice, "f", "d");
      await append(store, alice, "s", "e");
      assert.deepEqual((await store.sessions.context(alice, "f"))?.entryIds, ["a", "b", "d"]);
      assert.deepEqual((await store.sessions.context(alice, "s"))?.entryIds, ["a", "b", "c", "e"]);
      assert.ok(
        (await allEntries(store, alice, "f")).some(
          (entry) => entry.type === "label" && entry.label === "start",
        ),
      );
      await refused("not_found", () =>
        store.sessions.fork(alice, "s", "nowhere", { key: "agent:main:main", cwd: "/w" }),
      );
      await refused("conflict", () =>
        store.sessions.fork(alice, "s", "b", { key: "agent:main:session:f", cwd: "/w" }),
      );
      const empty = await store.sessions.fork(alice, "s", null, {
        key: "agent:main:session:n",
        sessionId: "n",
        cwd: "/w",
      });
      assert.equal(empty.leafId, null);
    },
  },
  {
    id: "ST16",
    title: "a write with an outdated fence is fenced, and nothing is written",
    async run({ store }) {
      await create(store, alice, "s");
      const item = (id: string) => [{ draft: said(id), id }];
      await store.sessions.append(alice, "s", item("a"), { fence: () => true });
      await refused("fenced", () => store.sessions.append(alice, "s", item("b"), { fence: () => false }));
      assert.deepEqual(await ids(store, alice, "s"), ["a"]);
    },
  },
  {
    id: "RUN20",
    title: "an empty append checks the fence like any other, and returns the current leaf",
    async run({ store }) {
      await create(store, alice, "s");
      await append(store, alice, "s", "a");
      let isIn = 0;
      const outside: number[] = [];
      const fence = () => {
        isIn += 1;
        return true;
      };
      const nothing = store.sessions.append(alice, "s", [], { fence });
      const written = append(store, alice, "s", "b").then(() => outside.push(isIn));
      const { entries, leafId } = await nothing;
      assert.deepEqual([entries, leafId], [[], "a"]);
      await written;
      assert.deepEqual(outside, [1]);
      await refused("fenced", () => store.sessions.append(alice, "s", [], { fence: () => false }));
      assert.deepEqual(await ids(store, alice, "s"), ["a", "b"]);
      await refused("not_found", () => store.sessions.append(alice, "nowhere", [], { fence }));
      assert.equal(isIn, 1);
    },
  },
  {
    id: "ST21",
    title: "concurrent appends form one chain and lose nothing",
    async run({ store }) {
      await create(store, alice, "s");
      const names = Array.from({ length: 40 }, (_, index) => `e${index}`);
      await Promise.all(names.map((name) => append(store, alice, "s", name)));
      const entries = await allEntries(store, alice, "s");
      assert.deepEqual(entries.map((entry) => entry.id).toSorted(), names.toSorted());
      for (const [index, entry] of entries.entries()) {
        assert.equal(entry.parentId, index === 0 ? null : entries[index - 1]?.id);
      }
    },
  },
  {
    id: "ST22",
    title: "written entries are read back unchanged",
    async run({ store }) {
      await create(store, alice, "s");
      const text = 'line\nbreak \u2028 \u0000 \u001b[2J 世界 😀 "quoted" \\ </script>';
      const data = { nested: [null, 1.5, -0.1, 1e21, { "__proto__ ": "x", "": "" }], text };
      const drafts: EntryDraft[] = [
        { ...said(text), future: { kept: true } } as unknown as EntryDraft,
        { type: "custom", customType: "x", data },
        {
          type: "custom_message",
          customType: "x",
          content: [{ type: "text", text }],
          display: false,
          details: data,
        },
      ];
      const { entries } = await store.sessions.append(
        alice,
        "s",
        drafts.map((draft) => ({ draft })),
      );
      assert.deepEqual(await allEntries(store, alice, "s"), entries);
      assert.deepEqual(
        entries.map((entry) => Reflect.get(entry, "future") ?? null),
        [{ kept: true }, null, null],
      );
      for (const [index, draft] of drafts.entries()) {
        assert.deepEqual({ ...entries[index], ...JSON.parse(JSON.stringify(draft)) }, entries[index]);
      }
    },
  },
];
