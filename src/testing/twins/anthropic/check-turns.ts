import type { Refusal } from "../contract.ts";
import { fieldsOf } from "../fields.ts";
import { takesPrefill } from "./models.ts";
import { refuse } from "./refusal.ts";
import type { MessagesRequest, Turn } from "./turns.ts";

/** The order of the turns, and which of them may be first and last. */
export function checkTurns(request: MessagesRequest): Refusal | null {
  return checkFirst(request.turns) ?? checkAlternation(request.turns) ?? checkLast(request);
}

/** Published refusal: `first message must use the "user" role`. */
function checkFirst([first]: readonly Turn[]): Refusal | null {
  if (first?.role === "user") return null;
  return refuse("first_turn_not_user", 'messages: first message must use the "user" role');
}

/**
 * "Messages" › `messages`: turns alternate. The server of today joins two in a row; a twin holds to the refusal that it
 * gave until 2024, for what is joined there is not what was meant here.
 */
function checkAlternation(turns: readonly Turn[]): Refusal | null {
  for (const [index, turn] of turns.entries()) {
    if (turn.role !== turns[index - 1]?.role) continue;
    const found = `but found multiple "${turn.role}" roles in a row`;
    return refuse(
      "turns_not_alternating",
      `messages: roles must alternate between "user" and "assistant", ${found}`,
    );
  }
  return null;
}

/**
 * A last turn of the assistant's is a prefill. "Extended thinking" › Feature compatibility: not while thinking;
 * "What's new in Claude 4.6": not at all; before, published refusal: "final assistant content cannot end with trailing
 * whitespace".
 */
function checkLast({ body, model, turns }: MessagesRequest): Refusal | null {
  const last = turns.at(-1);
  if (last?.role !== "assistant") return null;
  const thinking = fieldsOf(body.thinking)?.type;
  if (!takesPrefill(model) || (thinking !== undefined && thinking !== "disabled")) {
    const advice = "The conversation must end with a user message.";
    return refuse("prefill", `This model does not support assistant message prefill. ${advice}`);
  }
  const text = last.blocks.at(-1)?.fields.text;
  if (typeof text !== "string" || text.trimEnd() === text) return null;
  const message = "messages: final assistant content cannot end with trailing whitespace";
  return refuse("prefill_ends_in_space", message);
}
