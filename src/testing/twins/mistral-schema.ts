import type { Fields } from "./shared.ts";
import { findUnknownField, isFields, listOf, nameSet, RefusedRequest } from "./shared.ts";

/** Mistral's errors, and the schema for its messages, whose violations get a 422 response. */

interface RoleRules {
  /** API reference, SystemMessage, UserMessage, AssistantMessage, ToolMessage. */
  readonly fields: ReadonlySet<string>;
  /** The roles that can follow (mistral-common, `validator.py`, message order). */
  readonly next: readonly string[];
}

export const roleRules: Readonly<Record<string, RoleRules>> = {
  system: { fields: nameSet("role content"), next: ["user", "assistant", "system"] },
  user: { fields: nameSet("role content"), next: ["assistant", "system", "user"] },
  assistant: { fields: nameSet("role content tool_calls prefix"), next: ["assistant", "user", "tool"] },
  tool: { fields: nameSet("role content tool_call_id name"), next: ["assistant", "tool"] },
};
/** The fields for each chunk type. The first is required (API reference, ContentChunk). */
const chunkFields: Readonly<Record<string, readonly [required: string, ...others: string[]]>> = {
  text: ["text"],
  image_url: ["image_url"],
  document_url: ["document_url", "document_name"],
  reference: ["reference_ids"],
  file: ["file_id"],
  input_audio: ["input_audio"],
  thinking: ["thinking", "closed"],
};
const callFields = nameSet("id type function index");
const functionFields = nameSet("name arguments");
const functionName = /^[a-zA-Z0-9_-]{1,64}$/;

/** The type and code for each error: `{object: "error", message, type, param, code}` ("Error glossary"). */
const errorKinds = {
  /** For the order of messages and the number of calls and results. */
  order: ["invalid_request_message_order", "3230"],
  assistant: ["invalid_request_assistant_message", "3240"],
  call: ["invalid_function_call", "3280"],
  file: ["invalid_request_file", "3310"],
  arguments: ["invalid_request_invalid_args", "3051"],
  other: ["invalid_request_error", null],
} as const;
const serverErrors: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ["authentication_error", null],
  429: ["rate_limited", "1300"],
  500: ["server_error", "1000"],
  503: ["service_unavailable", "3800"],
};

export function mistralErrorBody(status: number, message: string): unknown {
  const [type, code] =
    serverErrors[status] ?? (status >= 500 ? ["server_error", null] : ["invalid_request_error", null]);
  return { object: "error", message, type, param: null, code };
}

export function refuse(rule: string, kind: keyof typeof errorKinds, message: string): never {
  const [type, code] = errorKinds[kind];
  throw new RefusedRequest({
    status: 400,
    rule,
    body: { object: "error", message, type, param: null, code },
  });
}

export type Place = readonly (string | number)[];

/** Responds with 422 to a body that does not match the schema (API reference, HTTPValidationError). */
export function refuseSchema(rule: string, type: string, loc: Place, msg: string, input: unknown): never {
  const detail = [{ type, loc: ["body", ...loc], msg, input }];
  throw new RefusedRequest({ status: 422, rule, body: { detail } });
}

export function refuseMissing(loc: Place, input: unknown, rule = "missing_parameter"): never {
  refuseSchema(rule, "missing", loc, "Field required", input);
}

/** `expected` is one of `string`, `list` and `dictionary`. */
export function refuseType(loc: Place, expected: string, input: unknown, rule = "wrong_type"): never {
  refuseSchema(rule, `${expected}_type`, loc, `Input should be a valid ${expected}`, input);
}

export function checkObject(loc: Place, value: unknown, rule?: string): asserts value is Fields {
  if (!isFields(value)) refuseType(loc, "dictionary", value, rule);
}

/** The field `discriminator` must contain one of the known kinds. */
function checkTag(
  loc: Place,
  discriminator: string,
  tag: unknown,
  { known, rule }: { readonly known: readonly string[]; readonly rule: string },
): asserts tag is string {
  if (typeof tag !== "string") {
    const msg = `Unable to extract tag using discriminator '${discriminator}'`;
    refuseSchema(rule, "union_tag_not_found", loc, msg, tag);
  }
  if (known.includes(tag)) return;
  const tags = known.map((each) => `'${each}'`).join(", ");
  const msg = `Input tag '${tag}' found using '${discriminator}' does not match any of the expected tags: ${tags}`;
  refuseSchema(rule, "union_tag_invalid", loc, msg, tag);
}

/** Every object in the schema is closed (API reference, additionalProperties). */
export function checkKnownFields(loc: Place, fields: Fields, known: ReadonlySet<string>): void {
  const name = findUnknownField(fields, known);
  if (name === undefined) return;
  const msg = "Extra inputs are not permitted";
  refuseSchema("extra_field", "extra_forbidden", [...loc, name], msg, fields[name]);
}

/** Checks one message against its schema. */
export function checkMessageSchema(message: unknown, loc: Place): void {
  checkObject(loc, message);
  const { role, content } = message;
  checkTag(loc, "role", role, { known: Object.keys(roleRules), rule: "bad_role" });
  const place = [...loc, role];
  checkKnownFields(place, message, roleRules[role]?.fields ?? new Set());
  const at = [...place, "content"];
  if ((content ?? null) === null && role !== "assistant") refuseMissing(at, message);
  if ((content ?? null) !== null && typeof content !== "string" && !Array.isArray(content))
    refuseType(at, "string", content);
  for (const [index, chunk] of listOf(content).entries()) checkChunk(chunk, [...at, index]);
  if (role === "assistant") checkCallSchemas(message.tool_calls, [...place, "tool_calls"]);
}

function checkChunk(chunk: unknown, loc: Place): void {
  const rule = "bad_chunk";
  checkObject(loc, chunk, rule);
  const { type } = chunk;
  checkTag(loc, "type", type, { known: Object.keys(chunkFields), rule });
  const names = chunkFields[type] ?? [type];
  const [required] = names;
  const value = chunk[required];
  const at = [...loc, type, required];
  if (value === undefined) refuseMissing(at, chunk, rule);
  checkKnownFields([...loc, type], chunk, new Set(["type", ...names]));
  const text = type === "image_url" && isFields(value) ? value.url : value;
  if ((type === "text" || type === "image_url") && typeof text !== "string")
    refuseType(at, "string", text, rule);
  if (type !== "thinking") return;
  // "`thinking`: list of text and reference chunks" (API reference, ThinkChunk; Reasoning guide).
  if (!Array.isArray(value)) refuseType(at, "list", value, rule);
  for (const [index, each] of value.entries()) {
    const place = [...at, index];
    checkObject(place, each, rule);
    checkTag(place, "type", each.type, { known: ["text", "reference"], rule });
    if (each.type === "text" && typeof each.text !== "string")
      refuseType([...place, "text"], "string", each.text, rule);
  }
}

/** API reference, ToolCall, FunctionCall. */
function checkCallSchemas(calls: unknown, loc: Place): void {
  if (calls === undefined || calls === null) return;
  const rule = "bad_tool_calls";
  if (!Array.isArray(calls)) refuseType(loc, "list", calls, rule);
  for (const [index, call] of calls.entries()) {
    checkObject([...loc, index], call, rule);
    checkKnownFields([...loc, index], call, callFields);
    const { function: called } = call;
    const place = [...loc, index, "function"];
    if (called === undefined) refuseMissing(place, call, rule);
    checkObject(place, called, rule);
    const at = [...place, "arguments"];
    if (called.arguments === undefined) refuseMissing(at, called, "bad_arguments");
    if (typeof called.arguments !== "string" && !isFields(called.arguments))
      refuseType(at, "string", called.arguments, "bad_arguments");
    checkKnownFields(place, called, functionFields);
  }
}

/** "Function name was … but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64." */
export function checkName(name: unknown, loc: Place, owner: Fields): void {
  const rule = "bad_function_name";
  if (name === undefined) refuseMissing(loc, owner, rule);
  if (typeof name !== "string") refuseType(loc, "string", name, rule);
  if (functionName.test(name)) return;
  const message = `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`;
  refuse(rule, "call", message);
}
