import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SessionTree } from "../core/tree.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { HistoryRange } from "./history.ts";
import { historyOf } from "./history.ts";
import { readHistory } from "./history-range.ts";

/** The kind of each entry: shown, hidden, or bookkeeping. */
const parts = fc.array(fc.constantFrom("said", "hidden", "label", "model", "back"), { maxLength: 40 });

function treeOf(kinds: readonly string[]): SessionTree {
  let count = 0;
  const tree = SessionTree.create({ cwd: "/w", id: "s" }, { newId: () => `e${count++}` });
  for (const kind of kinds) {
    const first = tree.path()[0];
    if (kind === "said") tree.append({ type: "message", message: { role: "user", content: "x" } });
    else if (kind === "hidden")
      tree.append({ type: "custom_message", customType: "c", content: "y", display: false });
    else if (kind === "model") tree.append({ type: "model_change", provider: "p", modelId: "m" });
    else if (first !== undefined && kind === "label")
      tree.append({ type: "label", targetId: first.id, label: "z" });
    else if (first !== undefined) tree.branch(first.id);
  }
  return tree;
}

describe("history pages", () => {
  test("a page read from a store equals the page of the tree", async () => {
    await fc.assert(
      fc.asyncProperty(
        parts,
        fc.nat(45),
        fc.nat(45),
        fc.integer({ min: 1, max: 9 }),
        async (kinds, a, b, limit) => {
          const tree = treeOf(kinds);
          const store = createMemoryStore();
          const { key } = await store.sessions.adopt(
            {},
            { key: "agent:main:session:s", sessionId: "s", cwd: "/w" },
            tree,
          );
          const path = tree.path();
          const ranges: HistoryRange[] = [
            { limit },
            ...(path[a] === undefined
              ? []
              : [
                  { limit, before: path[a].id },
                  { limit, after: path[a].id },
                ]),
            ...(path[a] === undefined || path[b] === undefined
              ? []
              : [{ limit, after: path[a].id, before: path[b].id }]),
          ];
          for (const range of ranges) {
            const page = await readHistory(store, {}, { key, sessionId: "s", userId: null }, range);
            expect(page).toEqual({ ...historyOf(tree, range), sessionKey: key });
          }
        },
      ),
    );
  });

  test("a page of a long session reads a few pages, not the whole session", async () => {
    const store = createMemoryStore();
    const names = { key: "agent:main:session:s", sessionId: "s", userId: null };
    await store.sessions.adopt(
      {},
      { ...names, cwd: "/w" },
      treeOf(Array.from({ length: 3000 }, () => "said")),
    );
    let read = 0;
    const counting = new Proxy(store.sessions, {
      get: (target, name) =>
        name === "page"
          ? (...args: Parameters<typeof target.page>) => {
              read += args[2].limit;
              return target.page(...args);
            }
          : Reflect.get(target, name),
    });
    const page = await readHistory({ sessions: counting }, {}, names, { limit: 20, before: "e1500" });
    expect(page.messages).toHaveLength(20);
    expect(read).toBeLessThan(1000);
  });

  test("missing IDs and sessions are not found", async () => {
    const store = createMemoryStore();
    const names = { key: "agent:main:session:s", sessionId: "s", userId: null };
    const asked = (range: HistoryRange) => readHistory(store, {}, names, range);
    await expect(asked({})).rejects.toMatchObject({ code: "not_found" });
    await store.sessions.adopt({}, { ...names, cwd: "/w" }, treeOf(["said"]));
    await expect(asked({ before: "nope" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("[RDT6] a branch that moves while it is read is a conflict, not an unknown ID", async () => {
    const store = createMemoryStore();
    const names = { key: "agent:main:session:s", sessionId: "s", userId: null };
    await store.sessions.adopt({}, { ...names, cwd: "/w" }, treeOf(Array(400).fill("said")));
    const moving = new Proxy(store.sessions, {
      get: (target, name) =>
        name === "page"
          ? async (...args: Parameters<typeof target.page>) => {
              const page = await target.page(...args);
              await target.branch({}, "s", "e1");
              return page;
            }
          : Reflect.get(target, name),
    });
    const asked = (range: HistoryRange) => readHistory({ sessions: moving }, {}, names, range);
    await expect(asked({ limit: 300 })).rejects.toMatchObject({ code: "conflict" });
    await expect(asked({ before: "e200" })).rejects.toMatchObject({ code: "not_found" });
  });
});
