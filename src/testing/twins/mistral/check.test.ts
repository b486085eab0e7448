import { expect, test } from "vitest";
import { posted } from "../../../../test/support/twin-fetch.ts";
import { chat, check, user } from "../../../../test/support/twin-mistral.ts";
import { mistral } from "./format.ts";

test("[TWB1] only a POST on its own path is served", () => {
  expect(mistral.serves(posted("/v1/chat/completions", {}))).toBe(true);
  expect(mistral.serves({ ...posted("/v1/chat/completions", {}), method: "PUT" })).toBe(false);
});

test("[TWB23] a request longer than the context window is refused, with what it may answer", () => {
  const long = chat(user("a".repeat(4_000)));
  expect(check(long, 1_001)).toBeNull();
  const refusal = check(long, 1_000);
  expect(refusal?.body).toEqual({
    object: "error",
    message:
      "Prompt contains 1001 tokens and 0 draft tokens, too large for model with 1000 maximum context length",
    type: "invalid_request_invalid_args",
    param: null,
    code: "3051",
  });
  expect(check({ ...long, max_tokens: 100 }, 1_101)).toBeNull();
  expect(check({ ...long, max_tokens: 100 }, 1_100)?.rule).toBe("context_length");
});
