import type { Refusal, TwinApi, TwinLimits, TwinRequest } from "../twins/contract.ts";
import { formatOf, limitsOf } from "./formats.ts";

/**
 * Whether a provider would take a request, by the rules of its twin and without a server. `null`: it would.
 *
 * @example
 * ```ts
 * import { checkRequest } from "skein/testing";
 * const refusal = checkRequest("anthropic-messages", {
 *   method: "POST",
 *   path: "/v1/messages",
 *   headers: { "x-api-key": "any", "anthropic-version": "2023-06-01" },
 *   body: { model: "claude-sonnet-4-5", max_tokens: 100, messages: [{ role: "user", content: "" }] },
 * });
 * console.log(refusal?.rule); // empty_content
 * ```
 */
export function checkRequest(
  api: TwinApi,
  request: TwinRequest,
  limits: Partial<TwinLimits> = {},
): Refusal | null {
  const format = formatOf(api);
  if (format.serves(request)) return format.check(request, limitsOf(api, limits));
  return { status: 404, rule: "not_served", body: format.errorBody(404, "Not Found") };
}
