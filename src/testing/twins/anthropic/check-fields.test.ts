import { afterAll, beforeAll, describe, test } from "vitest";
import {
  anthropicKeys,
  expectRefused,
  expectTaken,
  messagesRequest,
} from "../../../../test/support/twins.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "anthropic-messages" });
});
afterAll(() => twin.close());

const version = { "anthropic-version": "2023-06-01" };

describe("headers", () => {
  test.each([
    [{ "x-api-key": "any" }, "version_header", "anthropic-version: header is required", 400],
    [
      { ...anthropicKeys, "anthropic-version": "1999" },
      "version_header",
      '"1999" is not a valid version',
      400,
    ],
    [version, "api_key", "x-api-key header is required", 401],
  ])("[TWA1] refuses %j", (headers, rule, says, status) =>
    expectRefused(twin, messagesRequest({}, headers), { rule, says, status }),
  );

  test("[TWA1] takes a key of either kind", async () => {
    await expectTaken(twin, messagesRequest());
    await expectTaken(twin, messagesRequest({}, { ...version, authorization: "Bearer any" }));
  });
});

describe("fields", () => {
  test.each([
    [{ model: undefined }, "model", "model: Field required"],
    [{ model: 4 }, "model", "model: Input should be a valid string"],
    [{ model: "" }, "model", "at least 1 character"],
    [{ max_tokens: undefined }, "max_tokens", "max_tokens: Field required"],
    [{ max_tokens: 0 }, "max_tokens", "greater than or equal to 1"],
    [{ max_tokens: 1.5 }, "max_tokens", "valid integer"],
    [{ stream: "yes" }, "stream", "valid boolean"],
    [{ messages: undefined }, "messages", "messages: Field required"],
    [{ messages: "Hello" }, "messages", "valid list"],
    [{ messages: [] }, "no_messages", "at least one message is required"],
    [{ system: "" }, "system", "must be non-empty"],
    [{ system: [{ type: "text", text: "" }] }, "system", "must be non-empty"],
    [{ system: [{ type: "text", text: " \n" }] }, "system", "must contain non-whitespace text"],
    [{ system: [{ type: "image" }] }, "system", "system.0"],
    [{ system: 4 }, "system", "valid list"],
  ])("[TWA1] refuses %j", (body, rule, says) => expectRefused(twin, messagesRequest(body), { rule, says }));

  test("[TWA1] refuses more messages than 100,000", () => {
    const messages = Array.from({ length: 100_001 }, () => ({ role: "user", content: "a" }));
    return expectRefused(twin, messagesRequest({ messages }), { rule: "too_many_messages", says: "100001" });
  });

  test("[TWA1] takes a system prompt as a text and as blocks", async () => {
    await expectTaken(twin, messagesRequest({ system: "Be brief." }));
    await expectTaken(twin, messagesRequest({ system: [{ type: "text", text: "Be brief." }] }));
  });

  test.each(["null", "[]", '"text"', "4"])("[TWA1] refuses a body that is %s", (body) =>
    expectRefused(twin, { ...messagesRequest(), body }, { rule: "body_form", says: "expected an object" }),
  );
});
