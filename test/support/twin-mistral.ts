import { expect } from "vitest";
import { wireFormats } from "../../src/testing/server/check-request.ts";
import { posted } from "./twin-fetch.ts";

/** Parts of requests to the twin of Mistral's chat completions API, and the results. */

type Body = Record<string, unknown>;

export const check = (body: unknown, contextWindow = 100_000) =>
  wireFormats["mistral-conversations"].check(posted("/v1/chat/completions", body), { contextWindow });

export const user = (content: unknown = "Plan three days in Kyoto") => ({ role: "user", content });
export const said = (content: unknown = "Gladly.") => ({ role: "assistant", content });
export const call = (id: unknown, name: unknown = "look", text: unknown = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: text },
});
export const calls = (...list: unknown[]) => ({ role: "assistant", content: "", tool_calls: list });
export const result = (id: string, content: unknown = "found") => ({
  role: "tool",
  tool_call_id: id,
  name: "look",
  content,
});
export const chat = (...messages: unknown[]): Body => ({ model: "mistral-large-latest", messages });
export const image = (url: unknown) => ({ type: "image_url", image_url: url });
export const thinking = (value: unknown, more: Body = {}) => ({ type: "thinking", thinking: value, ...more });
export const a = "aaaaaaaa1";
export const b = "bbbbbbbb2";

/** `null` instead of a rule means that the request was accepted. */
export function expectRefusal(body: unknown, rule: string | null, part = "", code: string | null = null) {
  const refusal = check(body);
  expect(refusal?.rule ?? null).toBe(rule);
  if (refusal === null) return;
  expect(refusal.status).toBe(400);
  expect(refusal.body).toMatchObject({ object: "error", param: null, code });
  expect((refusal.body as Body).message).toContain(part);
}

/** Request bodies that do not match the schema. */
export function expectMisfit(body: unknown, rule: string, type: string, loc: unknown[]) {
  const refusal = check(body);
  expect(refusal).toMatchObject({ status: 422, rule });
  expect(refusal?.body).toEqual({
    detail: [expect.objectContaining({ type, loc: ["body", ...loc], msg: expect.any(String) })],
  });
}
