import type { Refusal } from "../contract.ts";
import { isBlank } from "../fields.ts";
import { refuse } from "./refusal.ts";
import type { Block, MessagesRequest, Turn } from "./turns.ts";
import { placeOf, resultBlocks } from "./turns.ts";

/** "Messages" › `content`: which blocks are a user's, and which the assistant's. */
const onlyOf: Readonly<Record<string, "user" | "assistant">> = {
  document: "user",
  image: "user",
  search_result: "user",
  tool_result: "user",
  redacted_thinking: "assistant",
  server_tool_use: "assistant",
  thinking: "assistant",
  tool_use: "assistant",
  web_search_tool_result: "assistant",
};

/** What stands in a turn, whatever its neighbours. */
export function checkContent({ turns }: MessagesRequest): Refusal | null {
  for (const turn of turns) {
    const refusal = checkTurn(turn, turn.index === turns.length - 1);
    if (refusal !== null) return refusal;
  }
  return null;
}

/** Published refusal: "all messages must have non-empty content except for the optional final assistant message". */
function checkTurn(turn: Turn, isLast: boolean): Refusal | null {
  if (turn.blocks.length === 0 && !(isLast && turn.role === "assistant")) {
    const message =
      "all messages must have non-empty content except for the optional final assistant message";
    return refuse("empty_content", `messages.${turn.index}: ${message}`);
  }
  for (const [index, block] of turn.blocks.entries()) {
    const owner = onlyOf[block.type];
    if (owner !== undefined && owner !== turn.role) {
      const message = `\`${block.type}\` blocks can only be in \`${owner}\` messages`;
      return refuse("block_of_other_role", `messages.${turn.index}: ${message}`);
    }
    const place = placeOf(turn, index);
    const refusal =
      block.type === "text"
        ? checkText(block, place)
        : block.type === "tool_result"
          ? checkResult(block, place)
          : null;
    if (refusal !== null) return refusal;
  }
  return null;
}

/**
 * Published refusals: "text content blocks must be non-empty", and "must contain non-whitespace text". The server lets a
 * blank block stand beside one that is not; a twin does not.
 */
function checkText(block: Block, place: string): Refusal | null {
  const { text } = block.fields;
  if (typeof text !== "string") return refuse("text_form", `${place}.text.text: Field required`);
  if (text === "") return refuse("empty_text", "messages: text content blocks must be non-empty");
  if (!isBlank(text)) return null;
  return refuse("blank_text", "messages: text content blocks must contain non-whitespace text");
}

/** "Handle tool calls": a result is a text or blocks. Published refusal: an error's blocks are all text. */
function checkResult(block: Block, place: string): Refusal | null {
  const { tool_use_id: id, is_error: isError } = block.fields;
  if (typeof id !== "string")
    return refuse("result_form", `${place}.tool_result.tool_use_id: Field required`);
  const inside = resultBlocks(block, place);
  if ("rule" in inside) return inside;
  for (const [index, each] of inside.entries()) {
    if (isError === true && each.type !== "text") {
      const message = 'all content must be type "text" if "is_error" is true';
      return refuse("error_result_not_text", `${place}.tool_result: ${message}`);
    }
    if (each.type !== "text") continue;
    const at = `${place}.tool_result.content.${index}`;
    if (typeof each.fields.text !== "string") return refuse("text_form", `${at}.text.text: Field required`);
    if (each.fields.text === "")
      return refuse("empty_text", "messages: text content blocks must be non-empty");
  }
  return null;
}
