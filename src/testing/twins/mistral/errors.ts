import type { Refusal } from "../contract.ts";
import type { Fields } from "../openai-shared-values.ts";

/**
 * Complaints in Mistral's shapes: `{object: "error", message, type, param, code}` ("Error glossary", "Error response
 * format"), and for a body that does not fit the schema 422 with `{detail: [{type, loc, msg, input}]}`
 * (API reference, HTTPValidationError).
 */

const kinds = {
  /** Order of messages, number of calls and results. */
  order: ["invalid_request_message_order", "3230"],
  assistant: ["invalid_request_assistant_message", "3240"],
  call: ["invalid_function_call", "3280"],
  file: ["invalid_request_file", "3310"],
  arguments: ["invalid_request_invalid_args", "3051"],
  other: ["invalid_request_error", null],
} as const;

export function refuse(rule: string, kind: keyof typeof kinds, message: string): Refusal {
  const [type, code] = kinds[kind];
  return { status: 400, rule, body: { object: "error", message, type, param: null, code } };
}

export type Place = readonly (string | number)[];

/** A body that does not fit the schema; `loc` without the leading `body`. */
export function misfit(rule: string, type: string, loc: Place, msg: string, input: unknown): Refusal {
  return { status: 422, rule, body: { detail: [{ type, loc: ["body", ...loc], msg, input }] } };
}

export function missing(loc: Place, input: unknown, rule = "missing_parameter"): Refusal {
  return misfit(rule, "missing", loc, "Field required", input);
}

/** `what`: as in `string`, `list`, `dictionary`. */
export function wrongType(loc: Place, what: string, input: unknown, rule = "wrong_type"): Refusal {
  return misfit(rule, `${what}_type`, loc, `Input should be a valid ${what}`, input);
}

/** An object of which a field says the kind, and says none that there is. */
export function unknownTag(
  loc: Place,
  discriminator: string,
  tag: unknown,
  expected: readonly string[],
  rule: string,
): Refusal {
  if (typeof tag !== "string") {
    const msg = `Unable to extract tag using discriminator '${discriminator}'`;
    return misfit(rule, "union_tag_not_found", loc, msg, tag);
  }
  const tags = expected.map((each) => `'${each}'`).join(", ");
  const msg = `Input tag '${tag}' found using '${discriminator}' does not match any of the expected tags: ${tags}`;
  return misfit(rule, "union_tag_invalid", loc, msg, tag);
}

/** "Extra inputs are not permitted": every object of the schema is closed (API reference, additionalProperties). */
export function extraField(loc: Place, fields: Fields, known: ReadonlySet<string>): Refusal | null {
  for (const name in fields) {
    if (known.has(name) || fields[name] === undefined) continue;
    const place = [...loc, name];
    return misfit("extra_field", "extra_forbidden", place, "Extra inputs are not permitted", fields[name]);
  }
  return null;
}

const serverKinds: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ["authentication_error", null],
  429: ["rate_limited", "1300"],
  500: ["server_error", "1000"],
  503: ["service_unavailable", "3800"],
};

/** The body of an error of the server itself. */
export function mistralErrorBody(status: number, message: string): unknown {
  const [type, code] =
    serverKinds[status] ?? (status >= 500 ? ["server_error", null] : ["invalid_request_error", null]);
  return { object: "error", message, type, param: null, code };
}
