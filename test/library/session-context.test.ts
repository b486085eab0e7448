import { describe, expect, test } from "vitest";
import { buildContext, parseSession } from "../../src/index.ts";
import { assistantMessage, sessionText, userLine } from "../support/session-text.ts";

const read = (...lines: (object | string)[]) => parseSession(sessionText(...lines)).lines;
const at = { timestamp: "2026-01-01T00:00:00.000Z" };
const compaction = (id: string, parentId: string, firstKeptEntryId: string) => ({
  type: "compaction",
  id,
  parentId,
  ...at,
  summary: `until ${firstKeptEntryId}`,
  firstKeptEntryId,
  tokensBefore: 9,
});

describe("the context", () => {
  test("[CTX1] the last model and thinking level on the branch win", () => {
    const lines = read(
      { type: "model_change", id: "m", parentId: null, ...at, provider: "openai", modelId: "gpt" },
      { type: "thinking_level_change", id: "t", parentId: "m", ...at, thinkingLevel: "high" },
      userLine("a", "t"),
      { type: "message", id: "b", parentId: "a", ...at, message: assistantMessage("x") },
      { type: "model_change", id: "side", parentId: "a", ...at, provider: "mistral", modelId: "large" },
    );
    expect(buildContext(lines, "a")).toMatchObject({
      model: { provider: "openai", modelId: "gpt" },
      thinkingLevel: "high",
    });
    expect(buildContext(lines, "b").model).toEqual({ provider: "anthropic", modelId: "claude-x" });
    expect(buildContext(lines).model).toEqual({ provider: "mistral", modelId: "large" });
    expect(buildContext(lines, null)).toMatchObject({ messages: [], model: null, thinkingLevel: "off" });
  });

  test("[CTX2] a second compaction replaces the first, also inside its kept part", () => {
    const lines = read(
      userLine("a", null),
      userLine("b", "a"),
      compaction("c1", "b", "b"),
      userLine("d", "c1"),
      compaction("c2", "d", "b"),
      userLine("e", "c2"),
    );
    const { messages, entryIds } = buildContext(lines);
    expect(entryIds).toEqual(["c2", "b", "d", "e"]);
    expect(messages[0]).toMatchObject({ role: "compactionSummary", summary: "until b", tokensBefore: 9 });
  });

  test("[CTX3] a kept entry after the compaction keeps nothing", () => {
    const lines = read(userLine("a", null), compaction("c", "a", "b"), userLine("b", "c"));
    const { entryIds, diagnostics } = buildContext(lines);
    expect(entryIds).toEqual(["c", "b"]);
    expect(diagnostics.map((each) => each.code)).toEqual(["unknown_kept_entry"]);
  });

  test("[CTX4] the last edit of an entry wins, whatever its target contains", () => {
    const edit = (id: string, parentId: string, targetId: string, replacement: unknown) => ({
      type: "context_edit",
      id,
      parentId,
      ...at,
      targetId,
      replacement,
    });
    const lines = read(
      userLine("a", null),
      { type: "message", id: "b", parentId: "a", ...at, message: assistantMessage("x") },
      { type: "branch_summary", id: "s", parentId: "b", ...at, fromId: "z", summary: "S" },
      edit("e1", "s", "a", null),
      edit("e2", "e1", "a", { content: "again" }),
      edit("e3", "e2", "b", { content: "short" }),
      edit("e4", "e3", "s", { content: "summary, edited" }),
      { ...userLine("r", "e4"), message: { role: "bashExecution", command: "env", output: "SECRET" } },
      edit("e5", "r", "r", { content: "(hidden)" }),
    );
    const [first, second, third, fourth] = buildContext(lines).messages;
    expect(first).toMatchObject({ content: "again" });
    expect(second).toMatchObject({ content: [{ type: "text", text: "short" }] });
    expect(third).toMatchObject({ summary: "summary, edited" });
    expect(fourth).toMatchObject({ command: "env", output: "(hidden)" });
    const compacted = read(
      userLine("a", null),
      compaction("c", "a", "a"),
      edit("e", "c", "c", { content: "short" }),
      edit("f", "e", "a", null),
    );
    expect(buildContext(compacted).messages).toMatchObject([{ role: "compactionSummary", summary: "short" }]);
  });

  test("[HKP8] a byte budget takes the newest entries and always the summary, and reports where it ended", () => {
    const lines = read(
      userLine("a", null),
      compaction("c", "a", "a"),
      userLine("b", "c", "x".repeat(500)),
      userLine("d", "b", "y".repeat(500)),
    );
    expect(buildContext(lines, "d", { byteBudget: 1000 })).toMatchObject({
      entryIds: ["c", "b", "d"],
      cut: "c",
    });
    expect(buildContext(lines, "d", { byteBudget: 900 })).toMatchObject({ entryIds: ["c", "d"], cut: "d" });
    expect(buildContext(lines, "d", { byteBudget: 0 })).toMatchObject({ entryIds: ["c", "d"], cut: "d" });
    expect(buildContext(lines, "d", { byteBudget: 1e6 })).toMatchObject({
      entryIds: ["c", "a", "b", "d"],
      cut: null,
    });
  });

  test("[HKP8] the budget is in bytes of text, and an entry that just fits is included", () => {
    const lines = read(userLine("a", null, "世界"), userLine("b", "a", "and"));
    const bytes = Buffer.byteLength("世界and");
    expect(buildContext(lines, "b", { byteBudget: bytes }).cut).toBeNull();
    expect(buildContext(lines, "b", { byteBudget: bytes - 1 }).cut).toBe("b");
  });

  test("[CTX1] an empty branch summary adds nothing", () => {
    const empty = { type: "branch_summary", id: "s", parentId: "a", ...at, fromId: "z", summary: "" };
    expect(buildContext(read(userLine("a", null), empty)).entryIds).toEqual(["a"]);
  });

  test("a base that is in the session after all is an ordinary parent", () => {
    const lines = read(userLine("a", null), userLine("b", "a"));
    expect(buildContext(lines, "b", { base: "a" }).entryIds).toEqual(["a", "b"]);
  });

  test("the parent omitted by a shortened working set is not damage", () => {
    const lines = read(userLine("b", "a"));
    expect(buildContext(lines, "b", { base: "a" }).diagnostics).toEqual([]);
    expect(buildContext(lines, "b").diagnostics.map((each) => each.code)).toEqual(["missing_parent"]);
  });

  test("[CTX10] a missing leaf is reported, not guessed", () => {
    const { messages, diagnostics } = buildContext(read(userLine("a", null)), "nope");
    expect(messages).toEqual([]);
    expect(diagnostics.map((each) => each.code)).toEqual(["unknown_leaf_target"]);
  });
});
