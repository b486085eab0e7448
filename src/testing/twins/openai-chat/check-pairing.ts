import type { Refusal } from "../contract.ts";
import { refuse } from "../openai-shared-errors.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, listOf } from "../openai-shared-values.ts";

/** The calls that the tool messages behind an assistant's message have to answer. */
interface Group {
  readonly ids: readonly string[];
  readonly open: Set<string>;
}

/**
 * Calls and results: each message with calls is followed directly by one tool message for each of them, and by no
 * others (Function calling guide, "Handling function calls"; the server's own sentences).
 */
export function checkPairing(messages: readonly Fields[]): Refusal | null {
  const seen = new Set<string>();
  let group: Group | null = null;
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      const wrong = answer(group, String(message.tool_call_id), index);
      if (wrong !== null) return wrong;
      continue;
    }
    const wrong = unanswered(group, `messages.[${index}].role`);
    if (wrong !== null) return wrong;
    const ids = idsOf(message);
    for (const id of ids) {
      // Stricter than the server across messages: an id of ours means one call in the whole request.
      if (seen.has(id)) return duplicate(id, index);
      seen.add(id);
    }
    group = ids.length === 0 ? null : { ids, open: new Set(ids) };
  }
  return unanswered(group, "messages");
}

function idsOf(message: Fields): string[] {
  return listOf(message.tool_calls).flatMap((call) => (isFields(call) ? [String(call.id)] : []));
}

function answer(group: Group | null, id: string, index: number): Refusal | null {
  if (group === null) {
    const message =
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
    return refuse({ rule: "tool_result_without_call", message, param: `messages.[${index}].role` });
  }
  if (group.open.delete(id)) return null;
  if (group.ids.includes(id)) return duplicate(id, index);
  const message = `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`;
  return refuse({ rule: "tool_result_without_call", message, param: `messages.[${index}].tool_call_id` });
}

function duplicate(id: string, index: number): Refusal {
  const message = `Duplicate value for 'tool_call_id' of '${id}' in message[${index}].`;
  return refuse({ rule: "duplicate_call_id", message, param: `messages.[${index}]` });
}

function unanswered(group: Group | null, param: string): Refusal | null {
  if (group === null || group.open.size === 0) return null;
  const ids = [...group.open].join(", ");
  const message = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids}`;
  return refuse({ rule: "tool_call_without_result", message, param });
}
