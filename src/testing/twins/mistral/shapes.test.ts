import { expect, test } from "vitest";
import {
  a,
  call,
  calls,
  chat,
  check,
  expectMisfit,
  result,
  said,
  thinking,
  user,
} from "../../../../test/support/twin-mistral.ts";

/** Every place of a request with a value of another type, or with none. */

const called = (more: object) => chat(user(), calls({ ...call(a), ...more }), result(a));
const at = ["messages", 1, "assistant", "tool_calls", 0];
const thought = (...list: unknown[]) => chat(user(), said([thinking(list)]), user());
const inThinking = ["messages", 1, "assistant", "content", 0, "thinking", "thinking", 0];
const tools = (...list: unknown[]) => ({ ...chat(user()), tools: list });

test.each([
  [{ model: 7, messages: [] }, "missing_model", "string_type", ["model"]],
  [chat(user(["x"])), "bad_chunk", "dictionary_type", ["messages", 0, "user", "content", 0]],
  [chat(user([{ text: "x" }])), "bad_chunk", "union_tag_not_found", ["messages", 0, "user", "content", 0]],
  [chat(user(), calls("x")), "bad_tool_calls", "dictionary_type", at],
  [called({ caller: 1 }), "extra_field", "extra_forbidden", [...at, "caller"]],
  [called({ function: "look" }), "bad_tool_calls", "dictionary_type", [...at, "function"]],
  [called({ function: { name: "look" } }), "bad_arguments", "missing", [...at, "function", "arguments"]],
  [
    called({ function: { name: "look", arguments: "{}", id: 1 } }),
    "extra_field",
    "extra_forbidden",
    [...at, "function", "id"],
  ],
  [called({ function: { arguments: "{}" } }), "bad_function_name", "missing", [...at, "function", "name"]],
  [
    called({ function: { name: 7, arguments: "{}" } }),
    "bad_function_name",
    "string_type",
    [...at, "function", "name"],
  ],
  [thought("x"), "bad_chunk", "dictionary_type", inThinking],
  [thought({ type: "image_url" }), "bad_chunk", "union_tag_invalid", inThinking],
  [{ ...chat(user()), tools: {} }, "bad_tools", "list_type", ["tools"]],
  [tools("x"), "bad_tools", "dictionary_type", ["tools", 0]],
  [tools({ type: "function" }), "bad_tools", "missing", ["tools", 0, "function"]],
])("[TWB17] %#: each place says what is wrong with it", (body, rule, type, loc) => {
  expectMisfit(body, rule, type, loc);
});

test("[TWB17] references in thinking and tools of the server's own are taken", () => {
  expect(check(thought({ type: "reference", reference_ids: [1] }, { type: "text", text: "x" }))).toBeNull();
  expect(check(tools({ type: "web_search" }))).toBeNull();
  expect(check(chat(user([{ type: "document_url", document_url: "https://example.org/a.pdf" }])))).toBeNull();
});
