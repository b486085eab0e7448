import type { Refusal } from "../contract.ts";

/** "Errors" › HTTP errors: which `type` goes with which status. */
const types: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** "Errors" › Error shapes. */
export function errorBody(status: number, message: string): unknown {
  const type = types[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message }, request_id: "req_011TwinTwinTwinTwinTwinT" };
}

export function refuse(rule: string, message: string, status = 400): Refusal {
  return { status, rule, body: errorBody(status, message) };
}
