import type { TurnRule } from "./turn-rule.ts";

/** A turn that has no content left is no turn. */
export function dropEmptyTurns(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  if (!messages.some((message) => message.content.length === 0)) return messages;
  return messages.filter((message) => {
    if (message.content.length > 0) return true;
    tell("turn_dropped", `A turn of the ${message.role} has no content left.`, message);
    return false;
  });
}
