import { describe, expect, test } from "vitest";
import { messagesRequest } from "../../../test/support/twins.ts";
import { wireFormats } from "../server/check-request.ts";
import type { ScriptedReply } from "./contract.ts";
import { isRedactedThinking, signatures } from "./signatures.ts";

const anthropic = wireFormats["anthropic-messages"];

const model = "claude-sonnet-4-5";
let count = 0;
const newId = () => {
  count += 1;
  return `Id${count}`;
};

type Event = {
  type: string;
  index?: number;
  delta?: Record<string, string>;
  content_block?: Record<string, unknown>;
};

function events(reply: ScriptedReply): Event[] {
  return anthropic.events(reply, messagesRequest({ model, stream: true }), newId).map((text) => {
    const [, name, data] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(text) ?? [];
    const event = JSON.parse(data ?? "null");
    expect(event.type).toBe(name);
    return event;
  });
}

const reply: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "The gardens first, then the food." },
    { type: "thinking", thinking: "secret", redacted: true },
    { type: "text", text: "I will look into both. 🌿" },
    { type: "toolCall", name: "find", arguments: { what: "gardens" } },
    { type: "toolCall", name: "wait", arguments: {}, id: "toolu_mine" },
  ],
  usage: { input: 100, cacheRead: 20, cacheWrite: 30, output: 50, reasoning: 10 },
};

describe("stream events", () => {
  test("[TWA10] have the order of the real server's", () => {
    const order = events(reply).map((event) =>
      [event.type, event.index, event.delta?.type].filter((each) => each !== undefined).join(" "),
    );
    const once = order.filter((each, index) => each !== order[index - 1]);
    expect(once).toEqual([
      "message_start",
      "content_block_start 0",
      "ping",
      "content_block_delta 0 thinking_delta",
      "content_block_delta 0 signature_delta",
      "content_block_stop 0",
      "content_block_start 1",
      "content_block_stop 1",
      "content_block_start 2",
      "content_block_delta 2 text_delta",
      "content_block_stop 2",
      "content_block_start 3",
      "content_block_delta 3 input_json_delta",
      "content_block_stop 3",
      "content_block_start 4",
      "content_block_delta 4 input_json_delta",
      "content_block_stop 4",
      "message_delta",
      "message_stop",
    ]);
    expect(order.length).toBeGreaterThan(once.length + 5);
  });

  test("[TWA10] add up to the whole, and thinking is signed", () => {
    const all = events(reply);
    const joined = (index: number, field: string) =>
      all
        .filter((event) => event.index === index)
        .map((event) => event.delta?.[field] ?? "")
        .join("");
    expect(joined(0, "thinking")).toBe("The gardens first, then the food.");
    expect(
      signatures.verify("anthropic-messages", model, joined(0, "thinking"), joined(0, "signature")),
    ).toBe(true);
    expect(joined(2, "text")).toBe("I will look into both. 🌿");
    expect(JSON.parse(joined(3, "partial_json"))).toEqual({ what: "gardens" });
    expect(JSON.parse(joined(4, "partial_json"))).toEqual({});
    const begun = (index: number) => all.find((event) => event.index === index)?.content_block;
    expect(begun(0)).toEqual({ type: "thinking", thinking: "", signature: "" });
    expect(isRedactedThinking(model, String(begun(1)?.data))).toBe(true);
    expect(begun(3)).toEqual({
      type: "tool_use",
      id: expect.stringMatching(/^toolu_01/),
      name: "find",
      input: {},
    });
    expect(begun(4)).toMatchObject({ id: "toolu_mine" });
  });

  test("[TWA10] have the usage at both ends, and the stop reason at the end", () => {
    const all = events(reply);
    const usage = { input_tokens: 100, cache_read_input_tokens: 20, cache_creation_input_tokens: 30 };
    expect(all[0]).toMatchObject({
      message: { model, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
    });
    expect(all.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { ...usage, output_tokens: 50, output_tokens_details: { thinking_tokens: 10 } },
    });
  });

  test.each([
    [{ content: [] }, "end_turn"],
    [{ content: [{ type: "text", text: "Kyoto" }] }, "end_turn"],
    [{ content: [{ type: "text", text: "Kyo" }], stopReason: "length" }, "max_tokens"],
    [{ content: [{ type: "toolCall", name: "find", arguments: {} }] }, "tool_use"],
  ] as [ScriptedReply, string][])(
    "[TWA10] without a stream, %j is complete and ends in %s",
    (scripted, stop_reason) => {
      const request = messagesRequest();
      expect(anthropic.streams(request)).toBe(false);
      expect(anthropic.answer(scripted, request, newId)).toMatchObject({
        type: "message",
        role: "assistant",
        stop_reason,
      });
      expect(events(scripted).at(-2)).toMatchObject({ delta: { stop_reason } });
    },
  );
});
