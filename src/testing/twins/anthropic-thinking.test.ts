import { afterAll, beforeAll, describe, test } from "vitest";
import { expectRefused, expectTaken, messagesRequest } from "../../../test/support/twins.ts";
import type { Twin } from "../server/start-twin.ts";
import { startTwin } from "../server/start-twin.ts";
import { redactThinking, signatures } from "./signatures.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "anthropic-messages" });
});
afterAll(() => twin.close());

const model = "claude-sonnet-4-5";
const signed = (thinking: string, by = model) => ({
  type: "thinking",
  thinking,
  signature: signatures.sign("anthropic-messages", by, thinking),
});
const redacted = (by = model) => ({ type: "redacted_thinking", data: redactThinking(by, "secret") });
const tools = [{ name: "find", input_schema: { type: "object" } }];
const ask = { role: "user", content: "Find it" };
const words = { type: "text", text: "Well" };
const call = (id: string) => ({ type: "tool_use", id, name: "find", input: {} });
const results = (id: string) => ({
  role: "user",
  content: [{ type: "tool_result", tool_use_id: id, content: "found" }],
});
const answered = (...content: object[]) => [ask, { role: "assistant", content }, ask];
const looped = (...content: object[]) => [
  ask,
  { role: "assistant", content: [...content, call("a")] },
  results("a"),
];
const enabled = { type: "enabled", budget_tokens: 1024 };

describe("thinking in the history", () => {
  test.each([
    [
      "without a signature",
      [{ type: "thinking", thinking: "Hm" }, words],
      "thinking_unsigned",
      "signature: Field required",
    ],
    [
      "with another text",
      [{ ...signed("Hm"), thinking: "Ha" }, words],
      "thinking_signature",
      "messages.1.content.0: Invalid",
    ],
    [
      "of another model",
      [signed("Hm", "claude-opus-4-5"), words],
      "thinking_signature",
      "Invalid `signature`",
    ],
    [
      "with a forged signature",
      [{ ...signed("Hm"), signature: "RW1wdHk=" }, words],
      "thinking_signature",
      "Invalid",
    ],
    [
      "without a text",
      [{ type: "thinking", signature: "a" }, words],
      "thinking_form",
      "thinking.thinking: Field",
    ],
    [
      "with a breakpoint",
      [{ ...signed("Hm"), cache_control: { type: "ephemeral" } }, words],
      "thinking_cached",
      "Extra",
    ],
    [
      "redacted by another",
      [redacted("claude-opus-4-5"), words],
      "redacted_data",
      "Invalid `data` in `redacted_thinking`",
    ],
    [
      "redacted by an unknown model",
      [{ type: "redacted_thinking", data: "aGk=" }, words],
      "redacted_data",
      "Invalid `data`",
    ],
    [
      "redacted without data",
      [{ type: "redacted_thinking" }, words],
      "thinking_form",
      "redacted_thinking.data: Field",
    ],
    [
      "and nothing else",
      [signed("Hm")],
      "thinking_last",
      "The final block in an assistant message cannot be `thinking`.",
    ],
  ])("[TWA1] refuses thinking %s", (_, content, rule, says) =>
    expectRefused(twin, messagesRequest({ model, messages: answered(...content) }), { rule, says }),
  );

  test("[TWA1] accepts the model's own thinking, as text or redacted", async () => {
    await expectTaken(twin, messagesRequest({ model, messages: answered(signed("Hm"), redacted(), words) }));
    await expectTaken(twin, messagesRequest({ model, messages: answered(signed(""), words) }));
  });
});

describe("thinking in a tool loop", () => {
  test("[TWA1] refuses a loop that does not begin with thinking, while it is enabled", () => {
    const request = messagesRequest({ model, tools, thinking: enabled, messages: looped(words) });
    const says = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.";
    return expectRefused(twin, request, { rule: "loop_without_thinking", says });
  });

  test("[TWA1] refuses a loop with thinking, while it is disabled", () => {
    const request = messagesRequest({
      model,
      tools,
      thinking: { type: "disabled" },
      messages: looped(signed("Hm")),
    });
    return expectRefused(twin, request, { rule: "loop_with_thinking", says: "When thinking is disabled" });
  });

  test("[TWA1] accepts a loop of several steps that began with thinking, and one that has ended", async () => {
    const second = [{ role: "assistant", content: [call("b")] }, results("b")];
    for (const first of [signed("Hm"), redacted()]) {
      const messages = [...looped(first), ...second];
      await expectTaken(twin, messagesRequest({ model, tools, thinking: enabled, messages }));
    }
    const over = [...looped(words), { role: "assistant", content: "Done" }, ask];
    await expectTaken(twin, messagesRequest({ model, tools, thinking: enabled, messages: over }));
    await expectTaken(
      twin,
      messagesRequest({ model, tools, thinking: { type: "adaptive" }, messages: looped(words) }),
    );
  });
});

describe("new thinking", () => {
  test.each([
    [{ thinking: { type: "enabled" } }, "thinking_budget", "budget_tokens: Field required"],
    [{ thinking: { type: "enabled", budget_tokens: "all" } }, "thinking_budget", "valid integer"],
    [
      { thinking: { type: "enabled", budget_tokens: 1023 } },
      "thinking_budget",
      "greater than or equal to 1024",
    ],
    [
      { thinking: { type: "enabled", budget_tokens: 2000 } },
      "thinking_budget",
      "`max_tokens` must be greater than",
    ],
    [{ thinking: { type: "always" } }, "thinking_mode", "Input tag 'always'"],
    [{ thinking: true }, "thinking_mode", "thinking: Input tag"],
    [{ thinking: enabled, model: "claude-opus-4-7" }, "thinking_mode", "is not supported for this model"],
    [{ thinking: enabled, temperature: 0.5 }, "thinking_temperature", "may only be set to 1"],
    [{ thinking: enabled, tools, tool_choice: { type: "any" } }, "thinking_forced_tool", "forces tool use"],
  ])("[TWA1] refuses %j", (body, rule, says) => expectRefused(twin, messagesRequest(body), { rule, says }));

  test("[TWA1] accepts a budget below max_tokens, or above it with interleaved thinking", async () => {
    await expectTaken(
      twin,
      messagesRequest({ thinking: { type: "enabled", budget_tokens: 1999 }, temperature: 1 }),
    );
    const { headers } = messagesRequest();
    const beta = { ...headers, "anthropic-beta": "interleaved-thinking-2025-05-14" };
    await expectTaken(
      twin,
      messagesRequest({ tools, thinking: { type: "enabled", budget_tokens: 9000 } }, beta),
    );
  });
});
