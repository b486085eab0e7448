import type { Block, Turn } from "./anthropic-messages.ts";
import { checkInteger, describeUnknownTag, refuse } from "./anthropic-messages.ts";
import type { TwinRequest } from "./contract.ts";
import type { Fields } from "./shared.ts";
import { fieldsOf } from "./shared.ts";
import { isRedactedThinking, signatures } from "./signatures.ts";

const modes = ["adaptive", "between_tools", "disabled", "enabled"];
const minBudget = 1024;
const interleavedBeta = "interleaved-thinking-2025-05-14";
const guide = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking";

/** The version in a model's name: `claude-opus-4-6` is 4.6, and `claude-3-7-sonnet-20250219` is 3.7. */
const modelVersion = /^claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?=-|$)/;

export function isModelAtLeast(model: unknown, major: number, minor: number): boolean {
  const found = modelVersion.exec(String(model));
  if (found === null) return false;
  const [has, hasMinor] = [Number(found[1]), Number(found[2] ?? 0)];
  return has > major || (has === major && hasMinor >= minor);
}

/** Checks the requested thinking mode, and the thinking blocks that are sent back. */
export function checkThinking(request: TwinRequest, body: Fields, turns: readonly Turn[]): void {
  checkMode(request, body);
  for (const turn of turns) checkTurn(turn, String(body.model));
  checkLoop(fieldsOf(body.thinking).type, turns);
}

function checkMode(request: TwinRequest, body: Fields): void {
  const { thinking, model, temperature, tool_choice: choice } = body;
  if (thinking === undefined) return;
  const { type, budget_tokens: budget } = fieldsOf(thinking);
  const rule = "thinking_mode";
  if (typeof type !== "string" || !modes.includes(type))
    refuse(rule, describeUnknownTag("thinking", type, modes));
  if (type !== "enabled") return;
  if (isModelAtLeast(model, 4, 7)) {
    // "Troubleshooting thinking" › Thinking support by model: a budget is rejected in version 4.7 and later.
    const advice = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
    refuse(rule, `"thinking.type.enabled" is not supported for this model. ${advice}`);
  }
  checkInteger("thinking_budget", "thinking.enabled.budget_tokens", budget, minBudget);
  const isInterleaved =
    body.tools !== undefined && request.headers["anthropic-beta"]?.includes(interleavedBeta) === true;
  // "Extended thinking" › How to use: less than `max_tokens`, unless thinking is interleaved.
  if (Number(budget) >= Number(body.max_tokens) && !isInterleaved) {
    const advice = `Please consult our documentation at ${guide}#max-tokens-and-context-window-size`;
    refuse("thinking_budget", `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. ${advice}`);
  }
  // "Extended thinking" › Feature compatibility.
  if (temperature !== undefined && temperature !== 1)
    refuse("thinking_temperature", "`temperature` may only be set to 1 when thinking is enabled.");
  const { type: choiceType } = fieldsOf(choice);
  if (choiceType === "any" || choiceType === "tool")
    refuse("thinking_forced_tool", "Thinking may not be enabled when tool_choice forces tool use.");
}

/**
 * "Thinking" › Preserving thinking blocks: they must be sent back unchanged. The signature is checked in every turn,
 * and is not valid for another model. The messages are published errors.
 */
function checkTurn(turn: Turn, model: string): void {
  for (const { type, fields, place } of turn.blocks.filter(isThinking)) {
    if (type === "redacted_thinking") {
      if (!isRedactedThinking(model, String(fields.data)))
        refuse("redacted_data", `${place}: Invalid \`data\` in \`redacted_thinking\` block`);
      continue;
    }
    // "Prompt caching" › What cannot be cached.
    if (fields.cache_control !== undefined)
      refuse("thinking_cached", `${place}.thinking.cache_control: Extra inputs are not permitted`);
    if (!signatures.verify("anthropic-messages", model, String(fields.thinking), String(fields.signature)))
      refuse("thinking_signature", `${place}: Invalid \`signature\` in \`thinking\` block`);
  }
  const last = turn.blocks.at(-1);
  if (last === undefined || !isThinking(last)) return;
  const message = "The final block in an assistant message cannot be `thinking`.";
  refuse("thinking_last", `messages.${turn.index}: ${message}`);
}

/**
 * "Extended thinking" › Toggling thinking modes in conversations: a tool loop is one assistant turn in one mode. With a
 * budget, it begins with thinking. With thinking disabled, it contains none.
 */
function checkLoop(mode: unknown, turns: readonly Turn[]): void {
  const loop = openLoop(turns);
  const first = loop[0]?.blocks[0];
  if (mode === "enabled" && first !== undefined && !isThinking(first)) {
    const expected = `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`.`;
    const why =
      "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.";
    const advice = `Please consult our documentation at ${guide}`;
    refuse("loop_without_thinking", `${first.place}.type: ${expected} ${why} ${advice}`);
  }
  const thinking = loop.flatMap(({ blocks }) => blocks).find(isThinking);
  if (mode !== "disabled" || thinking === undefined) return;
  const message =
    "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.";
  refuse("loop_with_thinking", `${thinking.place}: ${message}`);
}

/** Returns the assistant messages after the last message with user input. */
function openLoop(turns: readonly Turn[]): readonly Turn[] {
  const isInput = ({ role, blocks }: Turn) =>
    role === "user" && !blocks.some((block) => block.type === "tool_result");
  return turns.slice(turns.findLastIndex(isInput) + 1).filter(({ role }) => role === "assistant");
}

function isThinking({ type }: Block): boolean {
  return type === "thinking" || type === "redacted_thinking";
}
