import { inserted } from "../derive.ts";
import type { TurnRule } from "./turn-rule.ts";

const readText = "I have read the results.";

/** Mistral takes no user turn straight after a tool's: a short assistant turn goes between. */
export function separateToolAndUser(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  const follows = (index: number) =>
    messages[index]?.role === "user" && messages[index - 1]?.role === "toolResult";
  if (!messages.some((_, index) => follows(index))) return messages;
  return messages.flatMap((message, index) => {
    if (!follows(index)) return [message];
    tell(
      "assistant_turn_added",
      "A short assistant turn goes between tool results and a user turn.",
      message,
    );
    const between = { role: "assistant" as const, content: [{ type: "text" as const, text: readText }] };
    return [inserted(between), message];
  });
}
