import { test } from "vitest";
import {
  a,
  call,
  calls,
  chat,
  expectRefusal,
  result,
  said,
  user,
} from "../../../../test/support/twin-mistral.ts";

test.each([
  ["no message", chat(), "missing_messages", "Conversation must have at least one message"],
  [
    "an assistant alone",
    chat(said()),
    "bad_first_role",
    "Conversation must start with a user message or system message",
  ],
  ["a result first", chat(result(a), user()), "bad_first_role", "Conversation must start"],
  [
    "an assistant last",
    chat(user(), said()),
    "last_message_assistant",
    "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
  ],
  ["calls last", chat(user(), calls(call(a))), "last_message_assistant", "but got assistant"],
  [
    "a user behind a result",
    chat(user(), calls(call(a)), result(a), user()),
    "unexpected_role",
    "Unexpected role 'user' after role 'tool'",
  ],
  [
    "a result behind a user",
    chat(user(), result(a)),
    "unexpected_role",
    "Unexpected role 'tool' after role 'user'",
  ],
  [
    "a system behind an answer",
    chat(user(), said(), { role: "system", content: "x" }, user()),
    "unexpected_role",
    "Unexpected role 'system' after role 'assistant'",
  ],
])("[TWB18] order: %s", (_, body, rule, part) => {
  expectRefusal(body, rule, part, "3230");
});
