import type { Refusal } from "../contract.ts";
import { refuse } from "../openai-shared-errors.ts";
import type { Fields } from "../openai-shared-values.ts";

/** Each kind of call, and what its output is called in complaints. */
const outputOf: Readonly<Record<string, readonly [call: string, name: string]>> = {
  function_call_output: ["function_call", "function call"],
  custom_tool_call_output: ["custom_tool_call", "custom tool call"],
};
const nameOf: Readonly<Record<string, string>> = {
  function_call: "function call",
  custom_tool_call: "custom tool call",
};

/**
 * Every call has one output behind it, and every output a call before it, by `call_id` (Function calling guide,
 * "Handling function calls"; the server's own sentences).
 */
export function checkPairing(items: readonly Fields[]): Refusal | null {
  /** The kind of each call without an output so far. */
  const open = new Map<string, string>();
  const seen = new Set<string>();
  for (const [index, { type, call_id: id }] of items.entries()) {
    if (typeof type !== "string" || typeof id !== "string") continue;
    const output = outputOf[type];
    if (output !== undefined) {
      if (open.get(id) !== output[0]) return withoutCall(id, output[1]);
      open.delete(id);
    } else if (nameOf[type] !== undefined) {
      if (seen.has(id)) return duplicateCall(id, index);
      seen.add(id);
      open.set(id, type);
    }
  }
  for (const [id, kind] of open) return withoutOutput(id, nameOf[kind] ?? kind);
  return null;
}

function withoutCall(id: string, name: string): Refusal {
  const message = `No tool call found for ${name} output with call_id ${id}.`;
  return refuse({ rule: "tool_result_without_call", message, param: "input" });
}

function withoutOutput(id: string, name: string): Refusal {
  const message = `No tool output found for ${name} ${id}.`;
  return refuse({ rule: "tool_call_without_result", message, param: "input" });
}

/** Stricter than the server: an id of ours means one call in the whole request. */
function duplicateCall(id: string, index: number): Refusal {
  const param = `input[${index}].call_id`;
  const message = `Invalid '${param}': duplicate call_id '${id}'.`;
  return refuse({ rule: "duplicate_call_id", message, param, code: "invalid_value" });
}
