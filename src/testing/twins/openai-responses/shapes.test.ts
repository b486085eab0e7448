import { expect, test } from "vitest";
import { ask, call, check, output, reasoning, said, user } from "../../../../test/support/twin-responses.ts";

/** Every place of a request with a value of another type, or with none. */

const part = (value: unknown) => ask(user([value]));
const called = (more: object) => ask(user(), { ...call("a"), ...more }, output("a"));
const thought = (more: object) => ask(user(), reasoning("rs_1", { ...more }), said(), user());
const tools = (...list: unknown[]) => ({ ...ask(user()), tools: list });
const long = `{"a":"${"x".repeat(10_485_760)}"}`;

test.each([
  [ask({ type: "message", content: "x" }), "Missing required parameter: 'input[0].role'."],
  [ask({ type: ["message"], content: "x" }), "Invalid type for 'input[0].type': expected one of 'message'"],
  [part("x"), "Invalid type for 'input[0].content[0]': expected an object, but got a string instead."],
  [part({ text: "x" }), "Missing required parameter: 'input[0].content[0].type'."],
  [part({ type: "input_text" }), "Missing required parameter: 'input[0].content[0].text'."],
  [
    part({ type: "input_text", text: 7 }),
    "Invalid type for 'input[0].content[0].text': expected a string, but got an integer instead.",
  ],
  [
    part({ type: "input_image", image_url: { url: "x" } }),
    "Invalid type for 'input[0].content[0].image_url': expected a string, but got an object instead.",
  ],
  [
    ask(user(), said([{ type: "refusal" }]), user()),
    "Missing required parameter: 'input[1].content[0].refusal'.",
  ],
  [called({ id: 7 }), "Invalid type for 'input[1].id': expected a string, but got an integer instead."],
  [
    called({ call_id: 7 }),
    "Invalid type for 'input[1].call_id': expected a string, but got an integer instead.",
  ],
  [called({ call_id: "" }), "Invalid 'input[1].call_id': empty string."],
  [called({ arguments: undefined }), "Missing required parameter: 'input[1].arguments'."],
  [called({ arguments: long }), "Invalid 'input[1].arguments': string too long."],
  [called({ details: 1 }), "Unknown parameter: 'input[1].details'."],
  [thought({ signature: "x" }), "Unknown parameter: 'input[1].signature'."],
  [thought({ summary: undefined }), "Missing required parameter: 'input[1].summary'."],
  [
    thought({ summary: "x" }),
    "Invalid type for 'input[1].summary': expected an array of objects, but got a string instead.",
  ],
  [
    thought({ summary: ["x"] }),
    "Invalid type for 'input[1].summary[0]': expected an object, but got a string instead.",
  ],
  [
    thought({ summary: [{ type: "summary_text" }] }),
    "Invalid type for 'input[1].summary[0].text': expected a string, but got null instead.",
  ],
  [
    thought({ encrypted_content: 7 }),
    "Invalid type for 'input[1].encrypted_content': expected a string, but got an integer instead.",
  ],
  [tools("x"), "Invalid type for 'tools[0]': expected an object, but got a string instead."],
  [tools({ name: "look" }), "Missing required parameter: 'tools[0].type'."],
])("[TWB10] %#: each place says what is wrong with it", (body, message) => {
  expect(check(body)?.body).toMatchObject({ error: { message: expect.stringContaining(message) } });
});

test("[TWB14] reasoning without id may stand anywhere", () => {
  expect(check(ask(user(), reasoning("rs_1", { id: undefined }), user()))).toBeNull();
});

test("[TWB11] files are taken as they are", () => {
  expect(check(part({ type: "input_file", file_id: "file-1" }))).toBeNull();
});
