import { describe, expect, test } from "vitest";
import { buildTree, compareBranches, findRows, tipOf } from "../../console/src/tree/tree-model.ts";

const timestamp = "2026-11-17T12:00:00.000Z";
const entry = (id: string, parentId: string | null, bookkeeping = false) => ({
  id,
  parentId,
  type: bookkeeping ? "label" : "message",
  timestamp,
  active: false,
  bookkeeping,
  preview: id,
});
const none: ReadonlySet<string> = new Set();

/** a → b → (c → d | e → f), with a label between b and e. */
const small = [
  entry("a", null),
  entry("b", "a"),
  entry("c", "b"),
  entry("d", "c"),
  entry("label", "b", true),
  entry("e", "label"),
  entry("f", "e"),
];
const nodeOf = (tree: ReturnType<typeof buildTree>, id: string) => {
  const node = tree.nodes.get(id);
  if (node === undefined) throw new Error(`There is no ${id}.`);
  return node;
};

describe("the tree of a session", () => {
  test("skips bookkeeping, so that entries after it are siblings", () => {
    const tree = buildTree(small, "f");
    expect(nodeOf(tree, "b").children.map((child) => child.entry.id)).toEqual(["c", "e"]);
    expect(nodeOf(tree, "e").position).toBe(2);
    expect(tree.tips.map((tip) => tip.entry.id)).toEqual(["d", "f"]);
  });

  test("shows the other branches of a fork indented, before the one that goes on", () => {
    const rows = findRows(buildTree(small, "f"), none, none);
    expect(rows.map(({ id, depth }) => `${id}${depth}`)).toEqual(["a0", "b0", "c1", "d1", "e0", "f0"]);
  });

  test("ends the active branch at the leaf, also where an older branch went on", () => {
    const tree = buildTree(small, "b");
    expect(tipOf(nodeOf(tree, "a")).entry.id).toBe("b");
    expect(tipOf(nodeOf(tree, "e")).entry.id).toBe("f");
  });

  test("compares two branches from the last entry that they share", () => {
    const tree = buildTree(small, "f");
    const { ancestor, left, right } = compareBranches(nodeOf(tree, "d"), nodeOf(tree, "f"));
    expect(ancestor?.entry.id).toBe("b");
    expect([left, right].map((side) => side.map((node) => node.entry.id))).toEqual([
      ["c", "d"],
      ["e", "f"],
    ]);
  });

  test("folds a long stretch, except for what a link points at, and shows it when it is opened", () => {
    const long = Array.from({ length: 20_000 }, (_, index) =>
      entry(`n${index}`, index === 0 ? null : `n${index - 1}`),
    );
    const tree = buildTree(long, "n19999");
    expect(findRows(tree, none, none).map(({ id }) => id)).toEqual(["n0", "stretch n1", "n19999"]);
    expect(findRows(tree, none, new Set(["n500"]))).toHaveLength(5);
    expect(findRows(tree, new Set(["stretch n1"]), none)).toHaveLength(20_001);
  });
});
