import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { draft } from "../../test/support/arbitraries.ts";
import { assistantMessage } from "../../test/support/session-text.ts";
import { entryProblem } from "./entries.ts";
import type { EntryDraft } from "./seal.ts";
import { sealEntry } from "./seal.ts";

const place = { id: "e1", parentId: "e0", time: Date.UTC(2026, 0, 2, 3, 4, 5) };
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

describe("sealing an entry", () => {
  test.each(written)("[ENT14] %j is written as pi writes it", (value, line) => {
    expect(sealEntry(value, place).line).toBe(line);
  });

  test.each(written)("[ENT14] whatever the order of its keys: %j", (value, line) => {
    const reversed = Object.fromEntries(Object.entries(value).toReversed()) as unknown as EntryDraft;
    expect(sealEntry(reversed, place).line).toBe(line);
  });

  test("[ST22] what is in memory is what the line says, and fits the schema", () => {
    fc.assert(
      fc.property(draft, (value) => {
        const { entry, line } = sealEntry(value as EntryDraft, place);
        expect(JSON.parse(line)).toEqual(entry);
        expect(line).not.toContain("\n");
        expect(entryProblem({ ...entry })).toBeNull();
      }),
    );
  });

  test("the caller's object may change afterwards", () => {
    const message = { role: "user" as const, content: [{ type: "text" as const, text: "before" }] };
    const { entry } = sealEntry({ type: "message", message }, place);
    message.content[0] = { type: "text", text: "after" };
    expect(entry).toMatchObject({ message: { content: [{ text: "before" }], timestamp: place.time } });
  });

  const { usage, ...withoutUsage } = assistantMessage("x");
  const { cost: _cost, ...withoutCost } = usage;
  test.each<[string, unknown, string]>([
    ["no object", null, "not written"],
    ["an unknown type", { type: "surprise" }, "not written"],
    ["a type that is only read", { type: "leaf", targetId: null }, "not written"],
    ["no message", { type: "message" }, "message must be an object"],
    ["a role nobody knows", { type: "message", message: { role: "narrator", content: "x" } }, "message.role"],
    ["an assistant without usage", { type: "message", message: withoutUsage }, "message.usage is missing"],
    [
      "an assistant without cost",
      { type: "message", message: { ...withoutUsage, usage: withoutCost } },
      "message.usage.cost is missing",
    ],
    [
      "a stop reason nobody knows",
      { type: "message", message: { ...assistantMessage("x"), stopReason: "tired" } },
      "message.stopReason",
    ],
    [
      "a result without a tool's name",
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
    expect(() => sealEntry(value as EntryDraft, place)).toThrow(
      expect.objectContaining({ code: "invalid_entry" }),
    );
    expect(() => sealEntry(value as EntryDraft, place)).toThrow(problem);
  });

  test("[ENT15] a draft that turns itself into something else is refused", () => {
    for (const toJSON of [() => ({ type: "leaf", id: "evil" }), () => undefined, () => 5]) {
      const draft = { type: "custom", customType: "x", toJSON } as unknown as EntryDraft;
      expect(() => sealEntry(draft, place)).toThrow(expect.objectContaining({ code: "invalid_entry" }));
    }
  });

  test("[ENT15] a value that refers to itself is refused", () => {
    const data: Record<string, unknown> = {};
    data.self = data;
    expect(() => sealEntry({ type: "custom", customType: "x", data }, place)).toThrow(
      "cannot be written as JSON",
    );
  });
});
