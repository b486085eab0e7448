import { test } from "vitest";
import {
  ask,
  call,
  expectRefusal,
  output,
  reasoning,
  said,
  user,
} from "../../../../test/support/twin-responses.ts";

test.each([
  [
    "a bad name",
    ask(user(), call("a", "fs.read"), output("a")),
    "bad_function_name",
    "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    "input[1].name",
  ],
  [
    "arguments that are no JSON",
    ask(user(), call("a", "look", "{"), output("a")),
    "bad_arguments",
    "JSON object",
    "input[1].arguments",
  ],
  [
    "arguments that are no text",
    ask(user(), { ...call("a"), arguments: {} }),
    "bad_arguments",
    "but got an object",
    "input[1].arguments",
  ],
  [
    "a call id of 65 characters",
    ask(user(), call("x".repeat(65)), output("x".repeat(65))),
    "bad_call_id",
    "Expected a string with maximum length 64, but got a string with length 65 instead.",
    "input[1].call_id",
  ],
  [
    "no call id",
    ask(user(), { type: "function_call", name: "n", arguments: "{}" }),
    "bad_call_id",
    "Missing required",
    "input[1].call_id",
  ],
  [
    "an id of a call",
    ask(user(), { ...call("a"), id: "call_1" }, output("a")),
    "bad_item_id",
    "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
    "input[1].id",
  ],
  [
    "an id of a message",
    ask(user(), { type: "message", id: "x", ...said() }, user()),
    "bad_item_id",
    "begins with 'msg'",
    "input[1].id",
  ],
  [
    "an id of reasoning",
    ask(user(), reasoning("xx_1"), said(), user()),
    "bad_item_id",
    "begins with 'rs'",
    "input[1].id",
  ],
  [
    "an item twice",
    ask(user(), reasoning("rs_1"), said(), reasoning("rs_1"), said(), user()),
    "duplicate_item",
    "Duplicate item found with id rs_1.",
    "input",
  ],
])("[TWB12] ids, names and arguments: %s", (_, body, rule, part, param) => {
  expectRefusal(body, rule, part, param);
});

test("[TWB12] a call id of 64 characters is taken as it is", () => {
  const id = `${"x".repeat(60)}|.é `;
  expectRefusal(ask(user(), call(id), output(id)), null);
});
