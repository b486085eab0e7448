import type { ContentBlock } from "@agentclientprotocol/sdk/unstable";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SentPayload } from "../../protocol/runs.ts";
import { limitText, promptInput, promptResponse } from "./prompt.ts";

const text = (words: string): ContentBlock => ({ type: "text", text: words });
const file = (words: string, uri = "file:///w/a.ts"): ContentBlock => ({
  type: "resource",
  resource: { uri, text: words },
});
const blob = (mimeType: string | null, uri = "file:///w/cat.png"): ContentBlock => ({
  type: "resource",
  resource: { uri, blob: "aGk=", mimeType },
});

describe("a prompt from an editor", () => {
  test.each<[string, readonly ContentBlock[], string]>([
    ["a text", [text("hello")], "hello"],
    ["texts", [text("look"), text("here")], "look\n\nhere"],
    ["a file", [text("see"), file("let a = 1;\n")], "see\n\n``` file:///w/a.ts\nlet a = 1;\n```"],
    ["a file without a last line break", [file("a")], "``` file:///w/a.ts\na\n```"],
    ["a link", [{ type: "resource_link", uri: "file:///w/b.ts", name: "b.ts" }], "[b.ts](file:///w/b.ts)"],
    [
      "a link with a title",
      [{ type: "resource_link", uri: "file:///w/b.ts", name: "b.ts", title: "The B" }],
      "[The B](file:///w/b.ts)",
    ],
    [
      "a link without a name",
      [{ type: "resource_link", uri: "file:///w/b.ts", name: "" }],
      "[file:///w/b.ts]",
    ],
  ])("[AAG6] accepts %s", (_, blocks, message) => {
    expect(promptInput(blocks)).toMatchObject({ message, attachments: [] });
  });

  test("[AAG6] accepts images, embedded and as files", () => {
    const { message, attachments } = promptInput([
      { type: "image", data: "aGk=", mimeType: "image/jpeg" },
      blob("image/png"),
    ]);
    expect(message).toBe("");
    expect(attachments).toEqual([
      { mimeType: "image/jpeg", data: "aGk=" },
      { mimeType: "image/png", data: "aGk=", name: "cat.png" },
    ]);
  });

  test.each<[string, readonly ContentBlock[], RegExp]>([
    ["nothing", [], /empty/],
    ["blanks", [text("  \n")], /empty/],
    ["audio", [{ type: "audio", data: "aGk=", mimeType: "audio/wav" }], /not accept audio/],
    ["another file", [blob("application/pdf", "file:///w/a.pdf")], /a\.pdf is neither text nor an image/],
    ["a file without a type", [blob(null)], /of an unknown type/],
    [
      "an image with invalid data",
      [{ type: "image", data: "aGk=", mimeType: "text/html" }],
      /"text\/html" is not an image/,
    ],
    ["an unknown block", [{ type: "video" } as unknown as ContentBlock], /does not support/],
  ])("[AAG6] refuses %s", (_, blocks, problem) => {
    expect(() => promptInput(blocks)).toThrow(problem);
  });

  test("[AAG6] the text of a file cannot end its code fence", () => {
    const pieces = fc.array(fc.constantFrom("`", "```", "````", "a", "\n"), { maxLength: 20 });
    fc.assert(
      fc.property(pieces, (each) => {
        const { message } = promptInput([file(each.join(""))]);
        const [first = "", ...rest] = message.split("\n");
        const [fence = ""] = first.split(" ");
        expect(rest.findIndex((line) => line.includes(fence))).toBe(rest.length - 1);
      }),
    );
  });

  test("[AAG6] a file may contain any number of fences", () => {
    const { message } = promptInput([file("````\n".repeat(300_000))]);
    expect(message.startsWith("````` file:")).toBe(true);
  });

  test("[AAG12] records whether all of it was typed", () => {
    expect(promptInput([text("/status")]).isTyped).toBe(true);
    expect(promptInput([text("/status"), file("a")]).isTyped).toBe(false);
  });
});

const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, totalTokens: 10 };
const named = { runId: "r", sessionKey: "agent:main:main", sessionId: "s", finished: true, usage };
const sent = (state: SentPayload["state"], code?: string): SentPayload => ({
  ...named,
  state,
  ...(code === undefined ? {} : { error: { code, message: `It was ${code}.` } }),
});

describe("the stop reason of a turn", () => {
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
    [sent("error"), "error", "The run ended in state error."],
  ])("[AAG9] %j is an error with Skein's code and text", (each, code, message) => {
    const act = () => promptResponse({ sent: each, stopReason: null, isCancelled: false });
    expect(act).toThrow(expect.objectContaining({ code: -32603, message, data: { code } }));
  });

  test("[AAG9] names the limit that ended a turn", () => {
    expect(limitText(sent("error", "budget_exceeded"))).toBe("It was budget_exceeded.");
    expect(limitText(sent("error", "model_failed"))).toBeNull();
  });
});
