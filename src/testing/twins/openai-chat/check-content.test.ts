import { test } from "vitest";
import { call, calls, chat, expectRefusal, image, result, user } from "../../../../test/support/twin-chat.ts";
import { images } from "../../../../test/support/twin-fetch.ts";

test.each([
  ["a blank user", chat(user(" \n")), "empty_content", "empty string", "messages[0].content"],
  [
    "no content of a user",
    chat({ role: "user" }),
    "empty_content",
    "expected a string, got null",
    "messages.[0].content",
  ],
  ["no parts", chat(user([])), "empty_content", "empty array", "messages[0].content"],
  [
    "a blank part",
    chat(
      user([
        { type: "text", text: "a" },
        { type: "text", text: "" },
      ]),
    ),
    "empty_content",
    "empty string",
    "messages[0].content[1].text",
  ],
  [
    "content of another type",
    chat(user(7)),
    "wrong_type",
    "but got an integer instead",
    "messages[0].content",
  ],
  [
    "an unknown part",
    chat(user([{ type: "thinking", thinking: "x" }])),
    "bad_part",
    "Invalid value: 'thinking'",
    "messages[0].content[0].type",
  ],
  [
    "a part without its value",
    chat(user([{ type: "text" }])),
    "bad_part",
    "Missing required",
    "messages[0].content[0].text",
  ],
  [
    "an image without address",
    chat(image(undefined)),
    "bad_part",
    "Missing required",
    "messages[0].content[0].image_url.url",
  ],
  [
    "an assistant that says nothing",
    chat(user(), { role: "assistant", content: null }, user()),
    "empty_content",
    "expected a string, got null",
    "messages.[1].content",
  ],
  [
    "a blank assistant",
    chat(user(), { role: "assistant", content: " " }, user()),
    "empty_content",
    "empty string",
    "messages[1].content",
  ],
  [
    "no calls at all",
    chat(user(), { role: "assistant", content: "x", tool_calls: [] }, user()),
    "empty_tool_calls",
    "empty array",
    "messages[1].tool_calls",
  ],
  [
    "a result without content",
    chat(user(), calls(call("a")), result("a", null)),
    "empty_content",
    "got null",
    "messages.[2].content",
  ],
  [
    "an image in a result",
    chat(user(), calls(call("a")), result("a", [{ type: "image_url", image_url: { url: images.png } }])),
    "image_outside_user",
    "Image URLs are only allowed for messages with role 'user', but this message with role 'tool'",
    "messages[2]",
  ],
])("[TWB3] contents: %s", (_, body, rule, part, param) => {
  expectRefusal(body, rule, part, param);
});
