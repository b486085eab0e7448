import { describe, expect, test } from "vitest";
import { sessionText, userLine } from "../../test/support/session-text.ts";
import { parseSession } from "../core/parse-session.ts";
import { SessionTree } from "../core/tree.ts";
import { historyOf } from "./history.ts";

const treeOf = (...lines: object[]) => SessionTree.from(parseSession(sessionText(...lines)));

function chain(count: number, text?: string): SessionTree {
  const lines = Array.from({ length: count }, (_, i) =>
    userLine(`e${i}`, i === 0 ? null : `e${i - 1}`, text),
  );
  return treeOf(...lines);
}

const ids = (page: { messages: { id: string }[] }) => page.messages.map((message) => message.id);

describe("a page of history", () => {
  test("paging back and forth covers every message once", () => {
    const tree = chain(25);
    const back: string[] = [];
    for (let before: string | undefined, more = true; more; ) {
      const page = historyOf(tree, { limit: 7, ...(before === undefined ? {} : { before }) });
      back.unshift(...ids(page));
      before = page.nextBefore;
      more = before !== undefined;
    }
    const forward = ["e0"];
    for (let after: string | undefined = "e0"; after !== undefined; ) {
      const page = historyOf(tree, { limit: 7, after });
      forward.push(...ids(page));
      after = page.nextAfter;
    }
    const all = Array.from({ length: 25 }, (_, i) => `e${i}`);
    expect(back).toEqual(all);
    expect(forward).toEqual(all);
  });

  test("before and after limit a range; labels and names are not messages", () => {
    const tree = chain(10);
    tree.append({ type: "label", targetId: "e3", label: "x" });
    expect(ids(historyOf(tree, { after: "e2", before: "e5" }))).toEqual(["e3", "e4"]);
    expect(ids(historyOf(tree, { after: "e5", before: "e2" }))).toEqual([]);
    expect(historyOf(tree, { limit: 3 })).toMatchObject({
      leafId: "e9",
      nextBefore: "e7",
      truncated: false,
      pending: [],
    });
    expect(historyOf(tree, { limit: 3 })).not.toHaveProperty("nextAfter");
  });

  test("a message with its own ID and role does not confuse paging", () => {
    const own = { ...userLine("a", null), message: { role: "user", content: "x", id: "evil" } };
    const custom = {
      type: "custom_message",
      id: "b",
      parentId: "a",
      timestamp: "t",
      customType: "c",
      content: "y",
      role: 5,
    };
    expect(ids(historyOf(treeOf(own, custom)))).toEqual(["a", "b"]);
    expect(historyOf(treeOf(own, custom)).messages[1]).toMatchObject({ role: "custom" });
  });

  test("a message too large for a page is reported", () => {
    const message = {
      role: "toolResult",
      toolCallId: "t",
      content: [],
      details: { deep: "x".repeat(7_000_000) },
      timestamp: 1,
    };
    const page = historyOf(treeOf({ ...userLine("a", null), message }, userLine("b", "a")));
    expect(JSON.stringify(page).length).toBeLessThan(1000);
    expect(page).toMatchObject({ truncated: true, messages: [{ id: "a" }, { id: "b" }] });
  });

  test("hidden messages are not in the history", () => {
    const custom = (id: string, display: boolean) => ({
      type: "custom_message",
      id,
      parentId: null,
      timestamp: "t",
      customType: "c",
      content: "y",
      display,
    });
    const hidden = treeOf(custom("a", true), { ...custom("b", false), parentId: "a" });
    expect(ids(historyOf(hidden))).toEqual(["a"]);
    expect(hidden.context().messages).toHaveLength(2);
  });

  test("an ID that is not on the branch is not found", () => {
    expect(() => historyOf(chain(2), { before: "nope" })).toThrow(
      expect.objectContaining({ code: "not_found" }),
    );
  });

  test("a long text is shortened, never inside a surrogate pair", () => {
    const page = historyOf(chain(1, "😀".repeat(10_000)));
    const [message] = page.messages as { content?: string }[];
    expect(page.truncated).toBe(true);
    expect(message?.content).toBe(`${"😀".repeat(6000)}\n…(truncated)…`);
    const odd = historyOf(chain(1, `a${"😀".repeat(10_000)}`)).messages as { content?: string }[];
    expect(odd[0]?.content?.isWellFormed()).toBe(true);
  });

  test("a page is at most 6 MiB, the newest first, and at least one message", () => {
    const data = "A".repeat(2 * 1024 * 1024);
    const image = { role: "user", content: [{ type: "image", data, mimeType: "image/png" }], timestamp: 1 };
    const lines = Array.from({ length: 5 }, (_, i) => ({
      ...userLine(`e${i}`, i === 0 ? null : `e${i - 1}`),
      message: image,
    }));
    const page = historyOf(treeOf(...lines));
    expect(ids(page)).toEqual(["e3", "e4"]);
    expect(page).toMatchObject({ truncated: true, nextBefore: "e3" });
    expect(ids(historyOf(treeOf(...lines), { after: "e0" }))).toEqual(["e1", "e2"]);
  });
});
