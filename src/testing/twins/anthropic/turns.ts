import type { Refusal } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import { refuse } from "./refusal.ts";

/** One message of a request; a text in place of blocks is one block, an empty one none. */
export interface Turn {
  readonly role: "user" | "assistant";
  readonly index: number;
  readonly blocks: readonly Block[];
}

export interface Block {
  readonly type: string;
  readonly fields: Fields;
}

/** A request whose form is right. */
export interface MessagesRequest {
  readonly body: Fields;
  readonly model: string;
  readonly turns: readonly Turn[];
}

const ofTurns = [
  "document",
  "image",
  "redacted_thinking",
  "search_result",
  "server_tool_use",
  "text",
  "thinking",
  "tool_result",
  "tool_use",
  "web_search_tool_result",
];
const ofResults = ["document", "image", "search_result", "text", "tool_reference"];

/** How the real server names a place: `messages.3.content.1`. */
export function placeOf(turn: Turn, block: number): string {
  return `messages.${turn.index}.content.${block}`;
}

/** Reads the messages, as far as it can be told from their form alone. */
export function parseTurns(messages: readonly unknown[]): readonly Turn[] | Refusal {
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const fields = fieldsOf(message);
    if (fields === null)
      return refuse("message_form", `messages.${index}: Input should be a valid dictionary`);
    const { role } = fields;
    if (role !== "user" && role !== "assistant") return refuseRole(role, index);
    const blocks = parseContent(fields.content, `messages.${index}.content`, ofTurns);
    if ("rule" in blocks) return blocks;
    turns.push({ role, index, blocks });
  }
  return turns;
}

/** What a tool's result holds; a text in place of blocks is none. */
export function resultBlocks(block: Block, place: string): readonly Block[] | Refusal {
  const { content } = block.fields;
  if (content === undefined || typeof content === "string") return [];
  return parseContent(content, `${place}.tool_result.content`, ofResults);
}

/** "Messages" › `role`: a message is a user's or the assistant's; the system prompt has a field of its own. */
function refuseRole(role: unknown, index: number): Refusal {
  const message =
    role === "system"
      ? 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
      : `messages.${index}.role: ${role === undefined ? "Field required" : "Input should be 'user' or 'assistant'"}`;
  return refuse("unknown_role", message);
}

/** "Messages" › `content`: a text, or a list of blocks of known types. */
function parseContent(content: unknown, place: string, known: readonly string[]): readonly Block[] | Refusal {
  if (content === undefined) return refuse("content_form", `${place}: Field required`);
  if (content === "") return [];
  if (typeof content === "string") return [{ type: "text", fields: { type: "text", text: content } }];
  const list = listOf(content);
  if (list === null) return refuse("content_form", `${place}: Input should be a valid list`);
  const blocks: Block[] = [];
  for (const [index, each] of list.entries()) {
    const fields = fieldsOf(each);
    const at = `${place}.${index}`;
    if (fields === null) return refuse("content_form", `${at}: Input should be a valid dictionary`);
    const { type } = fields;
    if (typeof type !== "string") return refuse("content_form", `${at}.type: Field required`);
    if (!known.includes(type)) return refuse("unknown_block", unknownTag(at, type, known));
    blocks.push({ type, fields });
  }
  return blocks;
}

function unknownTag(place: string, type: string, known: readonly string[]): string {
  const tags = known.map((each) => `'${each}'`).join(", ");
  return `${place}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${tags}`;
}
