import { describe, expect, test } from "vitest";
import type { Entry } from "../core/entries.ts";
import type { Tail } from "./recovery.ts";
import { recoveryActions, recoveryOf, tailOf, tails } from "./recovery.ts";

let count = 0;
const entry = (fields: object): Entry =>
  ({
    id: `e${++count}`,
    parentId: null,
    timestamp: "2026-01-01T00:00:00.000Z",
    ...fields,
  }) as unknown as Entry;
const message = (fields: object) => entry({ type: "message", message: fields });
const user = message({ role: "user", content: "hi" });
const label = entry({ type: "label", targetId: "x", label: "y" });
const meta = entry({ type: "custom", customType: "skein.meta", data: {} });
const answer = (stopReason: string, calls: readonly string[] = [], more: object = {}) =>
  message({
    role: "assistant",
    stopReason,
    content: calls.map((name, at) => ({ type: "toolCall", id: `${name}-${at}`, name, arguments: {} })),
    ...more,
  });
const result = (toolCallId: string, text = "done", more: object = {}) =>
  message({ role: "toolResult", toolCallId, toolName: "t", content: [{ type: "text", text }], ...more });
const yielded = JSON.stringify({ status: "yielded", message: "Turn yielded.", waitingFor: ["r"] });

const branches: readonly [Tail, readonly Entry[]][] = [
  ["none", []],
  ["none", [label, meta]],
  ["user", [answer("stop"), user]],
  ["user", [user, label, meta]],
  ["custom_message", [user, entry({ type: "custom_message", customType: "c", content: "x", display: true })]],
  ["bashExecution", [message({ role: "bashExecution", command: "ls", output: "" })]],
  ["custom", [message({ role: "custom", customType: "c", content: "x" })]],
  ["other", [message({ role: "of another program", content: "x" })]],
  ["assistant_open_calls", [user, answer("toolUse", ["a", "b"])]],
  ["assistant_open_calls", [user, answer("toolUse", ["a", "b"]), result("b-1"), label]],
  [
    "assistant_open_calls",
    [user, answer("toolUse", ["sessions_yield", "b"]), result("sessions_yield-0", yielded)],
  ],
  ["results_answered", [user, answer("toolUse", ["a", "b"]), result("b-1"), result("a-0")]],
  ["results_answered", [user, result("lost")]],
  [
    "results_answered",
    [user, answer("toolUse", ["sessions_yield"]), result("sessions_yield-0", '{"status":"error"}')],
  ],
  ["results_answered", [user, answer("toolUse", ["sessions_yield"]), result("sessions_yield-0", "no JSON")]],
  ["results_answered", [user, answer("toolUse", ["other"]), result("other-0", yielded)]],
  ["results_of_yield", [user, answer("toolUse", ["sessions_yield"]), result("sessions_yield-0", yielded)]],
  [
    "results_of_yield",
    [
      user,
      answer("toolUse", ["a", "sessions_yield"]),
      result("a-0"),
      result("sessions_yield-1", "", { details: { status: "yielded" } }),
    ],
  ],
  ["assistant_stop", [user, answer("stop"), meta]],
  ["assistant_length", [user, answer("length")]],
  ["assistant_error", [user, answer("error")]],
  ["assistant_error", [user, answer("error", ["a"])]],
  ["assistant_aborted", [user, answer("aborted")]],
];

describe("recovery", () => {
  test.each(branches)("recognizes the end of a branch: %s", (tail, path) => {
    expect(tailOf(path).tail).toBe(tail);
  });

  test("covers every row of the table", () => {
    expect([...new Set(branches.map(([tail]) => tail))]).toEqual([...tails]);
    expect(Object.keys(recoveryActions)).toEqual([...tails]);
  });

  const rows: readonly [Tail, string][] = [
    ["none", "run_turn"],
    ["user", "run_turn"],
    ["custom_message", "run_turn"],
    ["bashExecution", "run_turn"],
    ["custom", "run_turn"],
    ["other", "run_turn"],
    ["assistant_open_calls", "finish_calls"],
    ["results_answered", "ask_model"],
    ["results_of_yield", "sleep"],
    ["assistant_stop", "close"],
    ["assistant_length", "close"],
    ["assistant_error", "close_error"],
    ["assistant_aborted", "close_aborted"],
  ];
  test.each(rows)("%s: %s", (tail, action) => {
    for (const [, path] of branches.filter(([each]) => each === tail)) {
      expect(recoveryOf(path, { wasWoken: false, mostAttempts: 4, startedAt: null })).toBe(action);
    }
  });

  const written = Date.parse("2026-01-01T00:00:00.000Z");
  test.each(rows)("%s: %s, unless it is an answer from before the run was claimed", (tail, action) => {
    const isAnswer = ["assistant_stop", "assistant_length", "assistant_error", "assistant_aborted"].includes(
      tail,
    );
    for (const [, path] of branches.filter(([each]) => each === tail)) {
      const asOf = (startedAt: number) => recoveryOf(path, { wasWoken: false, mostAttempts: 4, startedAt });
      expect(asOf(written)).toBe(action);
      expect(asOf(written + 1)).toBe(isAnswer ? "run_turn" : action);
    }
  });

  test("a run that was woken since it yielded continues", () => {
    const path = [user, answer("toolUse", ["sessions_yield"]), result("sessions_yield-0", yielded)];
    expect(recoveryOf(path, { wasWoken: true, mostAttempts: 4, startedAt: null })).toBe("ask_model");
  });

  test.each([
    [{ attempts: 1, retryable: true }, "retry"],
    [{ attempts: 3, retryable: true }, "retry"],
    [{ attempts: 4, retryable: true }, "close_error"],
    [{ attempts: 1, retryable: false }, "close_error"],
    [{ retryable: true }, "close_error"],
    [{ attempts: 1 }, "close_error"],
    [undefined, "close_error"],
  ])("an error marked %j: %s", (skein, action) => {
    const path = [user, answer("error", [], skein === undefined ? {} : { skein })];
    expect(recoveryOf(path, { wasWoken: false, mostAttempts: 4, startedAt: null })).toBe(action);
  });
});
