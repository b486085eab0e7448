import { expect } from "vitest";
import { wireFormats } from "../../src/testing/server/check-request.ts";
import { sealReasoning } from "../../src/testing/twins/signatures.ts";
import { posted } from "./twin-fetch.ts";

/** Parts of requests to the twin of OpenAI's Responses API, and the results. */

type Body = Record<string, unknown>;

export const check = (body: unknown, contextWindow = 100_000) =>
  wireFormats["openai-responses"].check(posted("/v1/responses", body), { contextWindow });

export const user = (content: unknown = "Plan three days in Kyoto") => ({ role: "user", content });
export const said = (content: unknown = "Gladly.") => ({ role: "assistant", content });
export const call = (id: string, name = "look", text = "{}") => ({
  type: "function_call",
  call_id: id,
  name,
  arguments: text,
});
export const output = (id: string, result: unknown = "found") => ({
  type: "function_call_output",
  call_id: id,
  output: result,
});
export const reasoning = (id: string, more: Body = {}) => ({
  type: "reasoning",
  id,
  summary: [{ type: "summary_text", text: "Temples first." }],
  encrypted_content: sealReasoning("gpt-5", id),
  ...more,
});
export const ask = (...input: unknown[]): Body => ({ model: "gpt-5", store: false, input });
export const image = (url: unknown) => user([{ type: "input_image", image_url: url }]);

/** `null` instead of a rule means that the request was accepted. */
export function expectRefusal(
  body: unknown,
  rule: string | null,
  part = "",
  param?: string | null,
  status = 400,
) {
  const refusal = check(body);
  expect(refusal?.rule ?? null).toBe(rule);
  if (refusal === null) return;
  const { error } = refusal.body as { error: Body };
  expect(refusal.status).toBe(status);
  expect(error.type).toBe("invalid_request_error");
  expect(error.message).toContain(part);
  if (param !== undefined) expect(error.param).toBe(param);
}
