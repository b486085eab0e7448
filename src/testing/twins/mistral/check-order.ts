import type { Refusal } from "../contract.ts";
import type { Fields } from "../openai-shared-values.ts";
import { refuse } from "./errors.ts";

/** Which roles may follow which (mistral-common, `validator.py`, message order). */
const after: Readonly<Record<string, readonly string[]>> = {
  system: ["user", "assistant", "system"],
  user: ["assistant", "system", "user"],
  assistant: ["assistant", "user", "tool"],
  tool: ["assistant", "tool"],
};

/** The order of the roles: the beginning, the end, and who follows whom. */
export function checkOrder(messages: readonly Fields[]): Refusal | null {
  const [first] = messages;
  const last = messages.at(-1);
  if (first === undefined || last === undefined)
    return refuse("missing_messages", "order", "Conversation must have at least one message");
  const isAlone = messages.length === 1;
  if (first.role === "tool" || (isAlone && first.role === "assistant"))
    return refuse("bad_first_role", "order", "Conversation must start with a user message or system message");
  if (last.role === "assistant" && last.prefix !== true) {
    const message =
      "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
    return refuse("last_message_assistant", "order", message);
  }
  return checkSuccession(messages);
}

function checkSuccession(messages: readonly Fields[]): Refusal | null {
  let previous: string | null = null;
  for (const message of messages) {
    const role = String(message.role);
    if (previous !== null && !after[previous]?.includes(role))
      return refuse("unexpected_role", "order", `Unexpected role '${role}' after role '${previous}'`);
    previous = role;
  }
  return null;
}
