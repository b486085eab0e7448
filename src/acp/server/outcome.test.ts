import { describe, expect, test } from "vitest";
import type { SentPayload } from "../../protocol/runs.ts";
import { patchOf } from "./options.ts";
import { limitText, promptResponse } from "./outcome.ts";
import { modeOf } from "./permissions.ts";
import { refusalOf } from "./refusal.ts";

const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, totalTokens: 10 };
const named = { runId: "r", sessionKey: "agent:main:main", sessionId: "s", finished: true, usage };
const sent = (state: SentPayload["state"], code?: string): SentPayload => ({
  ...named,
  state,
  ...(code === undefined ? {} : { error: { code, message: `It was ${code}.` } }),
});

describe("how a turn ends", () => {
  test.each([
    [sent("ok"), "stop", false, "end_turn"],
    [sent("ok"), null, false, "end_turn"],
    [sent("merged"), "stop", false, "end_turn"],
    [sent("ok"), "length", false, "max_tokens"],
    [sent("aborted", "aborted"), null, false, "cancelled"],
    [sent("ok"), "stop", true, "cancelled"],
    [sent("error", "model_failed"), null, true, "cancelled"],
    [sent("error", "budget_exceeded"), null, false, "max_turn_requests"],
    [sent("error", "step_limit"), null, false, "max_turn_requests"],
  ])("[AAG9] %j with %s, cancelled %s: %s", (each, stopReason, isCancelled, expected) => {
    const response = promptResponse({ sent: each, stopReason, isCancelled });
    expect(response).toMatchObject({
      stopReason: expected,
      usage: { inputTokens: 1, outputTokens: 2, cachedReadTokens: 3, cachedWriteTokens: 4, totalTokens: 10 },
    });
  });

  test.each([
    [sent("error", "model_failed"), "model_failed", "It was model_failed."],
    [sent("timeout", "timeout"), "timeout", "It was timeout."],
    [sent("error", "not_found"), "not_found", "It was not_found."],
    [sent("error"), "error", "The run ended as error."],
  ])("[AAG9] %j is an error with our code and words", (each, code, message) => {
    const act = () => promptResponse({ sent: each, stopReason: null, isCancelled: false });
    expect(act).toThrow(expect.objectContaining({ code: -32603, message, data: { code } }));
  });

  test("[AAG9] what a limit ended says which", () => {
    expect(limitText(sent("error", "budget_exceeded"))).toBe("It was budget_exceeded.");
    expect(limitText(sent("error", "model_failed"))).toBeNull();
  });
});

describe("refusals", () => {
  test.each([
    [Object.assign(new Error("gone"), { code: "not_found" }), -32002, "not_found"],
    [Object.assign(new Error("bad"), { code: "invalid_arguments" }), -32602, "invalid_arguments"],
    [Object.assign(new Error("no"), { code: "forbidden" }), -32603, "forbidden"],
    [Object.assign(new Error("bad"), { code: "invalid_key" }), -32602, "invalid_key"],
    [Object.assign(new Error("bad"), { code: "invalid_request", reason: null }), -32602, "invalid_request"],
    [
      Object.assign(new Error("bad"), { code: "invalid_request", reason: "invalid_key" }),
      -32602,
      "invalid_key",
    ],
    [Object.assign(new Error("no"), { code: "conflict", reason: "fenced" }), -32603, "fenced"],
    [new Error("oh"), -32603, "internal"],
    ["oh", -32603, "internal"],
  ])("[AAG9] %s has a number of ACP and our code", (error, number, code) => {
    expect(refusalOf(error)).toMatchObject({ code: number, data: { code } });
  });

  test("[AAG10] modes are three", () => {
    expect(modeOf("deny")).toBe("deny");
    expect(() => modeOf("yolo")).toThrow(/no mode "yolo"/);
  });

  test.each([
    ["model", "a/b", { model: "a/b" }],
    ["model", "default", { model: null }],
    ["thought_level", "high", { thinkingLevel: "high" }],
    ["thought_level", "default", { thinkingLevel: null }],
  ])("[AAG11] %s %s", (id, value, patch) => {
    expect(patchOf(id, value)).toEqual(patch);
  });

  test.each([
    ["thought_level", "huge", /no thinking level "huge"/],
    ["colour", "red", /no option "colour"/],
    ["model", true, /takes no boolean/],
  ])("[AAG11] %s %s is refused", (id, value, problem) => {
    expect(() => patchOf(id, value)).toThrow(problem);
  });
});
