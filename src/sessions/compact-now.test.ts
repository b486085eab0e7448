import { describe, expect, test } from "vitest";
import { assistantMessage } from "../../test/support/session-text.ts";
import type { AppendItem } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { compactByHand } from "./compact.ts";

async function session() {
  const { sessions } = createMemoryStore();
  const record = await sessions.create({}, { key: "agent:main:main", sessionId: "s", cwd: "/w" });
  const call = { type: "toolCall" as const, id: "t", name: "look", arguments: {} };
  const result = {
    role: "toolResult" as const,
    toolCallId: "t",
    toolName: "look",
    content: [],
    isError: false,
  };
  const drafts: AppendItem[] = [
    { id: "a", draft: { type: "message", message: { role: "user", content: "one" } } },
    { id: "b", draft: { type: "message", message: { ...assistantMessage("two"), content: [call] } } },
    { id: "c", draft: { type: "message", message: { ...result, timestamp: 3 } } },
    { id: "d", draft: { type: "message", message: { role: "user", content: "three" } } },
  ];
  const { leafId } = await sessions.append({}, "s", drafts);
  return { sessions, record: { ...record, leafId } };
}

describe("a manual compaction", () => {
  test("the summary replaces everything before the first kept entry", async () => {
    const { sessions, record } = await session();
    const done = await compactByHand(sessions, {}, record, { summary: "In short.", keepFrom: "d" });
    expect(done).toMatchObject({ key: record.key, sessionId: "s", firstKeptEntryId: "d" });
    expect(done.tokensBefore).toBeGreaterThan(4 * 4);
    const context = await sessions.context({}, "s");
    expect(context?.messages.map(({ role }) => role)).toEqual(["compactionSummary", "user"]);
    expect(context?.entryIds).toEqual([done.entryId, "d"]);
  });

  test("the first, the last and any entry in between can be the first kept", async () => {
    for (const keepFrom of ["a", "b", "d"]) {
      const { sessions, record } = await session();
      const done = await compactByHand(sessions, {}, record, { summary: "x", keepFrom });
      expect((await sessions.context({}, "s"))?.entryIds.slice(0, 2)).toEqual([done.entryId, keepFrom]);
    }
  });

  test.each([
    ["a tool result without its call", { summary: "x", keepFrom: "c" }, "invalid_arguments"],
    ["a missing entry", { summary: "x", keepFrom: "nope" }, "not_found"],
    ["nothing", { summary: " \n", keepFrom: "a" }, "invalid_arguments"],
  ])("refuses %s and changes nothing", async (_, wish, code) => {
    const { sessions, record } = await session();
    await expect(compactByHand(sessions, {}, record, wish)).rejects.toMatchObject({ code });
    expect((await sessions.get({}, "s"))?.leafId).toBe("d");
  });

  test("refuses an entry of another branch, and a session that has continued", async () => {
    const { sessions, record } = await session();
    await sessions.branch({}, "s", "a");
    await expect(
      compactByHand(sessions, {}, { ...record, leafId: "a" }, { summary: "x", keepFrom: "d" }),
    ).rejects.toMatchObject({ code: "invalid_entry" });
    await expect(compactByHand(sessions, {}, record, { summary: "x", keepFrom: "a" })).rejects.toMatchObject({
      code: "conflict",
    });
  });
});
