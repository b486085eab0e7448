import { expect } from "vitest";
import { wireFormats } from "../../src/testing/server/check-request.ts";
import { posted } from "./twin-fetch.ts";

/** Parts of requests to the twin of OpenAI's Chat Completions API, and the results. */

type Body = Record<string, unknown>;

export const check = (body: unknown, contextWindow = 100_000) =>
  wireFormats["openai-completions"].check(posted("/v1/chat/completions", body), { contextWindow });

export const user = (content: unknown = "Plan three days in Kyoto") => ({ role: "user", content });
export const call = (id: string, name = "look", text = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: text },
});
export const calls = (...list: unknown[]) => ({ role: "assistant", content: null, tool_calls: list });
export const result = (id: string, content: unknown = "found") => ({
  role: "tool",
  tool_call_id: id,
  content,
});
export const chat = (...messages: unknown[]): Body => ({ model: "gpt-5", messages });
export const image = (url: unknown) => user([{ type: "image_url", image_url: { url } }]);

/** `null` instead of a rule means that the request was accepted. */
export function expectRefusal(body: unknown, rule: string | null, part = "", param?: string | null) {
  const refusal = check(body);
  expect(refusal?.rule ?? null).toBe(rule);
  if (refusal === null) return;
  const { error } = refusal.body as { error: Body };
  expect(error.type).toBe("invalid_request_error");
  expect(error.message).toContain(part);
  if (param !== undefined) expect(error.param).toBe(param);
}
