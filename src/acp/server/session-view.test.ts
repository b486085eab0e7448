import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ReceivedEvent } from "../../protocol/calls.ts";
import type { WireEntry } from "../../protocol/session-details.ts";
import { missingEnd, restartText, SessionView } from "./session-view.ts";
import { toolContent, toolKind, toolTitle } from "./tool-calls.ts";

let number = 0;
const about = { at: 0, sessionKey: "agent:main:main", sessionId: "s", runId: "r" };

function entry(fields: object): WireEntry {
  number += 1;
  return { id: `e${number}`, parentId: null, timestamp: "", ...fields } as unknown as WireEntry;
}
const message = (role: string, content: unknown, more: object = {}) =>
  entry({ type: "message", message: { role, content, ...more } });
const call = (id: string, name = "sessions_list") => ({
  type: "toolCall",
  id,
  name,
  arguments: { limit: 1 },
});
const answer = (...content: object[]) => message("assistant", content, { stopReason: "stop" });
const result = (toolCallId: string, isError = false) =>
  message("toolResult", [{ type: "text", text: "done" }], { toolCallId, toolName: "sessions_list", isError });

function view() {
  let ids = 0;
  const made = new SessionView(() => `a${++ids}`);
  made.showEvent(entry({ type: "later" }));
  return made;
}
const delta = (text: string, kind: "text" | "thinking" = "text") => ({ ...about, kind, delta: text });
type Tool = Extract<ReceivedEvent, { event: "run.tool" }>["payload"];
const tool = (phase: "call" | "result", toolCallId: string): Tool => ({
  ...about,
  phase,
  toolCallId,
  toolName: "sessions_list",
  ...(phase === "call" ? { arguments: {} } : { isError: false, content: [{ type: "text", text: "done" }] }),
});

/** Returns one line for each update. */
function shown(updates: readonly SessionUpdate[]): string[] {
  return updates.map((each) => {
    switch (each.sessionUpdate) {
      case "user_message_chunk":
      case "agent_message_chunk":
      case "agent_thought_chunk": {
        const { content } = each;
        const text = content.type === "text" ? content.text : content.type;
        return `${each.sessionUpdate.split("_")[0]}${each.sessionUpdate.includes("thought") ? " thinks" : ""}: ${text}`;
      }
      case "tool_call":
      case "tool_call_update":
        return `${each.sessionUpdate} ${each.toolCallId} ${each.status}`;
      case "plan":
        return `plan: ${each.entries.map(({ content, status }) => `${content} ${status}`).join(", ")}`;
      default:
        return each.sessionUpdate;
    }
  });
}

describe("entries in an editor", () => {
  test.each<[string, () => WireEntry, readonly string[]]>([
    ["a user message", () => message("user", "hi"), ["user: hi"]],
    [
      "an image next to text",
      () =>
        message("user", [
          { type: "text", text: "see" },
          { type: "image", data: "aGk=", mimeType: "image/png" },
        ]),
      ["user: see", "user: image"],
    ],
    [
      "an answer with its thinking",
      () => answer({ type: "thinking", thinking: "hm" }, { type: "text", text: "yes" }),
      ["agent thinks: hm", "agent: yes"],
    ],
    [
      "a call",
      () => answer({ type: "text", text: "I look" }, call("c")),
      ["agent: I look", "tool_call c pending"],
    ],
    ["an empty answer", () => answer({ type: "text", text: "" }), []],
    [
      "a message of Skein",
      () => entry({ type: "custom_message", customType: "x", content: "awake" }),
      ["user: awake"],
    ],
    [
      "a hidden message",
      () => entry({ type: "custom_message", customType: "x", content: "a", display: false }),
      [],
    ],
    [
      "a plan",
      () =>
        entry({
          type: "custom",
          customType: "acp.plan",
          data: { entries: [{ content: "dig", status: "completed" }, { content: "plant" }, 7] },
        }),
      ["plan: dig completed, plant pending"],
    ],
    ["an invalid plan", () => entry({ type: "custom", customType: "acp.plan", data: "no" }), []],
    ["another note", () => entry({ type: "custom", customType: "x", data: {} }), []],
    ["a model change", () => entry({ type: "model_change", provider: "a", modelId: "b" }), []],
    ["an unknown entry type", () => entry({ type: "later" }), []],
    ["an unknown role", () => message("narrator", "x"), []],
  ])("[AAG3] %s", (_, make, lines) => {
    expect(shown(view().showEntry(make()))).toEqual(lines);
  });

  test("[AAG3] a command typed at a prompt is shown as a finished tool", () => {
    const ran = (exitCode: number) =>
      message("bashExecution", undefined, { command: "ls", output: "a", exitCode });
    expect(shown(view().showEntry(ran(0))).map((line) => line.split(" ").at(-1))).toEqual([
      "pending",
      "completed",
    ]);
    expect(shown(view().showEntry(ran(1))).map((line) => line.split(" ").at(-1))).toEqual([
      "pending",
      "failed",
    ]);
  });

  test("[AAG7] each entry is shown once, and what was typed in the editor is not repeated", () => {
    const one = view();
    const said = message("user", "hi");
    one.expectTyped(said.id);
    expect(one.showEvent(said)).toEqual([]);
    const other = message("user", "from elsewhere");
    expect(shown(one.showEvent(other))).toEqual(["user: from elsewhere"]);
    expect(one.showEntry(other)).toEqual([]);
    expect(one.showEvent(other)).toEqual([]);
  });
});

describe("streamed answers", () => {
  test("[AAG7] an entry whose deltas arrived adds nothing", () => {
    const one = view();
    one.showDelta(delta("hm", "thinking"));
    one.showDelta(delta("ye"));
    one.showDelta(delta("s"));
    const whole = answer({ type: "thinking", thinking: "hm" }, { type: "text", text: "yes" }, call("c"));
    expect(shown(one.showEvent(whole))).toEqual(["tool_call c pending"]);
  });

  test("[AAG7] an entry adds what its deltas left out", () => {
    const one = view();
    one.showDelta(delta("good "));
    expect(shown(one.showEvent(answer({ type: "text", text: "good morning" })))).toEqual(["agent: morning"]);
  });

  test("[AAG7] the streamed part of a restarted answer is marked as discarded", () => {
    const one = view();
    expect(one.restartAnswer()).toEqual([]);
    const [first] = one.showDelta(delta("goo"));
    expect(shown(one.restartAnswer())).toEqual([`agent: ${restartText}`]);
    const [second] = one.showDelta(delta("good"));
    expect([first, second]).toMatchObject([{ messageId: "a2" }, { messageId: "a3" }]);
    expect(one.showEvent(answer({ type: "text", text: "good" }))).toEqual([]);
  });

  test("[AAG7] deltas that do not match the entry are followed by the whole entry", () => {
    const one = view();
    one.showDelta(delta("gd"));
    const lines = shown(one.showEvent(answer({ type: "text", text: "good" })));
    expect(lines).toEqual([`agent: ${restartText}`, "agent: good"]);
  });

  test("[AAG7] after a gap, deltas and tools that were already read are not shown again", () => {
    const one = view();
    const read = answer({ type: "text", text: "one" }, call("c"));
    one.showDelta(delta("o"));
    one.markGap();
    expect(shown(one.showEntry(read))).toEqual(["agent: ne", "tool_call c pending"]);
    expect(shown(one.showEntry(result("c")))).toEqual(["tool_call_update c completed"]);
    expect(one.showDelta(delta("ne"))).toEqual([]);
    expect(one.showEvent(read)).toEqual([]);
    expect(one.showTool(tool("call", "c"))).toEqual([]);
    expect(one.showTool(tool("result", "c"))).toEqual([]);
    expect(shown(one.showEvent(answer({ type: "text", text: "two" })))).toEqual(["agent: two"]);
    expect(shown(one.showDelta(delta("three")))).toEqual(["agent: three"]);
  });

  test("[AAG7] ignores deltas before the first entry, and deltas of entries that were already read", () => {
    const one = new SessionView(() => "a");
    expect(one.showDelta(delta("the middle"))).toEqual([]);
    const read = answer({ type: "text", text: "one" }, call("c"));
    one.showEvent(message("user", "hi"));
    expect(shown(one.showDelta(delta("o")))).toEqual(["agent: o"]);
    expect(shown(one.showEntry(read))).toEqual(["agent: ne", "tool_call c pending"]);
    expect(one.showDelta(delta("ne"))).toEqual([]);
    expect(one.showEvent(read)).toEqual([]);
    expect(shown(one.showTool(tool("call", "c")))).toEqual(["tool_call_update c in_progress"]);
    expect(shown(one.showDelta(delta("two")))).toEqual(["agent: two"]);
  });

  test("[AAG7] shows an answer once, however it is split and wherever it stops, ignoring spaces", () => {
    const words = fc.array(fc.constantFrom("a", "b", " ", "\n", "é", "👍"), { maxLength: 12 });
    fc.assert(
      fc.property(words, fc.nat(12), (pieces, stop) => {
        const one = view();
        const whole = pieces.join("");
        const live = pieces.slice(0, stop).flatMap((piece) => one.showDelta(delta(piece)));
        const rest = one.showEvent(answer({ type: "text", text: whole }));
        const all = [...live, ...rest].map((each) =>
          "content" in each && each.content !== null && "text" in each.content ? each.content.text : "",
        );
        expect(all.join("").replace(/\s/g, "")).toBe(whole.replace(/\s/g, ""));
      }),
    );
  });

  test.each([
    ["good morning", "good", " morning"],
    ["a\nb", "ab", ""],
    ["ab", "a b", ""],
    ["ab", "ax", null],
    ["ab", "abc", null],
    ["", "", ""],
  ])("[AAG7] of %j after %j leaves %j", (whole, begun, rest) => {
    expect(missingEnd(whole, begun)).toBe(rest);
  });
});

describe("tools in an editor", () => {
  test("a call starts once, runs and ends once", () => {
    const one = view();
    const updates = [
      ...one.showEvent(answer(call("c"))),
      ...one.showTool(tool("call", "c")),
      ...one.showTool(tool("result", "c")),
      ...one.showEvent(result("c")),
    ];
    expect(shown(updates)).toEqual([
      "tool_call c pending",
      "tool_call_update c in_progress",
      "tool_call_update c completed",
    ]);
    expect(updates[0]).toMatchObject({ name: "sessions_list", kind: "read", rawInput: { limit: 1 } });
    expect(updates[2]).toMatchObject({ content: [{ type: "content", content: { text: "done" } }] });
  });

  test("a repeated ID is another call", () => {
    const one = view();
    const lines = [answer(call("c")), result("c"), answer(call("c")), result("c", true)].flatMap((each) =>
      shown(one.showEntry(each)),
    );
    expect(lines).toEqual([
      "tool_call c pending",
      "tool_call_update c completed",
      "tool_call c#2 pending",
      "tool_call_update c#2 failed",
    ]);
    expect(one.tools.editorId("c")).toBe("c#2");
  });

  test("an event before its entry starts the call, and the entry does not start it again", () => {
    const one = view();
    expect(shown(one.showTool(tool("call", "c")))).toEqual(["tool_call c in_progress"]);
    expect(one.showEvent(answer(call("c")))).toEqual([]);
    expect(shown(one.showEvent(result("c")))).toEqual(["tool_call_update c completed"]);
  });

  test("a result without a call and a call without a result both start and end", () => {
    const one = view();
    expect(shown(one.showEntry(result("x")))).toEqual([
      "tool_call x pending",
      "tool_call_update x completed",
    ]);
    one.showEntry(answer(call("c")));
    expect(shown(one.tools.abandon())).toEqual(["tool_call_update c failed"]);
    expect(one.tools.abandon()).toEqual([]);
  });

  test.each([
    ["sessions_history", "read"],
    ["sessions_send", "other"],
    ["sessions_spawn", "other"],
    ["session_search", "search"],
    ["read_file", "read"],
    ["fs__writeFile", "edit"],
    ["Bash", "execute"],
    ["web-fetch", "fetch"],
    ["delete_it", "delete"],
    ["pay", "other"],
    ["toString", "other"],
  ])("%s is of kind %s", (name, kind) => {
    expect(toolKind(name)).toBe(kind);
  });

  test("titles are one line of limited length, and content is what an editor can show", () => {
    expect(toolTitle("pay", {})).toBe("pay");
    expect(toolTitle("pay", { to: "a\nb" })).toBe('pay {"to":"a\\nb"}');
    expect(toolTitle("pay", { to: "x".repeat(500) }).length).toBeLessThanOrEqual(121);
    const image = { type: "image", data: "aGk=", mimeType: "image/png" };
    expect(toolContent([{ type: "text", text: "a" }, image, { type: "text", text: "" }, null, 7])).toEqual([
      { type: "content", content: { type: "text", text: "a" } },
      { type: "content", content: image },
    ]);
  });
});
