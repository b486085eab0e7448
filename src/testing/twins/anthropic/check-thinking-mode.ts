import type { Refusal, TwinRequest } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf } from "../fields.ts";
import { takesThinkingBudget } from "./models.ts";
import { refuse } from "./refusal.ts";
import type { MessagesRequest } from "./turns.ts";

const modes = ["adaptive", "between_tools", "disabled", "enabled"];
const leastBudget = 1024;
const interleaved = "interleaved-thinking-2025-05-14";

/** What a request asks of new thinking. */
export function checkThinkingMode({ body, model }: MessagesRequest, request: TwinRequest): Refusal | null {
  if (body.thinking === undefined) return null;
  const thinking = fieldsOf(body.thinking);
  const type = thinking?.type;
  if (thinking === null || typeof type !== "string" || !modes.includes(type)) {
    const tags = modes.map((each) => `'${each}'`).join(", ");
    const found = `Input tag '${String(type)}' found using 'type' does not match any of the expected tags: ${tags}`;
    return refuse("thinking_mode", `thinking: ${found}`);
  }
  if (type !== "enabled") return null;
  if (!takesThinkingBudget(model)) {
    // "Troubleshooting thinking" › Thinking support by model.
    const advice = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
    return refuse("thinking_mode", `"thinking.type.enabled" is not supported for this model. ${advice}`);
  }
  return checkBudget(thinking, body, request) ?? checkCompany(body);
}

/** "Extended thinking" › How to use: at least 1,024, and less than `max_tokens`, unless thinking is interleaved. */
function checkBudget(thinking: Fields, body: Fields, { headers }: TwinRequest): Refusal | null {
  const { budget_tokens: budget } = thinking;
  const place = "thinking.enabled.budget_tokens";
  if (budget === undefined) return refuse("thinking_budget", `${place}: Field required`);
  if (typeof budget !== "number" || !Number.isInteger(budget)) {
    return refuse("thinking_budget", `${place}: Input should be a valid integer`);
  }
  if (budget < leastBudget) {
    return refuse("thinking_budget", `${place}: Input should be greater than or equal to ${leastBudget}`);
  }
  if (budget < Number(body.max_tokens)) return null;
  if (body.tools !== undefined && headers["anthropic-beta"]?.includes(interleaved)) return null;
  const guide =
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size";
  const advice = `Please consult our documentation at ${guide}`;
  return refuse(
    "thinking_budget",
    `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. ${advice}`,
  );
}

/** "Extended thinking" › Feature compatibility: no temperature but 1, and no tool that must be used. */
function checkCompany({ temperature, tool_choice: choice }: Fields): Refusal | null {
  if (temperature !== undefined && temperature !== 1) {
    return refuse("thinking_temperature", "`temperature` may only be set to 1 when thinking is enabled.");
  }
  const type = fieldsOf(choice)?.type;
  if (type !== "any" && type !== "tool") return null;
  return refuse("thinking_forced_tool", "Thinking may not be enabled when tool_choice forces tool use.");
}
