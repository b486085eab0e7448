import type { Refusal } from "../contract.ts";
import {
  checkName,
  emptyText,
  maximumText,
  missing,
  refuse,
  tooLong,
  unknownField,
  unsupported,
  wrongType,
} from "../openai-shared-errors.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, isJsonObject } from "../openai-shared-values.ts";
import { checkMessage, checkOutput } from "./check-content.ts";
import { checkReasoningItem } from "./check-reasoning.ts";

/** Each kind of item with its fields (API reference, Responses, "Input item list"). */
const known: Readonly<Record<string, ReadonlySet<string>>> = {
  function_call: new Set([
    "type",
    "id",
    "call_id",
    "name",
    "arguments",
    "status",
    "async",
    "namespace",
    "caller",
  ]),
  function_call_output: new Set(["type", "id", "call_id", "output", "status", "caller"]),
  custom_tool_call: new Set([
    "type",
    "id",
    "call_id",
    "name",
    "input",
    "status",
    "async",
    "namespace",
    "caller",
  ]),
  custom_tool_call_output: new Set(["type", "id", "call_id", "output", "status", "caller"]),
  item_reference: new Set(["type", "id"]),
};
/** Items of tools that the server runs itself, and of its own book-keeping; taken as they are. */
const hosted = `file_search_call computer_call computer_call_output web_search_call code_interpreter_call
  image_generation_call local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call
  apply_patch_call_output mcp_list_tools mcp_approval_request mcp_approval_response mcp_call tool_search_call
  tool_search_output additional_tools program program_output compaction compaction_trigger
  configuration_update`.split(/\s+/);
const types = ["message", "reasoning", ...Object.keys(known), ...hosted];
const isType = new Set(types);

/** "Invalid 'input[3].id': 'call_1'. Expected an ID that begins with 'fc'." */
const idPrefix: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fc",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctc",
};
/** "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64" */
const maximumId = 64;

/** Each item by itself, and every id once. */
export function checkItems(items: readonly unknown[]): Refusal | null {
  const ids = new Set<unknown>();
  for (const [index, item] of items.entries()) {
    const at = `input[${index}]`;
    if (!isFields(item)) return wrongType(at, "an object", item, "bad_item");
    const wrong = checkItem(item, at);
    if (wrong !== null) return wrong;
    if (item.id === undefined || item.id === null) continue;
    if (ids.has(item.id)) return duplicateItem(String(item.id));
    ids.add(item.id);
  }
  return null;
}

function checkItem(item: Fields, at: string): Refusal | null {
  const type = item.type ?? (item.role === undefined ? undefined : "message");
  if (type === undefined) return missing(`${at}.type`, "bad_item");
  if (typeof type !== "string" || !isType.has(type))
    return unsupported(`${at}.type`, type, types, "bad_item");
  const wrong = checkItemId(item.id, idPrefix[type], `${at}.id`);
  if (wrong !== null) return wrong;
  if (type === "message") return checkMessage(item, at);
  if (type === "reasoning") return checkReasoningItem(item, at);
  const fields = known[type];
  if (fields === undefined) return null;
  const unknown = unknownField(at, item, fields);
  if (unknown !== null || type === "item_reference") return unknown;
  const badId = checkCallId(item.call_id, `${at}.call_id`);
  if (badId !== null) return badId;
  if (type.endsWith("_output")) return checkOutput(item.output, `${at}.output`);
  return checkName(`${at}.name`, item.name) ?? checkArguments(item, at, type === "function_call");
}

function checkItemId(id: unknown, prefix: string | undefined, param: string): Refusal | null {
  if (id === undefined || id === null) return null;
  if (typeof id !== "string") return wrongType(param, "a string", id, "bad_item_id");
  if (prefix === undefined || id.startsWith(prefix)) return null;
  const message = `Invalid '${param}': '${id}'. Expected an ID that begins with '${prefix}'.`;
  return refuse({ rule: "bad_item_id", message, param, code: "invalid_value" });
}

function duplicateItem(id: string): Refusal {
  const message = `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`;
  return refuse({ rule: "duplicate_item", message, param: "input" });
}

function checkCallId(id: unknown, param: string): Refusal | null {
  const rule = "bad_call_id";
  if (id === undefined) return missing(param, rule);
  if (typeof id !== "string") return wrongType(param, "a string", id, rule);
  if (id === "") return emptyText(param, rule);
  return id.length > maximumId ? tooLong(param, maximumId, id, rule) : null;
}

/** "A JSON string of the arguments to pass to the function." (API reference) Stricter: always of an object. */
function checkArguments(item: Fields, at: string, isFunction: boolean): Refusal | null {
  const rule = "bad_arguments";
  const name = isFunction ? "arguments" : "input";
  const param = `${at}.${name}`;
  const text = item[name];
  if (text === undefined) return missing(param, rule);
  if (typeof text !== "string") return wrongType(param, "a string", text, rule);
  if (text.length > maximumText) return tooLong(param, maximumText, text, rule);
  if (!isFunction || isJsonObject(text)) return null;
  const message = `Invalid '${param}': expected a JSON object.`;
  return refuse({ rule, message, param, code: "invalid_value" });
}
