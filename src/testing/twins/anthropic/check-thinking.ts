import type { Refusal } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf } from "../fields.ts";
import { isRedactedThinking, signatures } from "../signatures.ts";
import { refuse } from "./refusal.ts";
import type { Block, MessagesRequest, Turn } from "./turns.ts";
import { placeOf } from "./turns.ts";

const guide = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking";

/** Thinking that comes back. What is asked of new thinking is in `check-thinking-mode.ts`. */
export function checkThinking(request: MessagesRequest): Refusal | null {
  return checkBlocks(request) ?? checkLoop(request);
}

function checkBlocks({ model, turns }: MessagesRequest): Refusal | null {
  for (const turn of turns) {
    for (const [index, block] of turn.blocks.entries()) {
      if (!isThinking(block)) continue;
      const place = placeOf(turn, index);
      const refusal =
        block.type === "thinking"
          ? checkSigned(block.fields, model, place)
          : checkRedacted(block.fields, model, place);
      if (refusal !== null) return refusal;
    }
    const last = turn.blocks.at(-1);
    if (last !== undefined && isThinking(last)) {
      // Published refusal, of an answer that is all thinking.
      const message = "The final block in an assistant message cannot be `thinking`.";
      return refuse("thinking_last", `messages.${turn.index}: ${message}`);
    }
  }
  return null;
}

/**
 * "Thinking" › Preserving thinking blocks: they come back as they were. The signature is checked in every turn, and a
 * block of another model is foreign. Published refusal: "Invalid `signature` in `thinking` block".
 */
function checkSigned(fields: Fields, model: string, place: string): Refusal | null {
  const { thinking, signature } = fields;
  if (typeof thinking !== "string")
    return refuse("thinking_form", `${place}.thinking.thinking: Field required`);
  if (typeof signature !== "string")
    return refuse("thinking_unsigned", `${place}.thinking.signature: Field required`);
  if (fields.cache_control !== undefined) {
    // "Prompt caching" › What cannot be cached.
    return refuse("thinking_cached", `${place}.thinking.cache_control: Extra inputs are not permitted`);
  }
  if (signatures.verify("anthropic-messages", model, thinking, signature)) return null;
  return refuse("thinking_signature", `${place}: Invalid \`signature\` in \`thinking\` block`);
}

/** Published refusal: "Invalid `data` in `redacted_thinking` block". */
function checkRedacted({ data }: Fields, model: string, place: string): Refusal | null {
  if (typeof data !== "string")
    return refuse("thinking_form", `${place}.redacted_thinking.data: Field required`);
  if (isRedactedThinking(model, data)) return null;
  return refuse("redacted_data", `${place}: Invalid \`data\` in \`redacted_thinking\` block`);
}

/**
 * "Extended thinking" › Toggling thinking modes in conversations: a tool loop is one turn of the assistant's, in one
 * mode. With a budget it begins with thinking; with thinking disabled it has none.
 */
function checkLoop({ body, turns }: MessagesRequest): Refusal | null {
  const mode = fieldsOf(body.thinking)?.type;
  if (mode !== "enabled" && mode !== "disabled") return null;
  const loop = openLoop(turns);
  const [first] = loop;
  if (first === undefined) return null;
  if (mode === "enabled") {
    const block = first.blocks[0];
    if (block === undefined || isThinking(block)) return null;
    const expected = `Expected \`thinking\` or \`redacted_thinking\`, but found \`${block.type}\`.`;
    const why =
      "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.";
    const advice = `Please consult our documentation at ${guide}`;
    return refuse("loop_without_thinking", `${placeOf(first, 0)}.type: ${expected} ${why} ${advice}`);
  }
  for (const turn of loop) {
    const index = turn.blocks.findIndex(isThinking);
    if (index === -1) continue;
    const message =
      "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.";
    return refuse("loop_with_thinking", `${placeOf(turn, index)}: ${message}`);
  }
  return null;
}

/** The assistant's messages since a user last said something. */
function openLoop(turns: readonly Turn[]): readonly Turn[] {
  const loop: Turn[] = [];
  for (const turn of turns.toReversed()) {
    if (turn.role === "assistant") loop.push(turn);
    else if (!turn.blocks.some((block) => block.type === "tool_result")) break;
  }
  return loop.toReversed();
}

function isThinking(block: Block): boolean {
  return block.type === "thinking" || block.type === "redacted_thinking";
}
