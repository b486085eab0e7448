import { expect, test } from "vitest";
import { drawTree } from "../src/cli/output/print-session.ts";
import { parseSession, SessionTree } from "../src/index.ts";
import { treeView } from "../src/sessions/tree-view.ts";
import { repetitions } from "./support/repetitions.ts";
import { header, userLine } from "./support/session-text.ts";

const { branchEntries: count } = repetitions;

/** Builds the text of a session in which entry i is attached to entry parent(i). */
function grown(length: number, parent: (index: number) => number | null): string {
  const lines = [JSON.stringify(header)];
  for (let index = 0; index < length; index++) {
    const above = parent(index);
    lines.push(JSON.stringify(userLine(`e${index}`, above === null ? null : `e${above}`)));
  }
  return lines.join("\n");
}

test(`${count} entries in a row: context, fork, tree and reload without a stack problem`, () => {
  const tree = SessionTree.from(parseSession(grown(count, (index) => (index === 0 ? null : index - 1))));
  expect(tree.context().messages).toHaveLength(count);
  expect(tree.fork(tree.tipId).size).toBe(count);
  expect(tree.children("e1")).toHaveLength(1);
  expect(JSON.stringify(treeView(tree)).length).toBeGreaterThan(count);
});

test(`reads ${count} entries after a compaction`, () => {
  const compaction = {
    ...userLine("c", null),
    type: "compaction",
    summary: "S",
    firstKeptEntryId: "c",
    tokensBefore: 1,
  };
  const text = grown(count, (index) => (index === 0 ? null : index - 1));
  const withCompaction = text
    .replace("\n", `\n${JSON.stringify(compaction)}\n`)
    .replace('"id":"e0","parentId":null', '"id":"e0","parentId":"c"');
  expect(SessionTree.from(parseSession(withCompaction)).context().messages).toHaveLength(count + 1);
});

test(`draws and reads ${count} children of one node`, () => {
  const tree = SessionTree.from(parseSession(grown(count + 1, (index) => (index === 0 ? null : 0))));
  expect(tree.children("e0")).toHaveLength(count);
  expect(tree.context().messages).toHaveLength(2);
  let lines = 0;
  for (const _ of drawTree(treeView(tree).entries)) lines += 1;
  expect(lines).toBe(count + 1);
});

test(`a cycle of ${count} entries is cut once`, () => {
  const tree = SessionTree.from(parseSession(grown(count, (index) => (index === 0 ? count - 1 : index - 1))));
  expect(tree.context().messages).toHaveLength(count);
  expect(tree.diagnostics.map((each) => each.code)).toEqual(["cycle_cut"]);
});
