import type { Refusal, TwinRequest } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf, isBlank, listOf } from "../fields.ts";
import { refuse } from "./refusal.ts";

const versions = ["2023-01-01", "2023-06-01"];
const mostMessages = 100_000;

/** Headers, and the fields that every request has. */
export function checkFields(request: TwinRequest, body: Fields): Refusal | null {
  return checkHeaders(request) ?? checkModel(body) ?? checkMessages(body) ?? checkSystem(body.system);
}

/** "API overview" › Authentication; "Versions": both headers go with every request. */
function checkHeaders({ headers }: TwinRequest): Refusal | null {
  if (!headers["x-api-key"] && !headers.authorization?.startsWith("Bearer ")) {
    return refuse("api_key", "x-api-key header is required", 401);
  }
  const version = headers["anthropic-version"];
  if (!version) return refuse("version_header", "anthropic-version: header is required");
  if (versions.includes(version)) return null;
  return refuse("version_header", `anthropic-version: "${version}" is not a valid version`);
}

/** "Messages" › body parameters: `model` and `max_tokens` are required. */
function checkModel({ model, max_tokens: most, stream }: Fields): Refusal | null {
  if (typeof model !== "string") {
    return refuse(
      "model",
      `model: ${model === undefined ? "Field required" : "Input should be a valid string"}`,
    );
  }
  if (model === "") return refuse("model", "model: String should have at least 1 character");
  if (most === undefined) return refuse("max_tokens", "max_tokens: Field required");
  if (typeof most !== "number" || !Number.isInteger(most)) {
    return refuse("max_tokens", "max_tokens: Input should be a valid integer");
  }
  if (most < 1) return refuse("max_tokens", "max_tokens: Input should be greater than or equal to 1");
  if (stream === undefined || typeof stream === "boolean") return null;
  return refuse("stream", "stream: Input should be a valid boolean");
}

/** "Messages" › `messages`: at least one, and no more than 100,000. */
function checkMessages({ messages }: Fields): Refusal | null {
  if (messages === undefined) return refuse("messages", "messages: Field required");
  const list = listOf(messages);
  if (list === null) return refuse("messages", "messages: Input should be a valid list");
  if (list.length === 0) return refuse("no_messages", "messages: at least one message is required");
  if (list.length <= mostMessages) return null;
  const found = `List should have at most ${mostMessages} items after validation, not ${list.length}`;
  return refuse("too_many_messages", `messages: ${found}`);
}

/** "Messages" › `system`: a text or text blocks. Published refusal: "system: text content blocks must be non-empty". */
function checkSystem(system: unknown): Refusal | null {
  if (system === undefined) return null;
  const texts = typeof system === "string" ? [system] : listOf(system)?.map((each) => textOf(each));
  if (texts === undefined) return refuse("system", "system: Input should be a valid list");
  for (const [index, text] of texts.entries()) {
    if (text === null) return refuse("system", `system.${index}: Input should be a text block`);
    if (text === "") return refuse("system", "system: text content blocks must be non-empty");
    if (isBlank(text))
      return refuse("system", "system: text content blocks must contain non-whitespace text");
  }
  return null;
}

function textOf(block: unknown): string | null {
  const fields = fieldsOf(block);
  return fields?.type === "text" && typeof fields.text === "string" ? fields.text : null;
}
