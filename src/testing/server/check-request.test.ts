import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { everyApi, generateRequest, messagesRequest } from "../../../test/support/twins.ts";
import type { TwinApi, TwinRequest } from "../twins/contract.ts";
import { checkRequest } from "./check-request.ts";

const good = (api: TwinApi): TwinRequest =>
  api === "anthropic-messages" ? messagesRequest() : generateRequest();

/** Values that resemble those in a request, and arbitrary values. */
const word = fc.constantFrom(
  "user",
  "assistant",
  "model",
  "text",
  "tool_use",
  "tool_result",
  "thinking",
  "image",
  "a",
  "",
);
const { near } = fc.letrec((tie) => ({
  near: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    word,
    fc.jsonValue({ maxDepth: 1 }),
    fc.array(tie("near"), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(
        ...[
          "messages",
          "contents",
          "role",
          "content",
          "parts",
          "type",
          "text",
          "id",
          "name",
          "input",
          "tool_use_id",
        ],
        ...[
          "source",
          "data",
          "media_type",
          "thinking",
          "signature",
          "functionCall",
          "functionResponse",
          "args",
        ],
        ...[
          "response",
          "inlineData",
          "mimeType",
          "thoughtSignature",
          "tools",
          "system",
          "cache_control",
          "__proto__",
        ],
      ),
      tie("near"),
      { maxKeys: 5 },
    ),
  ),
}));

describe.each(everyApi)("the rules of %s in process", (api) => {
  const request = good(api);

  test("never throw, for any body", () => {
    fc.assert(
      fc.property(near, near, near, (first, second, third) => {
        const turns = [first, second, third].map((each, index) => ({
          role: index === 1 ? "assistant" : "user",
          content: each,
          parts: each,
        }));
        for (const body of [
          first,
          { ...(request.body as object), messages: turns, contents: turns, tools: third },
        ]) {
          const refusal = checkRequest(api, { ...request, body });
          expect(refusal === null || refusal.status >= 400).toBe(true);
        }
      }),
    );
  });

  test("accept 100,000 levels of nesting without failing", () => {
    const nest = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`);
    expect(
      checkRequest(api, { ...request, body: { ...(request.body as object), metadata: { nest } } }),
    ).toBeNull();
  });

  test("another path or method is not found", () => {
    expect(checkRequest(api, { ...request, path: "/v1/else" })).toMatchObject({
      status: 404,
      rule: "not_served",
    });
    expect(checkRequest(api, { ...request, method: "GET" })).toMatchObject({ status: 404 });
  });
});
