import { describe, expect, it } from "vitest";
import type { Loose } from "../../../test/support/acp-updates.ts";
import { begun, done, ended, openedLog, said, says, thought } from "../../../test/support/acp-updates.ts";
import type { Act } from "./turn-log.ts";
import type { AgentTurnEnd } from "./turn-outcome.ts";

const messages = (acts: readonly Act[]) => acts.flatMap((act) => (act.act === "say" ? [act.message] : []));
const notes = (acts: readonly Act[]) => acts.flatMap((act) => (act.act === "note" ? [act.draft] : []));

describe("the end of a turn", () => {
  const rows: [string, AgentTurnEnd, object][] = [
    ["end_turn", { stopReason: "end_turn" }, { stopReason: "stop" }],
    ["max_tokens", { stopReason: "max_tokens" }, { stopReason: "length" }],
    ["max_turn_requests", { stopReason: "max_turn_requests" }, { stopReason: "length" }],
    [
      "refusal",
      { stopReason: "refusal" },
      { stopReason: "error", errorMessage: "The agent refused to continue." },
    ],
    [
      "cancelled",
      { stopReason: "cancelled" },
      { stopReason: "aborted", errorMessage: "The turn was aborted." },
    ],
    [
      "why it was cancelled",
      { stopReason: "cancelled", reason: "Permission was denied." },
      { stopReason: "aborted", errorMessage: "Permission was denied." },
    ],
    ["a reason of later versions", { stopReason: "paused" }, { stopReason: "error" }],
    [
      "a failure",
      { failed: "The process ended." },
      { stopReason: "error", errorMessage: "The process ended." },
    ],
  ];
  for (const [name, end, expected] of rows)
    it(`adds ${name} to the last message`, () => {
      const { log, take } = openedLog();
      take(said("so far"));
      const { acts, stopReason } = log.end(end);
      expect(messages(acts)).toMatchObject([
        { role: "assistant", provider: "acp", model: "crab", content: [{ text: "so far" }], ...expected },
      ]);
      expect(expected).toMatchObject({ stopReason });
    });

  it("answers open calls, also in waiting steps", () => {
    const { log, take } = openedLog();
    take(begun("a"), begun("b"), ended("b"), begun("c"), said("tail"));
    const partial = { type: "content", content: { type: "text", text: "half" } };
    take({ sessionUpdate: "tool_call_update", toolCallId: "c", content: [partial] });
    const { acts } = log.end({ stopReason: "cancelled" });
    expect(says(acts)).toEqual(["result a failed", "toolUse: →c", "result c failed", "aborted: tail"]);
    expect(messages(acts)[2]).toMatchObject({
      content: [{ text: expect.stringContaining("the agent's turn was aborted") }, { text: "half" }],
    });
  });

  it("keeps a notice without an ID separate from a message with one", () => {
    const { log, take } = openedLog();
    take(said("Warning: "), said("old.\n\n"), said("I am", "1"), said(" here.", "1"));
    expect(says(log.end(done).acts)).toEqual(["stop: Warning: old.\n\n | I am here."]);
  });

  it("reports the end of a turn in which the agent said nothing", () => {
    const { log, take } = openedLog();
    expect(messages(log.end(done).acts)).toMatchObject([
      { role: "assistant", content: [{ type: "text", text: "" }], stopReason: "stop" },
    ]);
    expect(log.end(done).acts).toEqual([]);
    expect(take(said("late"))).toEqual([]);
  });

  const replies: [string, Loose[], string][] = [
    ["its text", [said("a"), said("b")], "ab"],
    ["its text since the last call", [said("a"), begun("c"), ended("c"), said("b")], "b"],
    ["its text while the call was running", [said("a"), begun("c"), said("b"), ended("c")], "b"],
    ["the last text", [said("a"), begun("c"), ended("c"), begun("d"), ended("d"), said(" ")], "a"],
    ["no thoughts", [thought("hm")], ""],
  ];
  const several: typeof replies = [
    ["the last of several messages", [said("a", "1"), said("b", "2"), said("c", "2")], "bc"],
    ["a message with an ID after a notice without one", [said("Warning\n\n"), said("a", "1")], "a"],
    ["a message with an ID before a notice without one", [said("a", "1"), said("Warning")], "a"],
    ["a message that a notice interrupts", [said("a", "1"), said("Warning"), said("b", "1")], "ab"],
    ["a message that thoughts interrupt", [said("a", "1"), thought("hm"), said("b", "1")], "ab"],
    ["the message before a blank one", [said("a", "1"), said("\n", "2")], "a"],
    ["a notice if there is nothing else", [said(" ", "1"), said("Warning")], "Warning"],
    ["the same message since the last call", [said("a", "1"), begun("c"), ended("c"), said("b", "1")], "b"],
    ["a message without an ID since the last call", [said("a", "1"), begun("c"), ended("c"), said("b")], "b"],
  ];
  const replyTo = (updates: readonly Loose[]) => {
    const { log, take } = openedLog();
    take(...updates);
    return log.end(done).reply;
  };
  for (const [name, updates, expected] of replies)
    it(`replies with ${name}`, () => expect(replyTo(updates)).toBe(expected));
  for (const [name, updates, expected] of several)
    it(`replies with ${name}`, () => expect(replyTo(updates)).toBe(expected));
});

describe("notes", () => {
  const plan = (...contents: string[]): Loose => ({
    sessionUpdate: "plan",
    entries: contents.map((content) => ({ content, priority: "high", status: "pending" })),
  });
  const notice = (title: string): Loose => ({ sessionUpdate: "notice", severity: "warning", title });

  it("writes the newest plan between steps, and only if it changed", () => {
    const { log, take } = openedLog();
    const acts = take(plan("one"), plan("one", "two"), begun("a"), plan("three"), ended("a"), plan("three"));
    acts.push(...take(begun("b"), ended("b"), plan("four"), plan("three")));
    acts.push(...log.end(done).acts);
    expect(says(acts)).toEqual([
      "note acp.plan",
      "toolUse: →a",
      "result a",
      "toolUse: →b",
      "result b",
      "stop: ",
    ]);
    expect(notes(acts)).toEqual([
      {
        type: "custom",
        customType: "acp.plan",
        data: { entries: [{ content: "three", priority: "high", status: "pending" }] },
      },
    ]);
  });

  const plans: [string, object, object][] = [
    [
      "items",
      { type: "items", planId: "p", entries: [{ content: "x" }] },
      { entries: [{ content: "x", priority: "", status: "" }] },
    ],
    ["a file", { type: "file", planId: "p", uri: "file:///plan.md" }, { uri: "file:///plan.md" }],
    ["markdown", { type: "markdown", planId: "p", content: "# Plan" }, { markdown: "# Plan" }],
  ];
  for (const [name, given, data] of plans)
    it(`writes a plan of ${name}, and its removal`, () => {
      const { log, take } = openedLog();
      const acts = take({ sessionUpdate: "plan_update", plan: given }, begun("a"), ended("a"));
      take(
        { sessionUpdate: "plan_removed", planId: "another" },
        { sessionUpdate: "plan_removed", planId: "p" },
      );
      acts.push(...log.end(done).acts);
      expect(notes(acts)).toMatchObject([{ data }, { data: { entries: [] } }]);
    });

  it("writes notices once no call is open, and counts the surplus ones", () => {
    const { log, take } = openedLog();
    take(begun("a"), begun("b"), ended("a"));
    expect(take(...Array.from({ length: 5000 }, (_, at) => notice(`n${at}`)))).toEqual([]);
    const acts = [...take(ended("b")), ...log.end(done).acts];
    expect(notes(acts)).toHaveLength(21);
    expect(notes(acts)[0]).toMatchObject({
      customType: "acp.notice",
      data: { severity: "warning", title: "n0" },
    });
    expect(notes(acts)[20]).toMatchObject({ data: { title: "4980 more were omitted." } });
    expect(says(acts)[0]).toBe("result b");
  });

  it("writes a compaction when it succeeds or fails", () => {
    const { log, take } = openedLog();
    const compaction = (status: string, more: object = {}): Loose => ({
      sessionUpdate: "compaction_update",
      compactionId: "k",
      status,
      ...more,
    });
    const chunk = (text: string, compactionId = "k"): Loose => ({
      sessionUpdate: "compaction_summary_chunk",
      compactionId,
      content: { type: "text", text },
    });
    take(compaction("in_progress"), chunk("In "), chunk("short"), compaction("completed"));
    take(chunk("half", "l"), compaction("failed", { error: "too long", summary: null }));
    expect(notes(log.end(done).acts).map((draft) => ("data" in draft ? draft.data : null))).toEqual([
      { status: "completed", summary: "In short" },
      { status: "failed", error: "too long" },
      { status: "in_progress", summary: "half" },
    ]);
  });
});

describe("information for the caller", () => {
  const usage = (amount: number, currency = "USD"): Loose => ({
    sessionUpdate: "usage_update",
    used: 500,
    size: 1000,
    cost: { amount, currency },
  });

  it("returns the cost, and ignores known updates that are not relevant", () => {
    const { log, take } = openedLog();
    const quiet = [
      "user_message_chunk",
      "current_mode_update",
      "available_commands_update",
      "config_option_update",
      "session_info_update",
    ];
    expect(take(...quiet.map((sessionUpdate) => ({ sessionUpdate })), usage(0.5))).toEqual([]);
    expect(log.cost).toBe(0.5);
    expect(notes(log.end(done).acts)).toEqual([]);
  });

  it("lists unknown kinds of updates and their counts at the end", () => {
    const { log, take } = openedLog();
    const unknown = (sessionUpdate: unknown) => ({ sessionUpdate }) as Loose;
    take(unknown("of later\nversions"), unknown("other"), unknown("other"), unknown(7));
    for (let at = 0; at < 50; at++) take(unknown(`kind ${at}`));
    take(begun("a"), ended("a"), ended("a"));
    const [note, ...more] = notes(log.end(done).acts);
    expect(more).toEqual([]);
    expect(note).toMatchObject({
      customType: "acp.notice",
      data: {
        severity: "info",
        title: "Skipped updates of unknown kinds: 54.",
        description: expect.stringMatching(
          /^of later versions, other, \(no kind\), kind 0, (?:kind \d, ){6}…$/,
        ),
      },
    });
  });

  it("takes the tokens as those of the turn", () => {
    const told = {
      totalTokens: 60,
      inputTokens: 10,
      outputTokens: 20,
      cachedReadTokens: 25,
      cachedWriteTokens: 5,
    };
    const { usage: counted, acts } = openedLog().log.end({ stopReason: "end_turn", usage: told });
    expect(counted).toEqual({ input: 10, output: 20, cacheRead: 25, cacheWrite: 5, totalTokens: 60 });
    expect(messages(acts)).toMatchObject([
      { usage: { ...counted, cost: { total: 0 } }, skein: { costKnown: false } },
    ]);
  });

  const thoughts: [string, number, number][] = [
    ["in addition to the answer", 37, 27],
    ["within the answer", 30, 20],
  ];
  for (const [name, totalTokens, output] of thoughts)
    it(`counts thoughts ${name} according to the total`, () => {
      const told = { totalTokens, inputTokens: 10, outputTokens: 20, thoughtTokens: 7 };
      const end = openedLog().log.end({ stopReason: "end_turn", usage: told });
      expect(end.usage).toMatchObject({ output, totalTokens });
    });

  it("ignores invalid numbers", () => {
    const told = {
      totalTokens: "x",
      inputTokens: -1,
      outputTokens: Number.NaN,
      cachedReadTokens: Number.POSITIVE_INFINITY,
    };
    const { usage: counted } = openedLog().log.end({ stopReason: "end_turn", usage: told });
    expect(counted).toMatchObject({ input: 0, output: 0, cacheRead: 1e12 });
  });

  const costs: [string, number | null, Loose[], number | undefined][] = [
    ["a new session", 0, [usage(0.1), usage(0.3)], 0.3],
    ["a later turn", 0.1, [usage(0.3)], 0.2],
    ["a session with an unknown cost", null, [usage(5), usage(5.5)], 0.5],
    ["an agent that restarts its count", 3, [usage(0.5)], 0.5],
    ["another currency", 0, [usage(9, "EUR"), usage(9, "credits")], undefined],
    ["an invalid number", 0, [usage(Number.NaN), usage(-1)], undefined],
    ["no reported cost", 0, [], undefined],
  ];
  for (const [name, costBefore, updates, expected] of costs)
    it(`computes the cost with ${name}`, () => {
      const { log, take } = openedLog({ costBefore });
      take(...updates);
      expect(log.end({ stopReason: "cancelled" }).usage.cost?.total).toBe(expected);
    });
});
