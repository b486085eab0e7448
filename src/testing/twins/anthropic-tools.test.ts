import { afterAll, beforeAll, describe, test } from "vitest";
import { expectRefused, expectTaken, messagesRequest } from "../../../test/support/twins.ts";
import type { Twin } from "../server/start-twin.ts";
import { startTwin } from "../server/start-twin.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "anthropic-messages" });
});
afterAll(() => twin.close());

const tools = [{ name: "find", description: "Finds.", input_schema: { type: "object", properties: {} } }];
const ask = { role: "user", content: "Find it" };
const call = (id: unknown, fields: object = {}) => ({
  type: "tool_use",
  id,
  name: "find",
  input: {},
  ...fields,
});
const result = (id: unknown, fields: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  content: "found",
  ...fields,
});
const calls = (...content: object[]) => ({ role: "assistant", content });
const results = (...content: object[]) => ({ role: "user", content });
const words = { type: "text", text: "And?" };
const image = { type: "image", source: { type: "url", url: "https://example.com/a.png" } };

describe("calls and results", () => {
  test.each([
    ["no result", [ask, calls(call("a")), ask], "tool_use_unanswered", "immediately after: a. Each"],
    [
      "no message after it",
      [ask, calls(call("a"))],
      "tool_use_unanswered",
      "messages.1: `tool_use` ids were found",
    ],
    [
      "one of two",
      [ask, calls(call("a"), call("b")), results(result("a"))],
      "tool_use_unanswered",
      "after: b.",
    ],
    [
      "a late one",
      [ask, calls(call("a")), ask, calls(words), results(result("a"))],
      "tool_use_unanswered",
      "a.",
    ],
    [
      "one after a text",
      [ask, calls(call("a")), results(words, result("a"))],
      "tool_use_unanswered",
      "after: a.",
    ],
    [
      "a result without a call",
      [ask, calls(words), results(result("a"))],
      "tool_result_without_call",
      "blocks: a. Each",
    ],
    [
      "a result in the first message",
      [results(result("a"))],
      "tool_result_without_call",
      "messages.0.content.0: unexpected",
    ],
    [
      "a surplus result",
      [ask, calls(call("a")), results(result("a"), result("b"))],
      "tool_result_without_call",
      "b.",
    ],
    [
      "two results for one call",
      [ask, calls(call("a")), results(result("a"), result("a"))],
      "tool_result_repeated",
      "single result",
    ],
    [
      "a repeated ID",
      [ask, calls(call("a")), results(result("a")), calls(call("a")), results(result("a"))],
      "tool_use_id_repeated",
      "messages.3.content.0: `tool_use` ids must be unique",
    ],
  ])("[TWA1] refuses %s", (_, messages, rule, says) =>
    expectRefused(twin, messagesRequest({ tools, messages }), { rule, says }),
  );

  test("[TWA1] accepts parallel calls with results in any order, then text", async () => {
    const answered = results(
      result("b"),
      result("a", { content: [{ type: "text", text: "found" }, image] }),
      words,
    );
    await expectTaken(
      twin,
      messagesRequest({ tools, messages: [ask, calls(words, call("a"), call("b")), answered] }),
    );
    const empty = results(result("a", { content: "" }));
    await expectTaken(twin, messagesRequest({ tools, messages: [ask, calls(call("a")), empty] }));
    const absent = results(result("a", { content: undefined, is_error: true }));
    await expectTaken(twin, messagesRequest({ tools, messages: [ask, calls(call("a")), absent] }));
  });
});

describe("IDs, names and inputs", () => {
  const loop = (fields: object, of = {}) => [ask, calls(call("a", fields)), results(result("a", of))];
  test.each([
    [
      [ask, calls(call("a b")), results(result("a b"))],
      "tool_use_id_form",
      "tool_use.id: String should match pattern",
    ],
    [[ask, calls(call("")), results(result(""))], "tool_use_id_form", "'^[a-zA-Z0-9_-]+$'"],
    [[ask, calls(call(undefined)), ask], "tool_use_id_form", "tool_use.id: Field required"],
    [[results(result("a|b"))], "tool_use_id_form", "tool_result.tool_use_id: String should match"],
    [loop({ name: "find it" }), "tool_use_name", "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"],
    [loop({ name: "" }), "tool_use_name", "at least 1 character"],
    [loop({ input: "{}" }), "tool_use_input", "tool_use.input: Input should be a valid dictionary"],
    [loop({ input: undefined }), "tool_use_input", "tool_use.input: Field required"],
    [loop({}, { tool_use_id: undefined }), "result_form", "tool_result.tool_use_id: Field required"],
    [loop({}, { content: [{ type: "text", text: "" }] }), "empty_text", "must be non-empty"],
    [loop({}, { content: [{ type: "text" }] }), "text_form", "content.0.text.text: Field required"],
    [
      loop({}, { content: [{ type: "thinking" }] }),
      "unknown_block",
      "tool_result.content.0: Input tag 'thinking'",
    ],
    [
      loop({}, { content: [words, image], is_error: true }),
      "error_result_not_text",
      'all content must be type "text"',
    ],
  ])("[TWA1] refuses %j", (messages, rule, says) =>
    expectRefused(twin, messagesRequest({ tools, messages }), { rule, says }),
  );

  const named = (name: unknown) => [{ name, input_schema: { type: "object" } }];
  test.each([
    [named("find it"), "tool_name", "tools.0.custom.name: String should match pattern"],
    [named("a".repeat(129)), "tool_name", "tools.0.custom.name: String should have at most 128 characters"],
    [named(undefined), "tool_name", "Field required"],
    [[...tools, ...tools], "tool_name_repeated", "tools: Tool names must be unique."],
    [[{ name: "find" }], "tool_schema", "tools.0.custom.input_schema: Field required"],
    [[{ name: "find", input_schema: {} }], "tool_schema", "input_schema.type: Field required"],
    [[{ name: "find", input_schema: { type: "array" } }], "tool_schema", "Input should be 'object'"],
    [["find"], "tools_form", "tools.0"],
    [{}, "tools_form", "valid list"],
  ])("[TWA1] refuses the tools %j", (given, rule, says) =>
    expectRefused(twin, messagesRequest({ tools: given }), { rule, says }),
  );

  test("[TWA1] refuses a history with calls if no tools are given", () =>
    expectRefused(twin, messagesRequest({ messages: loop({}) }), {
      rule: "tools_missing",
      says: "must define tools",
    }));

  test("[TWA1] accepts a name of 128 characters, an ID of any length, and server tools", async () => {
    const id = "a_-9".repeat(50);
    const messages = [ask, calls(call(id, { name: "a".repeat(128) })), results(result(id))];
    const served = { type: "web_search_20250305", name: "web_search" };
    await expectTaken(twin, messagesRequest({ tools: [...named("a".repeat(128)), served], messages }));
  });
});
