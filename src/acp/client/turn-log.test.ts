import { describe, expect, it } from "vitest";
import type { Loose } from "../../../test/support/acp-updates.ts";
import {
  begun,
  done,
  ended,
  lines,
  openedLog as opened,
  said,
  says,
  thought,
} from "../../../test/support/acp-updates.ts";
import type { AgentTurnEnd } from "./turn-outcome.ts";

describe("steps", () => {
  const rows: [string, Loose[], AgentTurnEnd, string[]][] = [
    ["text without calls as the last message", [said("Hel"), said("lo")], done, ["stop: Hello"]],
    [
      "a call that ends",
      [thought("hm"), said("I look"), begun("a"), ended("a"), said("Found")],
      done,
      ["toolUse: (hm) | I look | →a", "result a", "stop: Found"],
    ],
    [
      "parallel calls, ended in another order",
      [begun("a"), begun("b"), ended("b"), said("next"), ended("a")],
      done,
      ["toolUse: →a | →b", "result b", "result a", "stop: next"],
    ],
    [
      "a step that waits for the previous one",
      [begun("a"), begun("b"), ended("b"), said("x"), begun("c"), ended("c"), said("y"), ended("a")],
      done,
      ["toolUse: →a | →b", "result b", "result a", "toolUse: x | →c", "result c", "stop: y"],
    ],
    ["an end before its start", [ended("a"), said("y")], done, ["toolUse: →a", "result a", "stop: y"]],
    [
      "text between calls in place, and text after the last call after its result",
      [begun("a"), said("p"), begun("b"), said("q"), ended("a"), said("r"), ended("b")],
      done,
      ["toolUse: →a | p | →b", "result a", "result b", "stop: qr"],
    ],
  ];
  for (const [name, updates, end, expected] of rows)
    it(`writes ${name}`, () => {
      const { log, take } = opened();
      expect(says([...take(...updates), ...log.end(end).acts])).toEqual(expected);
    });

  it("writes a message when its first call ends, and each result as it arrives", () => {
    const { take } = opened();
    expect(says(take(begun("a"), begun("b")))).toEqual([]);
    expect(says(take(ended("a")))).toEqual(["toolUse: →a | →b", "result a"]);
    expect(says(take(said("x"), begun("c"), ended("c")))).toEqual([]);
    expect(says(take(ended("b")))).toEqual(["result b", "toolUse: x | →c", "result c"]);
  });

  it("splits a step with very many calls into parts that the guard can check", () => {
    const { log, take } = opened();
    const ids = Array.from({ length: 250 }, (_, at) => `c${at}`);
    const acts = [...take(...ids.map((id) => begun(id))), ...log.end(done).acts];
    expect(says(acts).filter((line) => line.startsWith("toolUse"))).toHaveLength(3);
    expect(says(acts).filter((line) => line.startsWith("result"))).toHaveLength(250);
  });

  it("joins the chunks of one kind and message into one block", () => {
    const { log, take } = opened();
    take(thought("a"), thought("b"), said("1", "m1"), said("2", "m1"), said("3", "m2"), thought("c"));
    expect(says(log.end(done).acts)).toEqual(["stop: (ab) | 12 | 3 | (c)"]);
  });

  it("writes steps without text", () => {
    const { log, take } = opened();
    const chunk = (content: object): Loose => ({ sessionUpdate: "agent_message_chunk", content });
    take(
      chunk({ type: "image", data: "AAAA", mimeType: "image/png" }),
      chunk({ type: "resource_link", name: "notes", uri: "file:///n.md" }),
      chunk({ type: "resource", resource: { uri: "file:///n.md", text: "inside" } }),
      chunk({ type: "audio", data: "AAAA", mimeType: "audio/wav" }),
    );
    expect(log.end(done).reply).toBe(
      "[image: image/png, 3 bytes][notes](file:///n.md)inside[audio: audio/wav, 3 bytes]",
    );
  });
});

describe("events", () => {
  it("are emitted at once for text, calls and results that are not written yet", () => {
    const { take } = opened();
    take(begun("a"), begun("b"), ended("b"));
    expect(lines(take(said("x"), begun("c", { rawInput: { path: "p" } }), ended("c")))).toEqual([
      "delta text x",
      'call read {"path":"p"}',
      "ended c",
    ]);
  });

  const rows: [string, Loose[], string[]][] = [
    ["not before its input is known", [begun("a")], []],
    ["not with an empty input", [begun("a", { rawInput: {} })], []],
    [
      "once with its input",
      [begun("a", { rawInput: 7 }), begun("a", { status: "in_progress" })],
      ['call read {"input":7}'],
    ],
    [
      "in progress",
      [begun("a"), begun("a", { status: "in_progress" })],
      ['call read {"title":"Title of a"}'],
    ],
  ];
  for (const [name, updates, expected] of rows)
    it(`report a call ${name}`, () => expect(lines(opened().take(...updates))).toEqual(expected));

  it("report a call before its result, however late the result is", () => {
    const { log, take } = opened();
    take(begun("a"));
    expect(lines(log.end(done).acts)[0]).toBe('call read {"title":"Title of a"}');
  });
});

describe("calls", () => {
  it("each have their own ID", () => {
    const { take } = opened();
    const huge = "x".repeat(100_000);
    const ids = ["", "a", "a", "a-2", huge, "no spaces\n", "\ud800"].flatMap((id) =>
      take(begun(id), ended(id)).flatMap((act) =>
        act.act === "say" && act.message.role === "toolResult" ? [act.message.toolCallId] : [],
      ),
    );
    expect(new Set(ids).size).toBe(7);
    expect(ids.slice(1, 4)).toEqual(["a", "a-2", "a-2-2"]);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_.:-]{1,80}$/);
  });

  it("ignore updates after their end", () => {
    const { log, take } = opened();
    take(begun("a"), ended("a"));
    expect(take(ended("a"), ended("a", { status: "in_progress" }))).toEqual([]);
    expect(says(log.end(done).acts)).toEqual(["stop: "]);
  });

  it("count as one if they are started twice while open", () => {
    const { log, take } = opened();
    take(begun("a"), begun("a", { rawInput: { x: 1 } }));
    expect(log.call("a")).toMatchObject({ id: "a", arguments: { x: 1 } });
    expect(says(log.end(done).acts)).toEqual(["toolUse: →a", "result a failed", "stop: "]);
    expect(log.call("a")).toBeNull();
  });

  const names: [string, object, string][] = [
    ["its kind", { kind: "edit" }, "edit"],
    ["no known field", { kind: undefined }, "other"],
    ["the agent's own", { name: "grep_files" }, "grep_files"],
    ["the name in Claude Code", { _meta: { claudeCode: { toolName: "mcp__x__y" } } }, "mcp__x__y"],
    ["a name that the guard accepts", { name: "run a command!" }, "run_a_command_"],
    ["the kind if there is no readable name", { name: "???" }, "read"],
  ];
  for (const [name, more, expected] of names)
    it(`use ${name} as the tool name`, () => {
      const { log, take } = opened();
      take(begun("a", more));
      expect(log.call("a")?.name).toBe(expected);
    });

  const inputs: [string, object, object][] = [
    ["an object", { rawInput: { path: "x" } }, { path: "x" }],
    ["a list", { rawInput: [1] }, { input: [1] }],
    ["a text", { rawInput: "ls" }, { input: "ls" }],
    [
      "a place",
      { locations: [{ path: "/w/a", line: 3 }] },
      { title: "Title of a", locations: [{ path: "/w/a", line: 3 }] },
    ],
  ];
  for (const [name, more, expected] of inputs)
    it(`get arguments from ${name}`, () => {
      const { log, take } = opened();
      take(begun("a", more));
      expect(log.call("a")?.arguments).toEqual(expected);
    });

  it("keep the title, the locations and late input with the result", () => {
    const { take } = opened();
    take(begun("a", { locations: [{ path: "/w/a" }] }), begun("b"), ended("b"));
    const [act] = take(ended("a", { rawInput: { late: true } })).filter((each) => each.act === "say");
    expect(act).toMatchObject({
      message: {
        details: {
          status: "completed",
          kind: "read",
          title: "Title of a",
          locations: [{ path: "/w/a" }],
          input: { late: true },
        },
      },
    });
  });

  it("cannot imitate a Skein tool that puts its session to sleep", () => {
    const { take } = opened();
    const acts = take(ended("a", { name: "sessions_yield", content: [], rawOutput: { status: "yielded" } }));
    expect(acts.at(-1)).toMatchObject({ message: { details: { status: "completed" } } });
  });
});
