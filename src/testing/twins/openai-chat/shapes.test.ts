import { expect, test } from "vitest";
import { call, calls, chat, check, image, result, user } from "../../../../test/support/twin-chat.ts";

/** Every place of a request with a value of another type, or with none. */

const called = (more: object) => chat(user(), calls({ ...call("a"), ...more }), result("a"));
const at = "messages[1].tool_calls[0]";
const ofFunction = (more: object) => called({ function: { name: "look", arguments: "{}", ...more } });
const part = (value: unknown) => chat(user([value]));
const tools = (...list: unknown[]) => ({ ...chat(user()), tools: list });
const long = `{"a":"${"x".repeat(10_485_760)}"}`;

test.each([
  [part(null), "Invalid type for 'messages[0].content[0]': expected an object, but got null instead."],
  [part([]), "Invalid type for 'messages[0].content[0]': expected an object, but got an array instead."],
  [part({}), "Missing required parameter: 'messages[0].content[0].type'."],
  [
    part({ type: 1.5 }),
    "expected one of 'text', 'image_url', 'input_audio', and 'file', but got a decimal number instead.",
  ],
  [
    part({ type: "text", text: true }),
    "Invalid type for 'messages[0].content[0].text': expected a string, but got a boolean instead.",
  ],
  [
    part({ type: "text", text: "x", cache_control: {} }),
    "Unknown parameter: 'messages[0].content[0].cache_control'.",
  ],
  [
    part({ type: "image_url", image_url: "x" }),
    "Invalid type for 'messages[0].content[0].image_url': expected an object, but got a string instead.",
  ],
  [
    chat(image(7)),
    "Invalid type for 'messages[0].content[0].image_url.url': expected a string, but got an integer instead.",
  ],
  [
    chat(user(), { role: "assistant", content: "x", tool_calls: {} }, user()),
    "Invalid type for 'messages[1].tool_calls': expected an array of objects, but got an object instead.",
  ],
  [chat(user(), calls("x")), `Invalid type for '${at}': expected an object, but got a string instead.`],
  [called({ id: 7 }), `Invalid type for '${at}.id': expected a string, but got an integer instead.`],
  [
    called({ id: "" }),
    `Invalid '${at}.id': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
  ],
  [called({ type: undefined }), `Missing required parameter: '${at}.type'.`],
  [called({ function: undefined }), `Missing required parameter: '${at}.function'.`],
  [
    called({ function: "look" }),
    `Invalid type for '${at}.function': expected an object, but got a string instead.`,
  ],
  [ofFunction({ parameters: {} }), `Unknown parameter: '${at}.function.parameters'.`],
  [ofFunction({ name: undefined }), `Missing required parameter: '${at}.function.name'.`],
  [
    ofFunction({ name: 7 }),
    `Invalid type for '${at}.function.name': expected a string, but got an integer instead.`,
  ],
  [ofFunction({ arguments: undefined }), `Missing required parameter: '${at}.function.arguments'.`],
  [
    ofFunction({ arguments: {} }),
    `Invalid type for '${at}.function.arguments': expected a string, but got an object instead.`,
  ],
  [ofFunction({ arguments: long }), `Invalid '${at}.function.arguments': string too long.`],
  [
    chat(user(), calls(call("a")), { role: "tool", content: "x" }),
    "Missing required parameter: 'messages[2].tool_call_id'.",
  ],
  [
    chat(user(), calls(call("a")), { ...result("a"), tool_call_id: 7 }),
    "Invalid type for 'messages[2].tool_call_id': expected a string",
  ],
  [chat(user(), calls(call("a")), result("")), "Invalid 'messages[2].tool_call_id': empty string."],
  [
    { ...chat(user()), tools: {} },
    "Invalid type for 'tools': expected an array of objects, but got an object instead.",
  ],
  [tools(7), "Invalid type for 'tools[0]': expected an object, but got an integer instead."],
  [tools({ function: { name: "look" } }), "Missing required parameter: 'tools[0].type'."],
  [tools({ type: "look" }), "Invalid value: 'look'. Supported values are: 'function' and 'custom'."],
  [tools({ type: "function" }), "Missing required parameter: 'tools[0].function'."],
  [
    tools({ type: "function", function: [] }),
    "Invalid type for 'tools[0].function': expected an object, but got an array instead.",
  ],
  [
    { ...chat(user()), stream: true, stream_options: "x" },
    "Invalid type for 'stream_options': expected an object, but got a string instead.",
  ],
])("[TWB2] %#: each place says what is wrong with it", (body, message) => {
  expect(check(body)?.body).toMatchObject({ error: { message: expect.stringContaining(message) } });
});
