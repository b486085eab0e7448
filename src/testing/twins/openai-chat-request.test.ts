import { describe, expect, test } from "vitest";
import {
  call,
  calls,
  chat,
  check,
  expectRefusal,
  image,
  result,
  user,
} from "../../../test/support/twin-chat.ts";
import { images, posted } from "../../../test/support/twin-fetch.ts";
import { wireFormats } from "../server/check-request.ts";

const openaiChat = wireFormats["openai-completions"];

describe("messages", () => {
  test.each([
    ["text", chat(user())],
    [
      "system, developer and names",
      chat(
        { role: "system", content: "" },
        { role: "developer", content: [{ type: "text", text: "x" }] },
        { ...user(), name: "ann" },
      ),
    ],
    ["a call and its result", chat(user(), calls(call("a")), result("a"))],
    [
      "calls answered in another order",
      chat(user(), calls(call("a"), call("b")), result("b", ""), result("a"), user()),
    ],
    [
      "text next to calls, two rounds",
      chat(user(), { ...calls(call("a")), content: "I look." }, result("a"), calls(call("b")), result("b")),
    ],
    ["an assistant turn first", chat({ role: "assistant", content: "Hi" }, user())],
    [
      "consecutive turns of one role",
      chat(user(), user(), { role: "assistant", content: "a" }, { role: "assistant", content: "b" }, user()),
    ],
    ["a refusal instead of content", chat(user(), { role: "assistant", refusal: "no" }, user())],
    [
      "content parts of the assistant",
      chat(user(), { role: "assistant", content: [{ type: "text", text: "a" }] }, user()),
    ],
    [
      "images",
      chat(...[images.png, images.jpeg, images.webp, images.gif, "https://example.org/a.png"].map(image)),
    ],
    [
      "tools, stream and usage",
      {
        ...chat(user()),
        stream: true,
        stream_options: { include_usage: true },
        tool_choice: "auto",
        tools: [{ type: "function", function: { name: "look", parameters: {} } }],
      },
    ],
  ])("[TWA1] a valid request is accepted: %s", (_, body) => {
    expectRefusal(body, null);
  });

  test.each([
    ["a value that is not an object", "x", "not_json", "could not parse the JSON body", null],
    ["no model", { messages: [user()] }, "missing_model", "you must provide a model parameter", null],
    [
      "no messages",
      { model: "m" },
      "missing_messages",
      "Missing required parameter: 'messages'.",
      "messages",
    ],
    [
      "messages of another type",
      { model: "m", messages: "x" },
      "wrong_type",
      "expected an array of objects, but got a string",
      "messages",
    ],
    ["an empty list of messages", chat(), "missing_messages", "Invalid 'messages': empty array.", "messages"],
    [
      "an unknown parameter",
      { ...chat(user()), reasoning: {} },
      "unknown_parameter",
      "Unknown parameter: 'reasoning'.",
      "reasoning",
    ],
    ["an invalid message", chat("x"), "wrong_type", "expected an object", "messages[0]"],
    ["no role", chat({ content: "x" }), "bad_role", "Missing required", "messages[0].role"],
    [
      "an unknown role",
      chat({ role: "toolResult", content: "x" }),
      "bad_role",
      "Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
      "messages[0].role",
    ],
    [
      "a role of another type",
      chat({ role: { toString: 1 }, content: "x" }),
      "bad_role",
      "but got an object instead",
      "messages[0].role",
    ],
    [
      "fields of Skein",
      chat({ ...user(), timestamp: 1 }),
      "unknown_parameter",
      "Unknown parameter: 'messages[0].timestamp'.",
      "messages[0].timestamp",
    ],
    [
      "reasoning sent back",
      chat(user(), { role: "assistant", content: "x", reasoning_content: "y" }, user()),
      "unknown_parameter",
      "reasoning_content",
      "messages[1].reasoning_content",
    ],
    [
      "details of a result",
      chat(user(), calls(call("a")), { ...result("a"), details: {} }),
      "unknown_parameter",
      "details",
      "messages[2].details",
    ],
  ])("[TWA1] a request that does not match the API is refused: %s", (_, body, rule, part, param) => {
    expectRefusal(body, rule, part, param);
  });
});

describe("requests", () => {
  test("only a POST on its own path is served", () => {
    const request = posted("/v1/chat/completions?a=b", {});
    expect(openaiChat.serves(request)).toBe(true);
    expect(openaiChat.serves({ ...request, method: "GET" })).toBe(false);
    expect(openaiChat.serves(posted("/v1/responses", {}))).toBe(false);
  });

  test.each([
    [
      "bytes of another type",
      images.png.replace("png", "jpeg"),
      "image_type_mismatch",
      "does not represent a valid image",
    ],
    [
      "an unsupported type",
      images.of("image/bmp", Buffer.from("BM")),
      "image_type_unsupported",
      "You uploaded an unsupported image.",
    ],
    ["invalid base64", "data:image/png;base64,****", "image_not_base64", "Invalid base64 image_url."],
    ["truncated base64", images.png.slice(0, -1), "image_not_base64", "Invalid base64"],
    ["an empty data URL", "data:image/png;base64,", "image_not_base64", "Invalid base64"],
    ["an invalid data URL", "file:///a.png", "image_not_base64", "Invalid base64"],
    ["an animated GIF", images.animatedGif, "image_animated", "unsupported image"],
  ])("[TWA1] images: %s", (_, url, rule, part) => {
    expectRefusal(chat(image(url)), rule, part, "messages[0].content[0].image_url");
  });

  test("[TWA1] the images of a request are limited in number and size", () => {
    const many = user(
      Array.from({ length: 1_501 }, () => ({ type: "image_url", image_url: { url: "https://x.org/" } })),
    );
    expectRefusal(chat(many), "too_many_images");
    const large = images.of(
      "image/png",
      Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(27e6)]),
    );
    expectRefusal(chat(image(large)), null);
    expectRefusal(chat(image(large), image(large)), "images_too_large", "exceeds the allowed limit of 50MB.");
  });

  test("[TWA1] a request must not end in an assistant turn", () => {
    expectRefusal(
      chat(user(), { role: "assistant", content: "x" }),
      "last_message_assistant",
      "last message",
    );
  });

  test("[TWA1] a request longer than the context window is refused as the server does", () => {
    const long = chat(user("a".repeat(4_000)));
    const tools = [{ type: "function", function: { name: "t", description: "d".repeat(4_000) } }];
    expect(check(long, 1_001)).toBeNull();
    expect(check(long, 1_000)).toEqual({
      status: 400,
      rule: "context_length",
      body: {
        error: {
          message:
            "This model's maximum context length is 1000 tokens. However, your messages resulted in 1001 tokens. Please reduce the length of the messages.",
          type: "invalid_request_error",
          param: "messages",
          code: "context_length_exceeded",
        },
      },
    });
    const refusal = check({ ...chat(user()), tools }, 1_000);
    expect(JSON.stringify(refusal?.body)).toContain("in the functions");
  });

  test("[TWA1] no text may be longer than the server accepts", () => {
    const part =
      "Expected a string with maximum length 10485760, but got a string with length 10485761 instead.";
    expectRefusal(chat(user("a".repeat(10_485_761))), "text_too_long", part, "messages[0].content");
  });
});

describe("calls", () => {
  const called = (...parts: Parameters<typeof call>) => chat(user(), calls(call(...parts)), result(parts[0]));

  test.each([
    ["an id of 40 characters", called("x".repeat(40)), null],
    [
      "an id of 41 characters",
      called("x".repeat(41)),
      "bad_call_id",
      "Expected a string with maximum length 40, but got a string with length 41 instead.",
    ],
    ["an empty id", called(""), "bad_call_id", "empty string"],
    [
      "no id",
      chat(user(), calls({ ...call("a"), id: undefined }), result("a")),
      "bad_call_id",
      "Missing required parameter: 'messages[1].tool_calls[0].id'.",
    ],
    [
      "a result without an ID",
      chat(user(), calls(call("a")), { role: "tool", content: "x" }),
      "bad_call_id",
      "messages[2].tool_call_id",
    ],
    ["a name of 64 characters", called("a", "n".repeat(64)), null],
    ["a name of 65 characters", called("a", "n".repeat(65)), "bad_function_name", "maximum length 64"],
    [
      "a name with a dot",
      called("a", "fs.read"),
      "bad_function_name",
      "matches the pattern '^[a-zA-Z0-9_-]+$'",
    ],
    ["no name", called("a", ""), "bad_function_name", "empty string"],
    [
      "arguments that are not JSON",
      called("a", "look", "{"),
      "bad_arguments",
      "messages[1].tool_calls[0].function.arguments",
    ],
    ["arguments that are a list", called("a", "look", "[]"), "bad_arguments", "JSON object"],
    [
      "a call without a type",
      chat(user(), calls({ ...call("a"), type: "x" })),
      "bad_call_type",
      "'function' and 'custom'",
    ],
    [
      "a streaming field",
      chat(user(), calls({ ...call("a"), index: 0 })),
      "unknown_parameter",
      "'messages[1].tool_calls[0].index'",
    ],
    [
      "a custom call",
      chat(user(), calls({ id: "a", type: "custom", custom: { name: "c", input: "x" } }), result("a")),
      null,
    ],
  ])("[TWA1] IDs, names and arguments: %s", (_, body, rule, part = "") => {
    expectRefusal(body, rule, part);
  });
});

describe("content", () => {
  test.each([
    ["a blank user message", chat(user(" \n")), "empty_content", "empty string", "messages[0].content"],
    [
      "a user message without content",
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
      "an image without a URL",
      chat(image(undefined)),
      "bad_part",
      "Missing required",
      "messages[0].content[0].image_url.url",
    ],
    [
      "an empty assistant message",
      chat(user(), { role: "assistant", content: null }, user()),
      "empty_content",
      "expected a string, got null",
      "messages.[1].content",
    ],
    [
      "a blank assistant message",
      chat(user(), { role: "assistant", content: " " }, user()),
      "empty_content",
      "empty string",
      "messages[1].content",
    ],
    [
      "an empty list of calls",
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
  ])("[TWA1] contents: %s", (_, body, rule, part, param) => {
    expectRefusal(body, rule, part, param);
  });
});

describe("pairing", () => {
  test.each([
    [
      "a result first",
      chat(user(), result("a")),
      "tool_result_without_call",
      "must be a response to a preceeding message with 'tool_calls'.",
      "messages.[1].role",
    ],
    [
      "a result of another call",
      chat(user(), calls(call("a")), result("b")),
      "tool_result_without_call",
      "'tool_call_id' of 'b' not found in 'tool_calls' of previous message",
      "messages.[2].tool_call_id",
    ],
    [
      "a result twice",
      chat(user(), calls(call("a"), call("b")), result("a"), result("a")),
      "duplicate_call_id",
      "Duplicate value for 'tool_call_id' of 'a'",
      "messages.[3]",
    ],
    [
      "a call without result",
      chat(user(), calls(call("a"), call("b")), result("a"), user()),
      "tool_call_without_result",
      "did not have response messages: b",
      "messages.[3].role",
    ],
    [
      "calls at the end",
      chat(user(), calls(call("a"))),
      "tool_call_without_result",
      "did not have response messages: a",
      "messages",
    ],
    [
      "a message in between",
      chat(user(), calls(call("a")), user(), result("a")),
      "tool_call_without_result",
      "responding to each 'tool_call_id'",
      "messages.[2].role",
    ],
    [
      "a late result",
      chat(user(), calls(call("a")), result("a"), user(), result("a")),
      "tool_result_without_call",
      "preceeding",
      "messages.[4].role",
    ],
    [
      "an id twice in one turn",
      chat(user(), calls(call("a"), call("a")), result("a")),
      "duplicate_call_id",
      "Duplicate value",
      "messages.[1]",
    ],
    [
      "an id twice in the request",
      chat(user(), calls(call("a")), result("a"), calls(call("a")), result("a")),
      "duplicate_call_id",
      "Duplicate value",
      "messages.[3]",
    ],
  ])("[TWA1] calls and results: %s", (_, body, rule, part, param) => {
    expectRefusal(body, rule, part, param);
  });
});

describe("tools", () => {
  const tool = (name: string) => ({ type: "function", function: { name } });

  test.each([
    ["no tools in the list", { tools: [] }, "bad_tools", "Invalid 'tools': empty array."],
    [
      "too many tools",
      { tools: Array.from({ length: 129 }, (_, index) => tool(`t${index}`)) },
      "bad_tools",
      "maximum length 128",
    ],
    ["a bad name", { tools: [tool("a b")] }, "bad_function_name", "tools[0].function.name"],
    ["a tool without function", { tools: [{ type: "function" }] }, "bad_tools", "'tools[0].function'"],
    [
      "a choice without tools",
      { tool_choice: "required" },
      "tool_choice_without_tools",
      "only allowed when 'tools' are specified",
    ],
    [
      "stream options without a stream",
      { stream_options: {} },
      "stream_options_without_stream",
      "only allowed when 'stream' is enabled",
    ],
    [
      "unknown stream options",
      { stream: true, stream_options: { a: 1 } },
      "unknown_parameter",
      "stream_options.a",
    ],
  ])("[TWA1] tools and stream options: %s", (_, more, rule, part) => {
    expectRefusal({ ...chat(user()), ...more }, rule, part);
  });
});

describe("values of other types", () => {
  /** Requests in which one field has a value of the wrong type or is missing. */

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
  ])("[TWA1] %#: each path reports what is wrong with it", (body, message) => {
    expect(check(body)?.body).toMatchObject({ error: { message: expect.stringContaining(message) } });
  });
});
