import type { Refusal } from "./contract.ts";
import type { Fields } from "./openai-shared-values.ts";
import { kindOf, quotedList } from "./openai-shared-values.ts";

/**
 * Complaints in OpenAI's shape and words: `{error: {message, type, param, code}}` (API reference, "Error codes").
 * The sentences are those that the real server answers with, as far as they are known.
 */

interface Complaint {
  readonly rule: string;
  readonly message: string;
  readonly param?: string | null;
  readonly code?: string | null;
  readonly status?: number;
}

export function refuse({ rule, message, param = null, code = null, status = 400 }: Complaint): Refusal {
  return { status, rule, body: { error: { message, type: "invalid_request_error", param, code } } };
}

export function missing(param: string, rule = "missing_parameter"): Refusal {
  const message = `Missing required parameter: '${param}'.`;
  return refuse({ rule, message, param, code: "missing_required_parameter" });
}

export function wrongType(param: string, expected: string, value: unknown, rule = "wrong_type"): Refusal {
  const message = `Invalid type for '${param}': expected ${expected}, but got ${kindOf(value)} instead.`;
  return refuse({ rule, message, param, code: "invalid_type" });
}

/** A value that is none of those that there are. */
export function unsupported(
  param: string,
  value: unknown,
  supported: readonly string[],
  rule: string,
): Refusal {
  if (typeof value !== "string") return wrongType(param, `one of ${quotedList(supported)}`, value, rule);
  const message = `Invalid value: '${value}'. Supported values are: ${quotedList(supported)}.`;
  return refuse({ rule, message, param, code: "invalid_value" });
}

export function emptyText(param: string, rule: string): Refusal {
  const message = `Invalid '${param}': empty string. Expected a string with minimum length 1, but got an empty string instead.`;
  return refuse({ rule, message, param, code: "empty_string" });
}

export function emptyList(param: string, rule: string): Refusal {
  const message = `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  return refuse({ rule, message, param, code: "empty_array" });
}

export function tooLong(param: string, maximum: number, text: string, rule: string): Refusal {
  const message = `Invalid '${param}': string too long. Expected a string with maximum length ${maximum}, but got a string with length ${text.length} instead.`;
  return refuse({ rule, message, param, code: "string_above_max_length" });
}

/** Fields that the API reference does not list: "Unknown parameter: 'messages[0].details'." */
export function unknownField(at: string, fields: Fields, known: ReadonlySet<string>): Refusal | null {
  for (const name in fields) {
    if (known.has(name) || fields[name] === undefined) continue;
    const param = at === "" ? name : `${at}.${name}`;
    const message = `Unknown parameter: '${param}'.`;
    return refuse({ rule: "unknown_parameter", message, param, code: "unknown_parameter" });
  }
  return null;
}

const namePattern = /^[a-zA-Z0-9_-]+$/;
const maximumName = 64;

/**
 * "The name of the function to be called. Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum
 * length of 64." (API reference, Chat, tools)
 */
export function checkName(param: string, name: unknown): Refusal | null {
  const rule = "bad_function_name";
  if (name === undefined) return missing(param, rule);
  if (typeof name !== "string") return wrongType(param, "a string", name, rule);
  if (name === "") return emptyText(param, rule);
  if (name.length > maximumName) return tooLong(param, maximumName, name, rule);
  if (namePattern.test(name)) return null;
  const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
  return refuse({ rule, message, param, code: "invalid_value" });
}

/** Longest text in one field: "Expected a string with maximum length 10485760" (the server's own words). */
export const maximumText = 10_485_760;

/** The body of an error of the server itself ("Error codes" guide: 401, 403, 429, 500, 503). */
export function openaiErrorBody(status: number, message: string): unknown {
  const [type, code] = kinds[status] ??
    (status >= 500 ? kinds[500] : null) ?? ["invalid_request_error", null];
  return { error: { message, type, param: null, code } };
}

const kinds: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ["invalid_request_error", "invalid_api_key"],
  403: ["invalid_request_error", "unsupported_country_region_territory"],
  404: ["invalid_request_error", "model_not_found"],
  429: ["requests", "rate_limit_exceeded"],
  500: ["server_error", "server_error"],
  503: ["service_unavailable_error", "server_is_overloaded"],
};
