import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { begun, done, ended, openedLog } from "../../../test/support/acp-updates.ts";
import { diffText, fitJson } from "./tool-content.ts";

const part = (content: object) => ({ type: "content", content });

function resultOf(more: object) {
  const { take } = openedLog();
  const message = take(begun("a"), ended("a", more)).flatMap((act) =>
    act.act === "say" ? [act.message] : [],
  )[1];
  if (message?.role !== "toolResult") throw new Error("no result");
  return message;
}

describe("a tool result", () => {
  const png = { type: "image", data: "iVBORw==", mimeType: "image/png" };
  const rows: [string, object, unknown[]][] = [
    ["a text", { content: [part({ type: "text", text: "hi" })] }, ["hi"]],
    ["an image", { content: [part(png)] }, [png]],
    [
      "an image without bytes",
      { content: [part({ type: "image", mimeType: "image/png" })] },
      ["[image: image/png, 0 bytes]"],
    ],
    [
      "a resource",
      { content: [part({ type: "resource", resource: { uri: "u", text: "in it" } })] },
      ["in it"],
    ],
    [
      "bytes",
      { content: [part({ type: "resource", resource: { uri: "u", blob: "AAAA" } })] },
      ["[resource u: unknown type, 3 bytes]"],
    ],
    ["a link", { content: [part({ type: "resource_link", name: "n", uri: "u" })] }, ["[n](u)"]],
    ["a terminal", { content: [{ type: "terminal", terminalId: "t1" }] }, ["42 tests pass"]],
    [
      "an unknown terminal",
      { content: [{ type: "terminal", terminalId: "t9" }] },
      ["[terminal t9: its output is unknown]"],
    ],
    [
      "a change",
      { content: [{ type: "diff", path: "/w/a", oldText: "x", newText: "y" }] },
      ["/w/a: changed at line 1\n- x\n+ y"],
    ],
    ["raw text", { content: [], rawOutput: "raw" }, ["raw"]],
    ["raw JSON", { content: null, rawOutput: { code: 0 } }, ['{"code":0}']],
    ["content before raw output", { rawOutput: "raw" }, ["done a"]],
    ["nothing", { content: [] }, ["(no output)"]],
    ["parts of unknown kinds", { content: [{ type: "hologram" }, null, 7] }, ["(no output)"]],
  ];
  for (const [name, more, expected] of rows)
    it(`contains ${name}`, () => {
      const blocks = resultOf(more).content.map((block) => (block.type === "text" ? block.text : block));
      expect(blocks).toEqual(expected);
    });

  it("states that the tool failed if the agent gives no reason", () => {
    expect(resultOf({ status: "failed", content: [] })).toMatchObject({
      isError: true,
      content: [{ text: "The tool failed, and the agent gave no reason." }],
    });
  });

  it("has the last reported content", () => {
    const { take } = openedLog();
    const acts = take(begun("a", { content: [part({ type: "text", text: "old" })] }), ended("a"));
    expect(JSON.stringify(acts)).not.toContain("old");
  });

  it("keeps the head and tail of long content, and counts surplus parts", () => {
    const long = resultOf({ content: [part({ type: "text", text: `head${"x".repeat(5_000_000)}tail` })] });
    const [block] = long.content;
    expect(block?.type === "text" ? block.text.length : 0).toBeLessThanOrEqual(2_000_000);
    expect(JSON.stringify(block)).toMatch(/head.*the middle is omitted.*tail/);
    const many = resultOf({
      content: Array.from({ length: 10_000 }, () => part({ type: "text", text: "x" })),
    });
    expect(many.content.at(-1)).toMatchObject({ text: "[… 9500 more parts omitted …]" });
    const images = resultOf({ content: Array.from({ length: 30 }, () => part(png)) });
    expect(images.content.filter(({ type }) => type === "image")).toHaveLength(20);
  });
});

describe("a file change", () => {
  const lines = (...all: (string | number)[]) => `${all.join("\n")}\n`;
  const rows: [string, string | null, string, string][] = [
    ["a new file", null, lines("a", "b"), "f: new file\n+ a\n+ b"],
    [
      "lines between others",
      lines(1, 2, 3, 4, 5, "x", 7, 8, 9, 10),
      lines(1, 2, 3, 4, 5, "y", "z", 7, 8, 9, 10),
      "f: changed at line 6\n  3\n  4\n  5\n- x\n+ y\n+ z\n  7\n  8\n  9",
    ],
    ["removed lines", lines("a", "b"), lines("a"), "f: changed at line 2\n  a\n- b"],
    ["an emptied file", "a", "", "f: changed at line 1\n- a"],
    ["the same", "a\n", "a\n", "f: unchanged"],
    ["repeated lines", lines("a", "a"), lines("a", "a", "a"), "f: changed at line 3\n  a\n  a\n+ a"],
  ];
  for (const [name, oldText, newText, expected] of rows)
    it(`is shown as: ${name}`, () => expect(diffText({ path: "f", oldText, newText })).toBe(expected));

  it("is limited in size", () => {
    const text = diffText({ path: "f", oldText: "a\n".repeat(60_000), newText: "b\n".repeat(60_000) });
    expect(text.length).toBeLessThanOrEqual(100_000);
    expect(text).toContain("omitted");
  });

  it("equals a line-by-line comparison", () => {
    const file = fc.array(fc.constantFrom("", "a", "b", "a b"), { maxLength: 12 });
    const text = fc.tuple(file, fc.boolean()).map(([all, isEnded]) => all.join("\n") + (isEnded ? "\n" : ""));
    fc.assert(
      fc.property(text, text, (oldText, newText) => {
        expect(diffText({ path: "f", oldText, newText })).toBe(byLines(oldText, newText));
      }),
    );
  });

  it("shows both ends of a long change", () => {
    const long = (mark: string) => Array.from({ length: 300_000 }, (_, at) => `${mark}${at}\n`).join("");
    const text = diffText({ path: "f", oldText: long("a"), newText: long("b") });
    expect(text.length).toBeLessThanOrEqual(100_000);
    expect(text.startsWith("f: changed at line 1\n- a0\n- a1\n")).toBe(true);
    expect(text.endsWith("\n+ b299998\n+ b299999")).toBe(true);
  });
});

/** Returns the diff of a change without a length limit. */
function byLines(oldText: string, newText: string): string {
  const [before, after] = [splitLines(oldText), splitLines(newText)];
  const start = count(before, after);
  const end = count(before.slice(start).toReversed(), after.slice(start).toReversed());
  if (before.length === after.length && start === before.length) return "f: unchanged";
  const mark = (sign: string, all: readonly string[]) => all.map((line) => `${sign} ${line}`);
  return [
    `f: changed at line ${start + 1}`,
    ...mark(" ", before.slice(Math.max(0, start - 3), start)),
    ...mark("-", before.slice(start, before.length - end)),
    ...mark("+", after.slice(start, after.length - end)),
    ...mark(" ", after.slice(after.length - end, after.length - end + 3)),
  ].join("\n");
}

function splitLines(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function count(some: readonly string[], others: readonly string[]): number {
  const at = some.findIndex((line, index) => others[index] !== line);
  return at === -1 ? Math.min(some.length, others.length) : at;
}

describe("JSON from an agent", () => {
  it("is copied with a limit on depth and size", () => {
    let deep: unknown = "bottom";
    for (let level = 0; level < 100_000; level++) deep = level % 2 === 0 ? [deep] : { deep };
    expect(JSON.stringify(fitJson(deep, 1000))).toContain("nested too deep");
    const wide = fitJson({ a: "x".repeat(5000), b: Array.from({ length: 5000 }, () => 1) }, 1000);
    expect(JSON.stringify(wide).length).toBeLessThan(1300);
    expect(
      JSON.stringify(
        fitJson(
          Array.from({ length: 5000 }, () => 1),
          1000,
        ),
      ),
    ).toMatch(/more omitted …\]"\]$/);
    const odd = JSON.parse('{"__proto__": {"x": 1}, "a": null}') as unknown;
    expect(JSON.stringify(fitJson(odd, 1000))).toBe('{"__proto__":{"x":1},"a":null}');
  });

  it("is limited in the arguments of a call", () => {
    const { log, take } = openedLog();
    take(begun("a", { rawInput: { text: "x".repeat(3_000_000) } }));
    expect(JSON.stringify(log.call("a")).length).toBeLessThan(201_000);
    expect(log.end(done).stopReason).toBe("stop");
  });

  it("is limited over all calls of a message, and each call gets a share", () => {
    const { log, take } = openedLog();
    for (let at = 0; at < 100; at++) take(begun(`c${at}`, { rawInput: { text: "x".repeat(300_000) } }));
    const message = log
      .end(done)
      .acts.flatMap((act) => (act.act === "say" && act.message.role === "assistant" ? [act.message] : []))[0];
    expect(JSON.stringify(message).length).toBeLessThan(800_000);
    const calls = message?.content.flatMap((block) => (block.type === "toolCall" ? [block] : [])) ?? [];
    expect(calls).toHaveLength(100);
    for (const call of calls) expect(String(call.arguments.text).length).toBeGreaterThan(1500);
  });
});
