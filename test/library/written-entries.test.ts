import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Entry, EntryDraft } from "../../src/index.ts";
import { parseSession, SessionTree } from "../../src/index.ts";
import { draft } from "../support/arbitraries.ts";
import { assistantMessage, sessionText, userLine } from "../support/session-text.ts";

const writtenAt = Date.UTC(2026, 0, 2, 3, 4, 5);
const before = sessionText(userLine("e0", null));

/** Appends a draft to a session that has one entry. */
function append(value: EntryDraft): {
  readonly entry: Entry;
  readonly line: string;
  readonly tree: SessionTree;
} {
  const tree = SessionTree.from(parseSession(before), { clock: { now: () => writtenAt } });
  const entry = tree.append(value, { id: "e1" });
  return { entry, line: tree.encode().slice(before.length, -1), tree };
}

const base = '"id":"e1","parentId":"e0","timestamp":"2026-01-02T03:04:05.000Z"';

const written: [EntryDraft, string][] = [
  [
    { type: "message", message: { role: "user", content: "hi", timestamp: 1 } },
    `{"type":"message",${base},"message":{"role":"user","content":"hi","timestamp":1}}`,
  ],
  [
    { type: "model_change", provider: "p", modelId: "m" },
    `{"type":"model_change",${base},"provider":"p","modelId":"m"}`,
  ],
  [
    { type: "thinking_level_change", thinkingLevel: "low" },
    `{"type":"thinking_level_change",${base},"thinkingLevel":"low"}`,
  ],
  [
    { type: "compaction", summary: "S", firstKeptEntryId: "e0", tokensBefore: 9, details: { a: 1 } },
    `{"type":"compaction",${base},"summary":"S","firstKeptEntryId":"e0","tokensBefore":9,"details":{"a":1}}`,
  ],
  [
    { type: "compaction", summary: "S", firstKeptEntryId: null, tokensBefore: 9 },
    `{"type":"compaction",${base},"summary":"S","firstKeptEntryId":"e1","tokensBefore":9}`,
  ],
  [
    { type: "branch_summary", fromId: "e9", summary: "B" },
    `{"type":"branch_summary",${base},"fromId":"e9","summary":"B"}`,
  ],
  [
    { type: "custom", customType: "x", data: { k: 1 } },
    `{"type":"custom","customType":"x","data":{"k":1},${base}}`,
  ],
  [{ type: "custom", customType: "x" }, `{"type":"custom","customType":"x",${base}}`],
  [
    { type: "custom_message", customType: "x", content: "c", display: false },
    `{"type":"custom_message","customType":"x","content":"c","display":false,${base}}`,
  ],
  [
    { type: "custom_message", customType: "x", content: "c" },
    `{"type":"custom_message","customType":"x","content":"c","display":true,${base}}`,
  ],
  [{ type: "label", targetId: "e0", label: "L" }, `{"type":"label",${base},"targetId":"e0","label":"L"}`],
  [{ type: "label", targetId: "e0" }, `{"type":"label",${base},"targetId":"e0"}`],
  [{ type: "session_info", name: "  a\n b " }, `{"type":"session_info",${base},"name":"a b"}`],
  [{ type: "session_info", name: " " }, `{"type":"session_info",${base}}`],
];

describe("writing an entry", () => {
  test.each(written)("[ENT14] %j is written as pi writes it", (value, line) => {
    expect(append(value).line).toBe(line);
  });

  test.each(written)("[ENT14] for any order of its keys: %j", (value, line) => {
    const reversed = Object.fromEntries(Object.entries(value).toReversed()) as unknown as EntryDraft;
    expect(append(reversed).line).toBe(line);
  });

  test("[ST22] the value in memory equals the line, and is read back", () => {
    fc.assert(
      fc.property(draft, (value) => {
        const { entry, line, tree } = append(value as EntryDraft);
        expect(JSON.parse(line)).toEqual(entry);
        expect(line).not.toContain("\n");
        const again = parseSession(tree.encode());
        expect(again.diagnostics).toEqual([]);
        expect(again.lines[1]).toEqual(entry);
      }),
    );
  });

  test("the caller's object may change afterwards", () => {
    const message = { role: "user" as const, content: [{ type: "text" as const, text: "before" }] };
    const { entry } = append({ type: "message", message });
    message.content[0] = { type: "text", text: "after" };
    expect(entry).toMatchObject({ message: { content: [{ text: "before" }], timestamp: writtenAt } });
  });

  const { usage, ...withoutUsage } = assistantMessage("x");
  const { cost: _cost, ...withoutCost } = usage;
  test.each<[string, unknown, string]>([
    ["a value that is not an object", null, "does not write this type"],
    ["an unknown type", { type: "surprise" }, "does not write this type"],
    ["a type that is only read", { type: "leaf", targetId: null }, "does not write this type"],
    ["no message", { type: "message" }, "message must be an object"],
    ["an unknown role", { type: "message", message: { role: "narrator", content: "x" } }, "message.role"],
    ["an assistant without usage", { type: "message", message: withoutUsage }, "message.usage is missing"],
    [
      "an assistant without cost",
      { type: "message", message: { ...withoutUsage, usage: withoutCost } },
      "message.usage.cost is missing",
    ],
    [
      "an unknown stop reason",
      { type: "message", message: { ...assistantMessage("x"), stopReason: "tired" } },
      "message.stopReason",
    ],
    [
      "a result without the name of its tool",
      { type: "message", message: { role: "toolResult", toolCallId: "t", content: [], isError: false } },
      "message.toolName is missing",
    ],
    ["a big integer", { type: "custom", customType: "x", data: 10n }, "cannot be written as JSON"],
    [
      "a compaction without a size",
      { type: "compaction", summary: "S", firstKeptEntryId: null },
      "tokensBefore is missing",
    ],
    ["a wrong field", { type: "custom_message", customType: "x", content: 5 }, "content"],
  ])("[ENT15] %s is refused, with the field", (_, value, problem) => {
    expect(() => append(value as EntryDraft)).toThrow(expect.objectContaining({ code: "invalid_entry" }));
    expect(() => append(value as EntryDraft)).toThrow(problem);
  });

  test("[ENT15] a draft that converts itself into something else is refused", () => {
    for (const toJSON of [() => ({ type: "leaf", id: "evil" }), () => undefined, () => 5]) {
      const draft = { type: "custom", customType: "x", toJSON } as unknown as EntryDraft;
      expect(() => append(draft)).toThrow(expect.objectContaining({ code: "invalid_entry" }));
    }
  });

  test("[ENT15] a circular value is refused", () => {
    const data: Record<string, unknown> = {};
    data.self = data;
    expect(() => append({ type: "custom", customType: "x", data })).toThrow("cannot be written as JSON");
  });
});
