import { afterAll, beforeAll, describe, test } from "vitest";
import { expectRefused, expectTaken, generateRequest } from "../../../../test/support/twins.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "google-generative-ai" });
});
afterAll(() => twin.close());

const user = (...parts: unknown[]) => ({ role: "user", parts });
const hello = { text: "Hello" };

describe("fields and parts", () => {
  test("[TWA11] refuses a caller without a key, and takes one in the query", async () => {
    const request = generateRequest();
    const says = "Method doesn't allow unregistered callers";
    await expectRefused(twin, { ...request, headers: {} }, { rule: "api_key", says, status: 403 });
    await expectTaken(twin, { ...request, headers: {}, path: `${request.path}?key=any` });
  });

  test.each([
    [{ contents: undefined }, "no_contents", "GenerateContentRequest.contents: contents is not specified"],
    [{ contents: [] }, "no_contents", "contents is not specified"],
    [{ contents: "Hello" }, "contents_form", "Invalid value at 'contents'"],
    [{ contents: ["Hello"] }, "content_form", "contents[0]"],
    [
      { contents: [{ role: "assistant", parts: [hello] }] },
      "unknown_role",
      "Please use a valid role: user, model.",
    ],
    [{ contents: [{ role: "user" }] }, "empty_parts", "contents[0].parts: contents.parts must not be empty."],
    [{ contents: [user()] }, "empty_parts", "contents.parts must not be empty."],
    [{ contents: [{ role: "user", parts: hello }] }, "parts_form", "contents[0].parts"],
    [{ contents: [user(hello, {})] }, "empty_part", "contents[0].parts[1].data: required oneof field 'data'"],
    [{ contents: [user({ text: "" })] }, "empty_part", "must have one initialized field"],
    [{ contents: [user({ thought: true })] }, "empty_part", "must have one initialized field"],
    [{ contents: [user({ text: 4 })] }, "text_form", "contents[0].parts[0].text"],
    [{ contents: [user({ text: "a", inlineData: {} })] }, "part_of_two_kinds", "Cannot set 'inlineData'"],
    [{ contents: [user({ text: "a", type: "text" })] }, "unknown_field", 'Unknown name "type" at'],
    [{ systemInstruction: { parts: [] } }, "empty_parts", "system_instruction.parts"],
    [{ systemInstruction: { parts: [{ text: "" }] } }, "empty_part", "system_instruction.parts[0].data"],
    [{ systemInstruction: { parts: [{ inlineData: {} }] } }, "system_not_text", "only text is supported"],
  ])("[TWA11] refuses %j", (body, rule, says) => expectRefused(twin, generateRequest(body), { rule, says }));

  test.each(["null", "[]", "4"])("[TWA11] refuses a body that is %s", (body) =>
    expectRefused(twin, { ...generateRequest(), body }, { rule: "body_form", says: "Expected an object" }),
  );

  test("[TWA11] takes a content without a role, a system instruction, and blank text", async () => {
    await expectTaken(twin, generateRequest({ contents: [{ parts: [hello] }] }));
    await expectTaken(twin, generateRequest({ systemInstruction: { parts: [{ text: "Be brief." }] } }));
    await expectTaken(twin, generateRequest({ contents: [user({ text: " " })] }));
  });
});
