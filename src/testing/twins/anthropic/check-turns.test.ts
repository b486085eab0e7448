import { afterAll, beforeAll, describe, test } from "vitest";
import { expectRefused, expectTaken, messagesRequest } from "../../../../test/support/twins.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "anthropic-messages" });
});
afterAll(() => twin.close());

const said = (role: string, content: unknown = "Hello") => ({ role, content });
const text = (words: string) => ({ type: "text", text: words });

describe("the order of turns", () => {
  test.each([
    [[said("assistant"), said("user")], "first_turn_not_user", 'first message must use the "user" role'],
    [[said("user"), said("user")], "turns_not_alternating", 'multiple "user" roles in a row'],
    [
      [said("user"), said("assistant"), said("assistant"), said("user")],
      "turns_not_alternating",
      "assistant",
    ],
    [[said("user"), said("assistant", "The answer is ")], "prefill_ends_in_space", "trailing whitespace"],
    [[said("user"), said("assistant", [text("So:\n")])], "prefill_ends_in_space", "trailing whitespace"],
  ])("[TWA2] refuses %j", (messages, rule, says) =>
    expectRefused(twin, messagesRequest({ messages }), { rule, says }),
  );

  test.each([
    [{ model: "claude-opus-4-6" }],
    [{ model: "claude-opus-5" }],
    [{ thinking: { type: "enabled", budget_tokens: 1024 } }],
    [{ thinking: { type: "adaptive" } }],
  ])("[TWA2] refuses a prefill with %j", (body) => {
    const messages = [said("user"), said("assistant", "The answer is")];
    const says = "The conversation must end with a user message.";
    return expectRefused(twin, messagesRequest({ ...body, messages }), { rule: "prefill", says });
  });

  test("[TWA2] takes turns that alternate, and a prefill where models take one", async () => {
    await expectTaken(twin, messagesRequest({ messages: [said("user"), said("assistant"), said("user")] }));
    for (const model of ["claude-sonnet-4-5", "claude-3-7-sonnet-20250219", "claude-opus-4-20250514"]) {
      const messages = [said("user"), said("assistant", "The answer is")];
      await expectTaken(twin, messagesRequest({ model, messages }));
    }
  });
});

describe("what stands in a turn", () => {
  test.each([
    [[4], "message_form", "messages.0: Input should be a valid dictionary"],
    [[said("system")], "unknown_role", 'Unexpected role "system"'],
    [[said("tool")], "unknown_role", "messages.0.role: Input should be 'user' or 'assistant'"],
    [[{ content: "Hello" }], "unknown_role", "messages.0.role: Field required"],
    [[{ role: "user" }], "content_form", "messages.0.content: Field required"],
    [[said("user", 4)], "content_form", "valid list"],
    [[said("user", ["Hello"])], "content_form", "messages.0.content.0: Input should be a valid dictionary"],
    [[said("user", [{ text: "Hello" }])], "content_form", "messages.0.content.0.type: Field required"],
    [[said("user", [{ type: "image_url" }])], "unknown_block", "Input tag 'image_url' found using 'type'"],
    [[said("user", "")], "empty_content", "messages.0: all messages must have non-empty content"],
    [
      [said("user"), said("assistant", []), said("user")],
      "empty_content",
      "messages.1: all messages must have",
    ],
    [[said("user", [text("")])], "empty_text", "text content blocks must be non-empty"],
    [[said("user", " \n")], "blank_text", "text content blocks must contain non-whitespace text"],
    [[said("user", [text("Hello"), text(" ")])], "blank_text", "non-whitespace"],
    [[said("user", [{ type: "text" }])], "text_form", "messages.0.content.0.text.text: Field required"],
    [
      [said("user", [{ type: "thinking" }])],
      "block_of_other_role",
      "`thinking` blocks can only be in `assistant`",
    ],
    [
      [said("user"), said("assistant", [{ type: "image" }])],
      "block_of_other_role",
      "only be in `user` messages",
    ],
  ])("[TWA3] refuses %j", (messages, rule, says) =>
    expectRefused(twin, messagesRequest({ messages }), { rule, says }),
  );

  test("[TWA3] takes an empty last turn of the assistant's", () =>
    expectTaken(twin, messagesRequest({ messages: [said("user"), said("assistant", "")] })));
});
