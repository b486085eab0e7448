import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { damagedLines } from "../../test/support/arbitraries.ts";
import type { Entry } from "../core/entries.ts";
import { parseSession } from "../core/parse-session.ts";
import { atOnce } from "../core/slices.ts";
import { SessionTree } from "../core/tree.ts";
import { importClaudeCode as importing } from "./import-claude-code.ts";

const importClaudeCode = (...given: Parameters<typeof importing>) => atOnce(importing(...given));

type Line = Record<string, unknown>;

const at = (second: number) => `2026-03-04T09:00:${String(second).padStart(2, "0")}.000Z`;
const user = (uuid: string, parentUuid: string | null, content: unknown, more: Line = {}): Line => ({
  type: "user",
  uuid,
  parentUuid,
  sessionId: "s",
  timestamp: at(1),
  message: { role: "user", content },
  ...more,
});
const answer = (uuid: string, parentUuid: string, id: string, block: Line, more: Line = {}): Line => ({
  type: "assistant",
  uuid,
  parentUuid,
  sessionId: "s",
  timestamp: at(2),
  message: { role: "assistant", id, model: "claude-x", content: [block] },
  ...more,
});
const call = (id: string) => ({ type: "tool_use", id, name: "Bash", input: { command: id } });
const result = (uuid: string, parentUuid: string, id: string) =>
  user(uuid, parentUuid, [{ type: "tool_result", tool_use_id: id, content: `result of ${id}` }]);
const boundary = (uuid: string, more: Line): Line => ({
  type: "system",
  subtype: "compact_boundary",
  uuid,
  parentUuid: null,
  timestamp: at(3),
  content: "Conversation compacted",
  ...more,
});
const summary = (uuid: string, parentUuid: string) =>
  user(uuid, parentUuid, "in short", { isCompactSummary: true });

const importLines = (...lines: Line[]) =>
  importClaudeCode(lines.map((line) => JSON.stringify(line)).join("\n"));
const path = (tree: SessionTree) => tree.path().map(({ id }) => id);
const shown = (tree: SessionTree) => tree.context().entryIds;

describe("answers of several lines", () => {
  const begin = [
    user("u", null, "go"),
    answer("a1", "u", "m", { type: "text", text: "both" }),
    answer("a2", "a1", "m", call("A")),
    answer("a3", "a2", "m", call("B")),
  ];

  test.each([
    ["in the order of the calls", [result("rA", "a2", "A"), result("rB", "a3", "B")], ["rA", "rB"], "rB"],
    ["in reverse order", [result("rB", "a3", "B"), result("rA", "a2", "A")], ["rB", "rA"], "rA"],
    ["attached to the first", [result("rA", "a2", "A"), result("rB", "a3", "B")], ["rA", "rB"], "rA"],
  ])("results %s follow one another", (_, results, order, last) => {
    const next = answer("n", last, "m2", { type: "text", text: "done" });
    const { tree } = importLines(...begin, ...results, next);
    expect(path(tree)).toEqual(["u", "a1", ...order, "n"]);
  });

  test("a result that comes before the next call of its answer does not split it", () => {
    const { tree } = importLines(
      ...begin.slice(0, 3),
      result("rA", "a2", "A"),
      answer("a3", "rA", "m", call("B")),
      result("rB", "a3", "B"),
    );
    expect(path(tree)).toEqual(["u", "a1", "rA", "rB"]);
    const entry = tree.entry("a1");
    const content = entry?.type === "message" ? entry.message : null;
    expect(content).toMatchObject({
      stopReason: "toolUse",
      content: [{ text: "both" }, { id: "A" }, { id: "B" }],
    });
  });

  test("[INT3] text after a call does not end the turn", () => {
    const { tree } = importLines(
      ...begin.slice(0, 3),
      answer("a3", "a2", "m", { type: "text", text: "wait" }),
    );
    expect(tree.entry("a1")).toMatchObject({ message: { stopReason: "toolUse" } });
  });

  test("a second result for the same call starts a branch", () => {
    const { tree } = importLines(...begin.slice(0, 3), result("rA", "a2", "A"), result("again", "a2", "A"));
    expect(tree.children("a1").map(({ id }) => id)).toEqual(["rA", "again"]);
  });

  test("progress lines are skipped, and attachments stay in the chain", () => {
    const { tree, notKept } = importLines(
      ...begin.slice(0, 3),
      { type: "progress", uuid: "p", parentUuid: "a2", timestamp: at(2), data: {} },
      { type: "attachment", uuid: "t", parentUuid: "p", timestamp: at(2), attachment: { type: "file" } },
      result("rA", "a2", "A"),
      user("next", "rA", "go on"),
    );
    expect(path(tree)).toEqual(["u", "a1", "t", "rA", "next"]);
    expect(notKept.map(({ what }) => what)).toEqual(
      expect.arrayContaining([expect.stringContaining('"progress"'), expect.stringContaining('"file"')]),
    );
  });

  test("[INT3] the usage and the end of an answer are those of its last line", () => {
    const told = (output: number, stop: string | null) => ({
      message: {
        role: "assistant",
        id: "m",
        model: "claude-x",
        content: [{ type: "text", text: `${output}` }],
        stop_reason: stop,
        usage: {
          input_tokens: 3,
          output_tokens: output,
          cache_read_input_tokens: 5,
          cache_creation_input_tokens: 7,
        },
      },
    });
    const { tree } = importLines(
      user("u", null, "go"),
      answer("a1", "u", "m", {}, told(1, null)),
      answer("a2", "a1", "m", {}, told(9, "max_tokens")),
    );
    const entry = tree.entry("a1") as Extract<Entry, { type: "message" }>;
    expect(entry.message).toMatchObject({
      model: "claude-x",
      stopReason: "length",
      usage: { input: 3, output: 9, cacheRead: 5, cacheWrite: 7, totalTokens: 24 },
    });
  });
});

describe("compactions", () => {
  const before = [
    user("u1", null, "first"),
    answer("a1", "u1", "m1", { type: "text", text: "one" }),
    user("u2", "a1", "second"),
    answer("a2", "u2", "m2", { type: "text", text: "two" }),
  ];

  test("one that keeps nothing", () => {
    const { tree } = importLines(
      ...before,
      boundary("b", { logicalParentUuid: "a2", compactMetadata: { trigger: "manual", preTokens: 900 } }),
      summary("s", "b"),
      user("u3", "s", "third"),
    );
    expect(path(tree)).toEqual(["u1", "a1", "u2", "a2", "b", "u3"]);
    expect(shown(tree)).toEqual(["b", "u3"]);
    expect(tree.entry("b")).toMatchObject({ summary: "in short", tokensBefore: 900 });
  });

  test.each([
    ["by head and tail", { preservedSegment: { headUuid: "u2", anchorUuid: "s", tailUuid: "a2" } }],
    ["by name", { preservedMessages: { anchorUuid: "s", uuids: ["u2", "a2"] } }],
  ])("one that keeps the end, recorded %s", (_, compactMetadata) => {
    for (const parent of ["s", "a2"]) {
      const { tree, notKept } = importLines(
        ...before,
        boundary("b", { logicalParentUuid: "a2", compactMetadata }),
        summary("s", "b"),
        user("u3", parent, "third"),
      );
      expect(path(tree)).toEqual(["u1", "a1", "u2", "a2", "b", "u3"]);
      expect(shown(tree)).toEqual(["b", "u2", "a2", "u3"]);
      expect(notKept).toEqual([]);
    }
  });

  test("children of its last entry are kept with it", () => {
    const { tree } = importLines(
      ...before,
      { type: "attachment", uuid: "t", parentUuid: "a2", timestamp: at(2), attachment: { type: "file" } },
      boundary("b", {
        logicalParentUuid: "t",
        compactMetadata: { preservedMessages: { uuids: ["u2", "a2"] } },
      }),
      summary("s", "b"),
      user("u3", "a2", "third"),
    );
    expect(path(tree)).toEqual(["u1", "a1", "u2", "a2", "t", "b", "u3"]);
    expect(shown(tree)).toEqual(["b", "u2", "a2", "u3"]);
  });

  test("the kept entries may follow it", () => {
    const { tree } = importLines(
      ...before.slice(0, 2),
      boundary("b", {
        logicalParentUuid: "a2",
        compactMetadata: { preservedMessages: { uuids: ["u2", "a2"] } },
      }),
      summary("s", "b"),
      user("u2", "s", "second"),
      answer("a2", "u2", "m2", { type: "text", text: "two" }),
    );
    expect(path(tree)).toEqual(["u1", "a1", "b", "u2", "a2"]);
    expect(shown(tree)).toEqual(["b", "u2", "a2"]);
  });

  test("[INT6] one that keeps the beginning is reported as not in the context", () => {
    const { tree, notKept } = importLines(
      ...before,
      boundary("b", {
        logicalParentUuid: "a2",
        compactMetadata: { preservedMessages: { uuids: ["u1", "a1"] } },
      }),
      summary("s", "b"),
      user("u3", "s", "third"),
    );
    expect(shown(tree)).toEqual(["b", "u3"]);
    expect(notKept).toEqual([
      {
        what: "Messages that a compaction kept in full are in the session but not in the context.",
        count: 1,
        example: "b",
      },
    ]);
  });

  test("one without its summary leaves the context complete", () => {
    const { tree, notKept } = importLines(
      ...before,
      boundary("b", { logicalParentUuid: "a2", compactMetadata: {} }),
      user("u3", "b", "third"),
    );
    expect(shown(tree)).toEqual(["u1", "a1", "u2", "a2", "u3"]);
    expect(notKept[0]?.what).toContain("A compaction has no summary");
  });
});

describe("the leaf of the session", () => {
  const lines = [
    user("u1", null, "first"),
    answer("a1", "u1", "m1", { type: "text", text: "one" }),
    user("u2", "u1", "another try"),
  ];

  test("is on the branch that was written last", () => {
    const { tree } = importLines(...lines);
    expect([tree.leafId, path(tree)]).toEqual(["u2", ["u1", "u2"]]);
  });

  test("the messages of a sub-agent are a branch with a label, wherever it is attached", () => {
    const side = { isSidechain: true, agentId: "g" };
    const { tree } = importLines(
      ...lines,
      user("s1", "a1", "for you", side),
      answer("s2", "s1", "m2", { type: "text", text: "done" }, side),
      user("s3", null, "and you", { isSidechain: true }),
    );
    expect([...tree.labels]).toEqual([
      ["s1", "sub-agent g"],
      ["s3", "sub-agent"],
    ]);
    expect(tree.leafId).toBe("u2");
  });

  test("a leaf named after the last message counts", () => {
    const { tree } = importLines(...lines, { type: "last-prompt", leafUuid: "a1", sessionId: "s" });
    expect(tree.leafId).toBe("a1");
    expect(SessionTree.from(parseSession(tree.encode())).leafId).toBe("a1");
  });
});

/** Lines of every kind, each with a unique word, attached to any earlier line. */
const wordy = fc
  .array(
    fc.tuple(fc.constantFrom("user", "text", "thinking", "call", "result", "progress", "meta"), fc.nat()),
    { minLength: 1, maxLength: 30 },
  )
  .map((picks) => {
    const lines: Line[] = [];
    const words: string[] = [];
    for (const [index, [kind, where]] of picks.entries()) {
      const [uuid, word] = [`n${index}`, `word${index}.`];
      const parent = index === 0 ? null : `n${where % index}`;
      const id = `m${Math.floor(index / 3)}`;
      if (kind === "user" || kind === "meta")
        lines.push(user(uuid, parent, word, { isMeta: kind === "meta" }));
      else if (kind === "text") lines.push(answer(uuid, parent as string, id, { type: "text", text: word }));
      else if (kind === "thinking")
        lines.push(answer(uuid, parent as string, id, { type: "thinking", thinking: word, signature: "s" }));
      else if (kind === "call")
        lines.push(answer(uuid, parent as string, id, { type: "tool_use", id: word, name: "x", input: {} }));
      else if (kind === "result")
        lines.push(
          user(uuid, parent, [
            { type: "tool_result", tool_use_id: `word${where % (index + 1)}.`, content: `of ${word}` },
          ]),
        );
      else lines.push({ type: "progress", uuid, parentUuid: parent, timestamp: at(1) });
      if (kind !== "progress" && kind !== "result") words.push(word);
      if (kind === "result") words.push(`of ${word}`);
    }
    return { lines, words };
  });

test("[INT3] [INT6] every message is imported once, wherever it was attached", () => {
  fc.assert(
    fc.property(wordy, ({ lines, words }) => {
      const { tree } = importLines(...lines);
      const said = Array.from(tree.entries(), saidIn).flat();
      expect(said.toSorted()).toEqual(words.toSorted());
    }),
  );
});

function saidIn(entry: Entry): string[] {
  if (entry.type === "custom_message") return [String(entry.content)];
  if (entry.type !== "message" || !("content" in entry.message)) return [];
  const { content } = entry.message;
  if (typeof content === "string") return [content];
  return content.map((block) =>
    block.type === "text"
      ? block.text
      : block.type === "thinking"
        ? block.thinking
        : "id" in block
          ? block.id
          : "",
  );
}

test("[NWC23] accepts lines damaged in any way", () => {
  const lines: Line[] = [
    user("u1", null, "first", { cwd: "/w", thinkingMetadata: { level: "high" } }),
    answer("a1", "u1", "m", { type: "thinking", thinking: "hm", signature: "s" }),
    answer("a2", "a1", "m", call("A"), { isApiErrorMessage: true }),
    result("r", "a2", "A"),
    {
      type: "attachment",
      uuid: "t",
      parentUuid: "r",
      attachment: { type: "queued_command", prompt: "more" },
    },
    boundary("b", {
      logicalParentUuid: "t",
      compactMetadata: { preservedSegment: { headUuid: "r", tailUuid: "t" } },
    }),
    summary("s", "b"),
    user("side", null, [{ type: "text", text: "x" }], { isSidechain: true, agentId: "g" }),
    user("u2", "s", [{ type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }]),
    { type: "last-prompt", leafUuid: "u2", sessionId: "s" },
    { type: "custom-title", customTitle: "Name", sessionId: "s" },
  ];
  fc.assert(
    fc.property(damagedLines(lines), (text) => {
      const { tree } = importClaudeCode(text);
      const again = SessionTree.from(parseSession(tree.encode()));
      expect(again.diagnostics).toEqual([]);
      expect([...again.entries()]).toEqual([...tree.entries()]);
      expect(again.context()).toEqual(tree.context());
      expect(importClaudeCode(new TextEncoder().encode(text)).tree.encode()).toBe(tree.encode());
    }),
  );
});
