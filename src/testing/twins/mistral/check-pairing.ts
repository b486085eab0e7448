import type { Refusal } from "../contract.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, listOf } from "../openai-shared-values.ts";
import { refuse } from "./errors.ts";

/**
 * As many results as calls, each for one of them, directly behind the message that made them (mistral-common,
 * `validator.py`, tool calls followed by tool messages).
 */
export function checkPairing(messages: readonly Fields[]): Refusal | null {
  const seen = new Set<unknown>();
  let expected = new Set<unknown>();
  let observed = new Set<unknown>();
  for (const message of messages) {
    if (message.role === "tool") {
      const wrong = checkResult(message.tool_call_id, expected, observed);
      if (wrong !== null) return wrong;
      observed.add(message.tool_call_id);
      continue;
    }
    if (expected.size !== observed.size) return notTheSame();
    expected = new Set();
    observed = new Set();
    for (const id of idsOf(message)) {
      // Stricter than the server across messages: an id of ours means one call in the whole request.
      if (seen.has(id)) return duplicate(id, "assistant message");
      seen.add(id);
      expected.add(id);
    }
  }
  return expected.size === observed.size ? null : notTheSame();
}

function idsOf(message: Fields): unknown[] {
  return listOf(message.tool_calls).map((call) => (isFields(call) ? call.id : undefined));
}

function checkResult(id: unknown, expected: ReadonlySet<unknown>, observed: ReadonlySet<unknown>) {
  if (observed.has(id)) return duplicate(id, "tool results");
  if (expected.has(id)) return null;
  const message = `Unexpected tool call id ${nameOf(id)} in tool results`;
  return refuse("tool_result_without_call", "order", message);
}

function notTheSame(): Refusal {
  return refuse("tool_call_without_result", "order", "Not the same number of function calls and responses");
}

function duplicate(id: unknown, where: string): Refusal {
  return refuse("duplicate_call_id", "order", `Duplicate tool call id ${nameOf(id)} in ${where}`);
}

function nameOf(id: unknown): string {
  return typeof id === "string" ? id : "None";
}
