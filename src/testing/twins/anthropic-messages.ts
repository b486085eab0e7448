import { readImageHead } from "./images.ts";
import type { Fields } from "./shared.ts";
import { countTokens, fieldsOf, isFields, listOf, measureRequest, RefusedRequest } from "./shared.ts";

/** The structure of a Messages request: its errors, and its messages as turns that consist of blocks. */

/** "Errors" › HTTP errors: the `type` for each status. */
const errorTypes: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** "Errors" › Error shapes. */
export function anthropicErrorBody(status: number, message: string): unknown {
  const type = errorTypes[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message }, request_id: "req_011TwinTwinTwinTwinTwinT" };
}

export function refuse(rule: string, message: string, status = 400): never {
  throw new RefusedRequest({ status, rule, body: anthropicErrorBody(status, message) });
}

/** Checks for an integer of at least `min`. */
export function checkInteger(rule: string, place: string, value: unknown, min: number): void {
  if (value === undefined) refuse(rule, `${place}: Field required`);
  if (!Number.isInteger(value)) refuse(rule, `${place}: Input should be a valid integer`);
  if (Number(value) < min) refuse(rule, `${place}: Input should be greater than or equal to ${min}`);
}

/** One message. Content that is a string is treated as a list with one block. An empty string becomes an empty list. */
export interface Turn {
  readonly role: "user" | "assistant";
  readonly index: number;
  readonly blocks: readonly Block[];
}

export interface Block {
  readonly type: string;
  readonly fields: Fields;
  /** The location as the real server names it: `messages.3.content.1`. */
  readonly place: string;
  /** The blocks in the content of a `tool_result`. */
  readonly inner: readonly Block[];
}

interface BlockKind {
  /** The only role whose messages can contain the block. */
  readonly role?: Turn["role"];
  /** The required string fields, each with the rule that is violated if the field is missing. */
  readonly texts?: Readonly<Record<string, string>>;
}

const text: BlockKind = { texts: { text: "text_form" } };

/** "Messages" › `content`: the known block types. */
const blockKinds: Readonly<Record<string, BlockKind>> = {
  document: { role: "user" },
  image: { role: "user" },
  redacted_thinking: { role: "assistant", texts: { data: "thinking_form" } },
  search_result: { role: "user" },
  server_tool_use: { role: "assistant" },
  text,
  thinking: {
    role: "assistant",
    texts: { thinking: "thinking_form", signature: "thinking_unsigned" },
  },
  tool_result: { role: "user", texts: { tool_use_id: "result_form" } },
  tool_use: { role: "assistant", texts: { id: "tool_use_id_form" } },
  web_search_tool_result: { role: "assistant" },
};
/** "Handle tool calls": the blocks in a result. */
const resultKinds: Readonly<Record<string, BlockKind>> = {
  document: {},
  image: {},
  search_result: {},
  text,
  tool_reference: {},
};

export function parseMessages(messages: readonly unknown[]): readonly Turn[] {
  return messages.map((message, index) => {
    const place = `messages.${index}`;
    if (!isFields(message)) refuse("message_form", `${place}: Input should be a valid dictionary`);
    const { role, content } = message;
    if (role !== "user" && role !== "assistant") return refuseRole(role, index);
    const blocks = parseContent(content, `${place}.content`, blockKinds, (type) => {
      const owner: Turn["role"] = blockKinds[type]?.role ?? role;
      const found = `\`${type}\` blocks can only be in \`${owner}\` messages`;
      if (owner !== role) refuse("block_of_other_role", `${place}: ${found}`);
    });
    return { role, index, blocks };
  });
}

/** "Messages" › `role`: the system prompt has its own field. */
function refuseRole(role: unknown, index: number): never {
  const message =
    role === "system"
      ? 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
      : `messages.${index}.role: ${role === undefined ? "Field required" : "Input should be 'user' or 'assistant'"}`;
  refuse("unknown_role", message);
}

/** "Messages" › `content`: a string, or a list of blocks with known types. */
function parseContent(
  content: unknown,
  place: string,
  kinds: Readonly<Record<string, BlockKind>>,
  checkType?: (type: string) => void,
): readonly Block[] {
  const rule = "content_form";
  if (content === undefined) refuse(rule, `${place}: Field required`);
  if (content === "") return [];
  if (typeof content === "string") {
    const fields = { type: "text", text: content };
    return [{ type: "text", fields, place: `${place}.0`, inner: [] }];
  }
  if (!Array.isArray(content)) refuse(rule, `${place}: Input should be a valid list`);
  return content.map((fields: unknown, index): Block => {
    const at = `${place}.${index}`;
    if (!isFields(fields)) return refuse(rule, `${at}: Input should be a valid dictionary`);
    const { type } = fields;
    if (typeof type !== "string") return refuse(rule, `${at}.type: Field required`);
    if (!Object.hasOwn(kinds, type))
      refuse("unknown_block", describeUnknownTag(at, type, Object.keys(kinds)));
    checkType?.(type);
    for (const [name, broken] of Object.entries(kinds[type]?.texts ?? {}))
      if (typeof fields[name] !== "string") refuse(broken, `${at}.${type}.${name}: Field required`);
    const inner =
      type !== "tool_result" || fields.content === undefined || typeof fields.content === "string"
        ? []
        : parseContent(fields.content, `${at}.tool_result.content`, resultKinds);
    return { type, fields, place: at, inner };
  });
}

export function describeUnknownTag(place: string, tag: unknown, known: readonly string[]): string {
  const tags = known.map((each) => `'${each}'`).join(", ");
  return `${place}: Input tag '${String(tag)}' found using 'type' does not match any of the expected tags: ${tags}`;
}

/** Returns all images, from users and from tool results. */
export function imagesOf(turns: readonly Turn[]): readonly Block[] {
  const blocks = turns.flatMap((turn) => turn.blocks.flatMap((block) => [block, ...block.inner]));
  return blocks.filter((block) => block.type === "image");
}

/** "Vision" › Evaluate image size: a token covers 750 pixels, and an image is scaled down to about 1,600 tokens. */
const pixelsPerToken = 750;
const maxTokensPerImage = 1600;
/** The length of the base64 prefix that contains the dimensions of almost every image. */
const headLength = 64 * 1024;

/** Counts the tokens in a prompt. Images are counted by their dimensions. */
export function countMessages(body: Fields): number {
  let { text: bytes } = measureRequest(body);
  let tokens = 0;
  for (const image of imagesOf(parseMessages(listOf(body.messages)))) {
    const { data } = fieldsOf(image.fields.source);
    const base64 = typeof data === "string" ? data : "";
    bytes -= base64.length;
    const head = readImageHead(Buffer.from(base64.slice(0, headLength), "base64"));
    const pixels = head === null ? Number.POSITIVE_INFINITY : head.width * head.height;
    tokens += Math.min(maxTokensPerImage, Math.ceil(pixels / pixelsPerToken));
  }
  return countTokens(bytes) + tokens;
}
