import type { Refusal } from "../contract.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, isJsonObject, listOf } from "../openai-shared-values.ts";
import type { Place } from "./errors.ts";
import { extraField, missing, refuse, wrongType } from "./errors.ts";

const known = new Set(["id", "type", "function", "index"]);
const knownFunction = new Set(["name", "arguments"]);
const callId = /^[a-zA-Z0-9]{9}$/;
const functionName = /^[a-zA-Z0-9_-]{1,64}$/;

/** The calls of an assistant's message by their schema (API reference, ToolCall, FunctionCall). */
export function checkCallSchemas({ tool_calls: calls }: Fields, place: Place): Refusal | null {
  if (calls === undefined || calls === null) return null;
  const loc = [...place, "tool_calls"];
  if (!Array.isArray(calls)) return wrongType(loc, "list", calls, "bad_tool_calls");
  for (const [index, call] of calls.entries()) {
    const wrong = checkCallSchema(call, [...loc, index]);
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkCallSchema(call: unknown, loc: Place): Refusal | null {
  if (!isFields(call)) return wrongType(loc, "dictionary", call, "bad_tool_calls");
  const extra = extraField(loc, call, known);
  if (extra !== null) return extra;
  const { function: called } = call;
  if (called === undefined) return missing([...loc, "function"], call, "bad_tool_calls");
  if (!isFields(called)) return wrongType([...loc, "function"], "dictionary", called, "bad_tool_calls");
  const place = [...loc, "function"];
  if (called.arguments === undefined) return missing([...place, "arguments"], called, "bad_arguments");
  if (typeof called.arguments !== "string" && !isFields(called.arguments))
    return wrongType([...place, "arguments"], "string", called.arguments, "bad_arguments");
  return extraField(place, called, knownFunction);
}

/** Ids, names and arguments of calls that fit the schema. */
export function checkCalls(message: Fields, place: Place): Refusal | null {
  for (const [index, call] of listOf(message.tool_calls).entries()) {
    if (!isFields(call) || !isFields(call.function)) continue;
    const { name, arguments: text } = call.function;
    const wrong =
      checkCallId(call.id, "Tool call id has to be defined in serving mode.") ??
      checkName(name, [...place, "tool_calls", index, "function", "name"], call.function) ??
      checkArguments(text);
    if (wrong !== null) return wrong;
  }
  return null;
}

/** "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9." (mistral-common, `validator.py`) */
export function checkCallId(id: unknown, undefinedMessage: string): Refusal | null {
  if (id === undefined || id === null) return refuse("bad_call_id", "call", undefinedMessage);
  if (typeof id === "string" && callId.test(id)) return null;
  const message = `Tool call id was ${typeof id === "string" ? id : ""} but must be a-z, A-Z, 0-9, with a length of 9.`;
  return refuse("bad_call_id", "call", message);
}

/** "Function name was … but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64." */
export function checkName(name: unknown, loc: Place, owner: Fields): Refusal | null {
  if (name === undefined) return missing(loc, owner, "bad_function_name");
  if (typeof name !== "string") return wrongType(loc, "string", name, "bad_function_name");
  if (functionName.test(name)) return null;
  const message = `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`;
  return refuse("bad_function_name", "call", message);
}

/** An object, or the text of one (API reference, FunctionCall). Stricter than the server, which takes any text. */
function checkArguments(text: unknown): Refusal | null {
  if (typeof text !== "string" || isJsonObject(text)) return null;
  return refuse("bad_arguments", "call", "Function arguments must be a JSON object.");
}
