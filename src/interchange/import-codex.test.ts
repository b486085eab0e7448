import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { damagedLines } from "../../test/support/arbitraries.ts";
import type { Entry } from "../core/entries.ts";
import { parseSession } from "../core/parse-session.ts";
import { atOnce } from "../core/slices.ts";
import { SessionTree } from "../core/tree.ts";
import { importCodex as importing } from "./import-codex.ts";

const importCodex = (...given: Parameters<typeof importing>) => atOnce(importing(...given));

type Line = Record<string, unknown>;

const line = (type: string, payload: Line): Line => ({
  timestamp: "2026-05-06T14:00:00.000Z",
  type,
  payload,
});
const item = (payload: Line) => line("response_item", payload);
const event = (payload: Line) => line("event_msg", payload);
const said = (role: string, text: string) =>
  item({ type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }] });
const call = (call_id: string) => item({ type: "function_call", name: "shell", arguments: "{}", call_id });
const output = (call_id: string, value: unknown) =>
  item({ type: "function_call_output", call_id, output: value });
const tokens = (input: number, output: number) =>
  event({ type: "token_count", info: { last_token_usage: { input_tokens: input, output_tokens: output } } });
const meta = line("session_meta", { id: "s", cwd: "/w", timestamp: "2026-05-06T14:00:00.000Z" });

const importLines = (...lines: Line[]) =>
  importCodex([meta, ...lines].map((each) => JSON.stringify(each)).join("\n"));
const messages = (tree: SessionTree) =>
  Array.from(tree.entries()).flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
const path = (tree: SessionTree) => tree.path().map(({ id }) => id);

describe("answers", () => {
  test("consecutive items are one answer, up to a result, a prompt or a token count", () => {
    const { tree } = importLines(
      said("user", "go"),
      item({ type: "reasoning", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "e" }),
      said("assistant", "both"),
      call("A"),
      call("B"),
      output("A", "a"),
      output("B", "b"),
      said("assistant", "one"),
      tokens(10, 5),
      said("assistant", "two"),
    );
    expect(messages(tree).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "assistant",
      "assistant",
    ]);
    expect(messages(tree)[1]).toMatchObject({
      stopReason: "toolUse",
      content: [{ type: "thinking", thinking: "hm" }, { text: "both" }, { id: "A" }, { id: "B" }],
    });
  });

  test("[INT3] a token count belongs to the answer before it, once", () => {
    const { tree, notKept } = importLines(said("assistant", "one"), tokens(10, 5), tokens(99, 99));
    expect(messages(tree)[0]).toMatchObject({ usage: { input: 10, output: 5, totalTokens: 15 } });
    expect(notKept).toMatchObject([
      { what: "A token count that does not belong to an answer was left out.", count: 1 },
    ]);
  });

  test.each<[unknown, boolean, string]>([
    ["fine", false, "fine"],
    [
      "Exit code: 2\nWall time: 1 seconds\nOutput:\nno",
      true,
      "Exit code: 2\nWall time: 1 seconds\nOutput:\nno",
    ],
    ["Exit code: 0\nOutput:\nyes", false, "Exit code: 0\nOutput:\nyes"],
    ['{"output":"no","metadata":{"exit_code":1}}', true, "no"],
    ['{"output":"yes","metadata":{"exit_code":0}}', false, "yes"],
    ['{"other":"json"}', false, '{"other":"json"}'],
    [{ content: "no", success: false }, true, "no"],
    [[{ type: "input_text", text: "yes" }], false, "yes"],
    [null, false, ""],
  ])("[INT3] the result %j", (value, isError, text) => {
    const { tree } = importLines(call("A"), output("A", value));
    const content = text === "" ? [] : [{ type: "text", text }];
    expect(messages(tree)[1]).toMatchObject({ role: "toolResult", toolName: "shell", isError, content });
  });

  test.each([true, false])("[INT3] the end of a command reports its failure (first: %s)", (first) => {
    const end = event({ type: "exec_command_end", call_id: "A", exit_code: 1 });
    const both = first ? [end, output("A", "no")] : [output("A", "no"), end];
    expect(messages(importLines(call("A"), ...both).tree)[1]).toMatchObject({ isError: true });
  });

  test.each([
    ["<environment_context>\n<cwd>/w</cwd>\n</environment_context>", true],
    ["# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>", true],
    ["<environment_context> is what I want to know about", false],
    ["# AGENTS.md instructions are what I want to know about", false],
  ])("[INT3] text that Codex inserted is not shown as the user's: %s", (text, injected) => {
    const [entry] = importLines(said("user", text)).tree.entries();
    expect(entry).toMatchObject(injected ? { type: "custom_message", display: false } : { type: "message" });
  });
});

describe("rolling back", () => {
  const two = [said("user", "one"), said("assistant", "1"), said("user", "two"), said("assistant", "2")];

  test("the removed part stays as a branch", () => {
    const { tree } = importLines(
      ...two,
      event({ type: "thread_rolled_back", num_turns: 1 }),
      said("user", "three"),
    );
    expect(path(tree)).toEqual(["line-2", "line-3", "line-7"]);
    expect(tree.children("line-3").map(({ id }) => id)).toEqual(["line-4", "line-7"]);
  });

  test("at the end, the leaf is where it was rolled back to", () => {
    const { tree } = importLines(...two, event({ type: "thread_rolled_back", num_turns: 1 }));
    expect(tree.leafId).toBe("line-3");
  });

  test("rolling back too far leads to before the first prompt", () => {
    const { tree } = importLines(
      ...two,
      event({ type: "thread_rolled_back", num_turns: 9 }),
      said("user", "three"),
    );
    expect(path(tree)).toEqual(["line-7"]);
  });
});

test("reads a compaction with and without a summary", () => {
  const { tree, notKept } = importLines(
    said("user", "one"),
    tokens(100, 1),
    line("compacted", { message: "in short" }),
    said("user", "two"),
    line("compacted", { message: "", replacement_history: [{ type: "compaction", encrypted_content: "e" }] }),
    said("user", "three"),
  );
  expect(tree.context().entryIds).toEqual(["line-4", "line-5", "line-7"]);
  expect(tree.entry("line-4")).toMatchObject({ type: "compaction", summary: "in short", tokensBefore: 101 });
  expect(notKept.at(-1)?.what).toContain("A compaction summary is unreadable");
});

test("[NWC23] accepts lines damaged in any way", () => {
  const lines: Line[] = [
    meta,
    line("turn_context", { model: "gpt", effort: "high" }),
    said("user", "one"),
    item({
      type: "reasoning",
      id: "r",
      summary: [{ type: "summary_text", text: "hm" }],
      encrypted_content: "e",
    }),
    said("assistant", "1"),
    call("A"),
    item({ type: "local_shell_call", call_id: "B", action: { type: "exec", command: ["ls"] } }),
    output("A", '{"output":"x","metadata":{"exit_code":1}}'),
    output("B", {
      content: [{ type: "input_image", image_url: "data:image/png;base64,aGk=" }],
      success: true,
    }),
    item({ type: "web_search_call", action: { type: "search" } }),
    tokens(1, 1),
    event({ type: "thread_rolled_back", num_turns: 1 }),
    line("compacted", {
      message: "in short",
      replacement_history: [{ type: "message", role: "user", content: [] }],
    }),
    event({ type: "thread_name_updated", thread_name: "Name" }),
    said("user", "two"),
  ];
  fc.assert(
    fc.property(damagedLines(lines), (text) => {
      const { tree } = importCodex(text);
      const again = SessionTree.from(parseSession(tree.encode()));
      expect(again.diagnostics).toEqual([]);
      expect([...again.entries()] as Entry[]).toEqual([...tree.entries()]);
      expect(again.context()).toEqual(tree.context());
      expect(importCodex(new TextEncoder().encode(text)).tree.encode()).toBe(tree.encode());
    }),
  );
});
