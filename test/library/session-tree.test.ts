import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EntryDraft } from "../../src/index.ts";
import { parseSession, SessionTree } from "../../src/index.ts";
import { draft } from "../support/arbitraries.ts";
import type { Line } from "../support/naive-session.ts";
import { naiveContext, naiveLeaf, naivePath } from "../support/naive-session.ts";
import { assistantMessage, sessionText, userLine } from "../support/session-text.ts";

const user = (content: string): EntryDraft => ({
  type: "message",
  message: { role: "user", content, timestamp: 1 },
});

function conversation(): { tree: SessionTree; ids: string[] } {
  let time = Date.UTC(2026, 0, 1);
  let count = 0;
  const tree = SessionTree.create(
    { cwd: "/w", id: "s" },
    { clock: { now: () => time++ }, newId: () => `e${++count}` },
  );
  tree.append(user("one"));
  tree.append({ type: "message", message: assistantMessage("two") });
  tree.append(user("three"));
  return { tree, ids: ["e1", "e2", "e3"] };
}

function reload(tree: SessionTree): SessionTree {
  return SessionTree.from(parseSession(tree.encode()));
}

function linesOf(tree: SessionTree): Line[] {
  const [, ...lines] = tree.encode().trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Line);
}

/** One operation on a tree. `at` selects an entry. */
const operation = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("append" as const), draft }) },
  fc.record({ do: fc.constant("branch" as const), at: fc.nat() }),
  fc.record({ do: fc.constant("reset" as const) }),
  fc.record({ do: fc.constant("summary" as const), at: fc.nat() }),
  fc.record({ do: fc.constant("label" as const), at: fc.nat(), label: fc.constantFrom("x", "y", "") }),
  fc.record({ do: fc.constant("compact" as const), at: fc.nat() }),
  fc.record({ do: fc.constant("fork" as const), at: fc.nat() }),
  fc.record({ do: fc.constant("reload" as const) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Runs the operation, checks the parent of a new entry, and returns the tree to continue with. */
function perform(tree: SessionTree, step: Operation): SessionTree {
  const before = linesOf(tree);
  const next = act(tree, step);
  const [added, ...more] = linesOf(tree).slice(before.length);
  expect(more).toEqual([]);
  const target = "at" in step ? (before[step.at % before.length]?.id ?? null) : null;
  const moves = step.do === "branch" || step.do === "summary" || step.do === "reset";
  if (added !== undefined) expect(added.parentId).toBe(moves ? target : (before.at(-1)?.id ?? null));
  return next;
}

function act(tree: SessionTree, step: Operation): SessionTree {
  const ids = linesOf(tree).map((line) => line.id);
  const pick = (at: number) => ids[at % ids.length] ?? null;
  switch (step.do) {
    case "append":
      tree.append(step.draft as EntryDraft);
      return tree;
    case "branch":
      tree.branch(pick(step.at));
      return tree;
    case "reset":
      tree.branch(null);
      return tree;
    case "summary":
      tree.branchWithSummary(pick(step.at), "what was there");
      return tree;
    case "label": {
      const targetId = pick(step.at);
      if (targetId !== null) tree.append({ type: "label", targetId, label: step.label });
      return tree;
    }
    case "compact": {
      const path = tree.path();
      const firstKeptEntryId = path[step.at % Math.max(1, path.length)]?.id ?? null;
      tree.append({ type: "compaction", summary: "S", firstKeptEntryId, tokensBefore: 1 });
      return tree;
    }
    case "fork":
      return tree.fork(pick(step.at));
    case "reload":
      return reload(tree);
  }
}

describe("the tree", () => {
  test("adds new entries, and skips known ones", () => {
    const tree = SessionTree.create({ cwd: "/w" });
    for (const id of ["a", "b"]) tree.append(user(id), { id });
    const whole = reload(tree);
    tree.append(user("c"), { id: "c" });
    whole.takeIn(tree.entries(1));
    expect([...whole.entries()].map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(whole.children("a").map(({ id }) => id)).toEqual(["b"]);
    expect(whole.tipId).toBe("c");
  });

  test("[TRE1] [TRE3] [TRE9] [TRE18] [CTX1] [CTX2] any sequence of operations agrees with the naive model, before and after a reload", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 25 }), (steps) => {
        let tree = SessionTree.create({ cwd: "/w" });
        for (const step of steps) tree = perform(tree, step);
        const lines = linesOf(tree);
        const tip = lines.at(-1)?.id ?? null;
        for (const each of [tree, reload(tree)]) {
          expect(each.tipId).toBe(tip);
          expect(each.leafId).toBe(naiveLeaf(lines, tip));
          expect(each.path().map((entry) => entry.id)).toEqual(naivePath(lines, tip).map((line) => line.id));
          expect(each.context()).toMatchObject(naiveContext(lines, tip));
          expect(each.diagnostics).toEqual([]);
          for (const line of lines) {
            const children = lines.filter((other) => other.parentId === line.id).map((other) => other.id);
            expect(each.children(line.id).map((entry) => entry.id)).toEqual(children);
            const labels = lines.filter((other) => other.type === "label" && other.targetId === line.id);
            expect(each.labels.get(line.id)).toBe(labels.at(-1)?.label || undefined);
          }
          const roots = lines.filter((line) => line.parentId === null).map((line) => line.id);
          expect(each.children(null).map((entry) => entry.id)).toEqual(roots);
          expect(each.name).toBe(lines.findLast((line) => line.type === "session_info")?.name ?? null);
        }
      }),
    );
  });

  test("[TRE2] [TRE3] moving the leaf is recorded and survives a reload", () => {
    const { tree, ids } = conversation();
    tree.branch(ids[0] as string);
    tree.append({ type: "label", targetId: "e3", label: "left" });
    expect(tree.entry("e4")).toMatchObject({ type: "custom", customType: "skein.leaf", parentId: "e1" });
    for (const each of [tree, reload(tree)]) {
      expect(each.leafId).toBe("e1");
      expect(each.tipId).toBe("e5");
      expect(each.context().messages).toHaveLength(1);
    }
  });

  test("[TRE2] moving to the current leaf writes nothing", () => {
    const { tree } = conversation();
    tree.branch("e3");
    tree.append({ type: "label", targetId: "e3", label: "x" });
    tree.branch("e3");
    expect(tree.size).toBe(4);
  });

  test("[ST7] an append on another leaf than expected is a conflict", () => {
    const { tree } = conversation();
    expect(() => tree.append(user("four"), { expectedLeafId: "e2" })).toThrow(
      expect.objectContaining({ code: "conflict" }),
    );
    expect(() => tree.append(user("four"), { expectedLeafId: null })).toThrow(
      expect.objectContaining({ code: "conflict" }),
    );
    expect(tree.size).toBe(3);
    tree.branch("e2");
    expect(() => tree.append(user("four"), { expectedLeafId: tree.tipId as string })).toThrow(
      expect.objectContaining({ code: "conflict" }),
    );
    tree.append(user("four"), { expectedLeafId: "e2" });
    expect(tree.size).toBe(5);
  });

  test("[ST6] the same ID again", () => {
    const { tree } = conversation();
    const first = tree.append(
      { type: "message", message: { role: "user", content: "four" } },
      { id: "mine" },
    );
    expect(tree.append({ type: "message", message: { role: "user", content: "four" } }, { id: "mine" })).toBe(
      first,
    );
    expect(tree.size).toBe(4);
    expect(() => tree.append(user("other"), { id: "mine" })).toThrow(
      expect.objectContaining({ code: "conflict" }),
    );
    expect(tree.size).toBe(4);
  });

  test("[SFL14] a branch with a summary names the leaf that was left", () => {
    const { tree } = conversation();
    const entry = tree.branchWithSummary("e1", "tried two and three", { files: [] });
    expect(entry).toMatchObject({
      type: "branch_summary",
      parentId: "e1",
      fromId: "e3",
      details: { files: [] },
    });
    expect(
      reload(tree)
        .context()
        .messages.map((message) => message.role),
    ).toEqual(["user", "branchSummary"]);
    tree.branch(null);
    expect(tree.branchWithSummary("e3", "nothing yet")).toMatchObject({ fromId: "root" });
  });

  test("[TRE7] a reset to before the root", () => {
    const { tree } = conversation();
    tree.branch(null);
    for (const each of [tree, reload(tree)]) {
      expect(each.leafId).toBeNull();
      expect(each.context()).toMatchObject({ messages: [], model: null });
      each.append(user("fresh"), { expectedLeafId: null });
      expect(each.context().messages).toHaveLength(1);
      expect(each.children(null)).toHaveLength(2);
    }
  });

  test("[ST11] a fork has its path, IDs, live labels and context; the source is unchanged", () => {
    const { tree } = conversation();
    tree.append({ type: "label", targetId: "e1", label: "on the path, cleared later" });
    tree.append({ type: "compaction", summary: "S", firstKeptEntryId: "e2", tokensBefore: 5 });
    const forkAt = tree.append(user("five")).id;
    tree.append({ type: "label", targetId: "e1" });
    tree.append({ type: "label", targetId: "e2", label: "set behind the fork" });
    tree.append({ type: "session_info", name: "named behind the fork" });
    const before = tree.encode();
    const fork = tree.fork(forkAt, { id: "forked", parentSession: "/w/s.jsonl" });
    expect(tree.encode()).toBe(before);
    for (const each of [fork, reload(fork)]) {
      expect(each.header).toMatchObject({ id: "forked", parentSession: "/w/s.jsonl", cwd: "/w" });
      expect(each.name).toBe("named behind the fork");
      expect(each.leafId).toBe(forkAt);
      expect(Object.fromEntries(each.labels)).toEqual({ e2: "set behind the fork" });
      expect(each.context().messages).toEqual(tree.context(forkAt).messages);
      expect(each.diagnostics).toEqual([]);
    }
    expect(fork.path().slice(0, 6)).toEqual(tree.path(forkAt));
  });

  test("[ST11] a fork over a bridged parent stays complete", () => {
    const tree = SessionTree.from(
      parseSession(sessionText(userLine("a", null), "{torn", userLine("c", "b"), userLine("d", "c"))),
    );
    const fork = reload(tree.fork("d"));
    expect(fork.path().map((entry) => entry.id)).toEqual(["a", "c", "d"]);
    expect(fork.diagnostics).toEqual([]);
  });

  test("[ST11] a fork of a shortened working set, and of a newer version, is a clean session of version 3", () => {
    const cut = '{"type":"session","version":3,"id":"s","skein":{"base":"z"}}\n';
    const newer = '{"type":"session","version":4,"id":"s"}\n';
    for (const head of [cut, newer]) {
      const source = SessionTree.from(
        parseSession(`${head}${JSON.stringify(userLine("a", head === cut ? "z" : null))}\n`),
      );
      const fork = reload(source.fork());
      expect(fork.diagnostics).toEqual([]);
      expect(fork.readOnly).toBe(false);
      expect(fork.context().messages).toEqual(source.context().messages);
    }
  });

  test("[TRE18] an ID that entries name as a lost parent cannot be given to a new one", () => {
    const tree = SessionTree.from(parseSession(sessionText(userLine("a", null), userLine("c", "x"))));
    expect(() => tree.append(user("x"), { id: "x" })).toThrow(expect.objectContaining({ code: "conflict" }));
    expect(reload(tree).diagnostics).toEqual([]);
  });

  test("[ST6] an entry with an invalid time can be retried too", () => {
    const odd = { ...userLine("a", null), timestamp: "yesterday" };
    const tree = SessionTree.from(parseSession(sessionText(odd)));
    expect(tree.append(user("a"), { id: "a" }).id).toBe("a");
    expect(() => tree.append(user("b"), { id: "a" })).toThrow(expect.objectContaining({ code: "conflict" }));
  });

  test("[ENT15] a refused draft changes nothing", () => {
    const { tree } = conversation();
    const before = tree.encode();
    for (const draft of [
      null,
      {},
      { type: "message", message: { role: "assistant", content: [] } },
      { type: "label" },
    ]) {
      expect(() => tree.append(draft as EntryDraft)).toThrow(
        expect.objectContaining({ code: "invalid_entry" }),
      );
    }
    expect(tree.encode()).toBe(before);
    expect(tree.leafId).toBe("e3");
  });

  test("[TRE3] twenty thousand labels, each on the leaf it expects, take no longer at the end than at the start", () => {
    const { tree } = conversation();
    const label = (): EntryDraft => ({ type: "label", targetId: "e1", label: "x" });
    for (let index = 0; index < 20_000; index++) tree.append(label(), { expectedLeafId: "e3" });
    expect(tree.leafId).toBe("e3");
  });

  test("unknown targets are refused and change nothing", () => {
    const { tree } = conversation();
    const refused: [() => unknown, string][] = [
      [() => tree.branch("nope"), "not_found"],
      [() => tree.branchWithSummary("nope", "x"), "not_found"],
      [() => tree.append({ type: "label", targetId: "nope", label: "x" }), "not_found"],
      [() => tree.fork("nope"), "not_found"],
      [() => tree.path("nope"), "not_found"],
      [
        () => tree.append({ type: "compaction", summary: "S", firstKeptEntryId: "nope", tokensBefore: 1 }),
        "not_found",
      ],
    ];
    for (const [act, code] of refused) expect(act).toThrow(expect.objectContaining({ code }));
    tree.branch("e1");
    const off: EntryDraft = { type: "compaction", summary: "S", firstKeptEntryId: "e3", tokensBefore: 1 };
    expect(() => tree.append(off)).toThrow("e3 is not on the branch");
    expect(tree.size).toBe(4);
  });

  test("[TRE15] order is the position in the file, not the time", () => {
    const late = { ...userLine("late", "a"), timestamp: "2020-01-01T00:00:00.000Z" };
    const tree = SessionTree.from(parseSession(sessionText(userLine("a", null), userLine("b", "a"), late)));
    expect(tree.children("a").map((entry) => entry.id)).toEqual(["b", "late"]);
    expect(tree.tipId).toBe("late");
  });

  test("[TRE11] the damage must be right before it, and a repeated entry is the previous one", () => {
    const far = SessionTree.from(
      parseSession(sessionText(userLine("a", null), "{torn", userLine("b", "a"), userLine("d", "lost"))),
    );
    expect(far.parentOf("d")).toBeNull();
    const text = sessionText(
      userLine("a", null),
      userLine("b", "a"),
      userLine("c", "b"),
      userLine("b", "a"),
      "{torn",
      userLine("d", "lost"),
    );
    expect(SessionTree.from(parseSession(text)).parentOf("d")?.id).toBe("b");
  });

  test("[TRE13] a cycle is cut at its first entry in the file, also if another entry leads into it", () => {
    const tree = SessionTree.from(
      parseSession(sessionText(userLine("x", "b"), userLine("a", "b"), userLine("b", "a"))),
    );
    expect(tree.parentOf("a")).toBeNull();
    expect(tree.path("x").map((entry) => entry.id)).toEqual(["a", "b", "x"]);
  });

  test("[TRE17] a leaf line moves the tip, also to before the root, and is not part of a fork", () => {
    const leaf = (targetId: string | null) => ({
      type: "leaf",
      id: "l",
      parentId: "b",
      timestamp: "t",
      targetId,
    });
    const tree = (targetId: string | null) =>
      SessionTree.from(parseSession(sessionText(userLine("a", null), userLine("b", "a"), leaf(targetId))));
    expect(tree(null).tipId).toBeNull();
    expect(tree(null).context().messages).toEqual([]);
    expect(tree("a").tipId).toBe("a");
    const fork = reload(tree("a").fork("l"));
    expect(fork.context().messages).toEqual(tree("a").context("l").messages);
  });

  test("[TRE1] children are known before and after an append", () => {
    const { tree } = conversation();
    expect(tree.children("e3")).toEqual([]);
    tree.append(user("four"));
    expect(tree.children("e3").map((entry) => entry.id)).toEqual(["e4"]);
  });

  test("[TRE9] a name from a file is trimmed", () => {
    const info = { type: "session_info", id: "i", parentId: null, timestamp: "t", name: "  padded " };
    expect(SessionTree.from(parseSession(sessionText(info))).name).toBe("padded");
  });

  test("[ST6] a retry may omit the time that was omitted before", () => {
    const read = {
      ...userLine("a", null),
      timestamp: "2026-01-01T00:00:00Z",
      message: { role: "user", content: "a", timestamp: 5 },
    };
    const tree = SessionTree.from(parseSession(sessionText(read)));
    expect(tree.append({ type: "message", message: { role: "user", content: "a" } }, { id: "a" }).id).toBe(
      "a",
    );
  });

  test("[TRE17] a leaf line with a missing target is reported", () => {
    const leaf = { type: "leaf", id: "l", parentId: "a", timestamp: "t", targetId: "nope" };
    const tree = SessionTree.from(parseSession(sessionText(userLine("a", null), leaf)));
    expect(tree.tipId).toBe("l");
    expect(tree.diagnostics.map((each) => each.code)).toEqual(["unknown_leaf_target"]);
  });

  test("[ENT13] a newer version is not written", () => {
    const tree = SessionTree.from(parseSession('{"type":"session","version":4,"id":"n"}\n'));
    expect(() => tree.append(user("x"))).toThrow(expect.objectContaining({ code: "read_only" }));
    expect(() => tree.branch(null)).not.toThrow();
  });
});
