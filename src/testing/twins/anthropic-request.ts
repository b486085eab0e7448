import type { Block, Turn } from "./anthropic-messages.ts";
import {
  checkInteger,
  countMessages,
  describeUnknownTag,
  imagesOf,
  parseMessages,
  refuse,
} from "./anthropic-messages.ts";
import { checkThinking, isModelAtLeast } from "./anthropic-thinking.ts";
import { checkTools } from "./anthropic-tools.ts";
import type { TwinLimits, TwinRequest } from "./contract.ts";
import { decodeBase64, readImageHead } from "./images.ts";
import type { Fields } from "./shared.ts";
import { fieldsOf, isBlank, isFields, listOf, measureRequest } from "./shared.ts";

const versions = ["2023-01-01", "2023-06-01"];
const maxMessages = 100_000;
/** "API overview" › Request size limits. */
const maxRequestBytes = 32 * 1024 * 1024;
/** "Prompt caching" › How many breakpoints: four, for tools, system and messages together. */
const maxBreakpoints = 4;
const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"];
/**
 * Applies to the base64 text, not to the image itself. A published error reports `6275800 bytes` for a file of 4.7
 * million bytes.
 */
const maxImageBytes = 5 * 1024 * 1024;
/**
 * "Vision" › General limits: the maximum length of an image's longer side. A lower limit applies to requests with more
 * than 20 images.
 */
const maxPixels = 8000;
const maxPixelsOfMany = 2000;
const manyImages = 20;

/**
 * Checks whether Anthropic would accept the request: first its headers, its parameters, the form of its messages and its
 * size in bytes, then the rules for messages, tools, thinking, images and caching, and finally its size in tokens.
 */
export function checkMessages(request: TwinRequest, limits: TwinLimits): void {
  const { body } = request;
  if (!isFields(body)) refuse("body_form", "The request body is not valid JSON: expected an object");
  checkHeaders(request);
  checkParameters(body);
  const turns = parseMessages(listOf(body.messages));
  checkRequestSize(request, body);
  checkContent(turns);
  checkOrder(body, turns);
  checkTools(body.tools, turns);
  checkThinking(request, body, turns);
  checkImages(imagesOf(turns), limits);
  checkBreakpoints(body, turns);
  // "Context windows". Published error.
  const tokens = countMessages(body);
  if (tokens > limits.contextWindow)
    refuse("prompt_too_long", `prompt is too long: ${tokens} tokens > ${limits.contextWindow} maximum`);
}

/** "API overview" › Authentication; "Versions": both headers are required in every request. */
function checkHeaders({ headers }: TwinRequest): void {
  if (!headers["x-api-key"] && !headers.authorization?.startsWith("Bearer "))
    refuse("api_key", "x-api-key header is required", 401);
  const version = headers["anthropic-version"];
  const rule = "version_header";
  if (!version) refuse(rule, "anthropic-version: header is required");
  if (!versions.includes(version)) refuse(rule, `anthropic-version: "${version}" is not a valid version`);
}

/** "Messages" › body parameters. */
function checkParameters({ model, max_tokens: most, stream, messages, system }: Fields): void {
  if (model === undefined) refuse("model", "model: Field required");
  if (typeof model !== "string") refuse("model", "model: Input should be a valid string");
  if (model === "") refuse("model", "model: String should have at least 1 character");
  checkInteger("max_tokens", "max_tokens", most, 1);
  if (stream !== undefined && typeof stream !== "boolean")
    refuse("stream", "stream: Input should be a valid boolean");
  if (messages === undefined) refuse("messages", "messages: Field required");
  if (!Array.isArray(messages)) refuse("messages", "messages: Input should be a valid list");
  if (messages.length === 0) refuse("no_messages", "messages: at least one message is required");
  if (messages.length > maxMessages) {
    const found = `List should have at most ${maxMessages} items after validation, not ${messages.length}`;
    refuse("too_many_messages", `messages: ${found}`);
  }
  if (system === undefined) return;
  const blocks = typeof system === "string" ? [{ type: "text", text: system }] : system;
  if (!Array.isArray(blocks)) refuse("system", "system: Input should be a valid list");
  for (const [index, block] of blocks.entries()) {
    const { type, text } = fieldsOf(block);
    if (type !== "text" || typeof text !== "string")
      refuse("system", `system.${index}: Input should be a text block`);
    checkText(text, "system", { emptyRule: "system", blankRule: "system" });
  }
}

/** Published errors. The server accepts a blank block next to one that is not blank, but the twin does not. */
function checkText(text: string, at: string, rules: { emptyRule: string; blankRule: string | null }): void {
  if (text === "") refuse(rules.emptyRule, `${at}: text content blocks must be non-empty`);
  if (rules.blankRule !== null && isBlank(text))
    refuse(rules.blankRule, `${at}: text content blocks must contain non-whitespace text`);
}

function checkRequestSize({ headers }: TwinRequest, body: Fields): void {
  const { bytes, isWellFormed } = measureRequest(body);
  if (Number(headers["content-length"] ?? bytes) > maxRequestBytes)
    refuse("request_too_large", "Request exceeds the maximum allowed number of bytes", 413);
  if (!isWellFormed)
    refuse("ill_formed_text", "The request body is not valid JSON: no low surrogate in string");
}

/** Checks the content of each turn on its own. */
function checkContent(turns: readonly Turn[]): void {
  for (const { index, role, blocks } of turns) {
    if (blocks.length === 0 && !(index === turns.length - 1 && role === "assistant")) {
      const message =
        "all messages must have non-empty content except for the optional final assistant message";
      refuse("empty_content", `messages.${index}: ${message}`);
    }
    for (const { type, fields, place, inner } of blocks) {
      if (type === "text")
        checkText(String(fields.text), "messages", { emptyRule: "empty_text", blankRule: "blank_text" });
      for (const each of inner) {
        // Published error.
        if (fields.is_error === true && each.type !== "text") {
          const message = 'all content must be type "text" if "is_error" is true';
          refuse("error_result_not_text", `${place}.tool_result: ${message}`);
        }
        if (each.type === "text")
          checkText(String(each.fields.text), "messages", { emptyRule: "empty_text", blankRule: null });
      }
    }
  }
}

/** Checks the order of the turns, including the first and last turns. */
function checkOrder({ model, thinking }: Fields, turns: readonly Turn[]): void {
  // Published error.
  if (turns[0]?.role !== "user")
    refuse("first_turn_not_user", 'messages: first message must use the "user" role');
  // The current server merges two turns with the same role. The twin returns the error from 2024 because Skein never
  // sends two such turns on purpose.
  const repeated = turns.find(({ role }, index) => role === turns[index - 1]?.role);
  if (repeated !== undefined) {
    const found = `but found multiple "${repeated.role}" roles in a row`;
    refuse(
      "turns_not_alternating",
      `messages: roles must alternate between "user" and "assistant", ${found}`,
    );
  }
  const last = turns.at(-1);
  if (last?.role !== "assistant") return;
  // If the last turn is the assistant's, it is a prefill. "What's new in Claude 4.6" › Prefill removal; "Extended
  // thinking" › Feature compatibility.
  const { type: mode } = fieldsOf(thinking);
  if (isModelAtLeast(model, 4, 6) || (mode !== undefined && mode !== "disabled")) {
    const advice = "The conversation must end with a user message.";
    refuse("prefill", `This model does not support assistant message prefill. ${advice}`);
  }
  const text = last.blocks.at(-1)?.fields.text;
  if (typeof text !== "string" || text.trimEnd() === text) return;
  // Published error.
  const message = "messages: final assistant content cannot end with trailing whitespace";
  refuse("prefill_ends_in_space", message);
}

/** "Vision" › General limits. */
function checkImages(images: readonly Block[], { contextWindow }: TwinLimits): void {
  // The limit is 100 images for a window of 200,000 tokens and 600 images for a larger window.
  const most = contextWindow > 200_000 ? 600 : 100;
  if (images.length > most)
    refuse("too_many_images", `Too much media: 0 document pages + ${images.length} images > ${most}`);
  const longestSide = images.length > manyImages ? maxPixelsOfMany : maxPixels;
  for (const { fields, place } of images) checkImage(fields.source, `${place}.image.source`, longestSide);
}

function checkImage(source: unknown, place: string, longestSide: number): void {
  const rule = "image_form";
  if (!isFields(source)) refuse(rule, `${place}: Field required`);
  const { type, data, media_type: mimeType } = source;
  if (type === "url" || type === "file") return;
  if (type !== "base64") refuse(rule, describeUnknownTag(place, type, ["base64", "file", "url"]));
  const at = `${place}.base64`;
  if (typeof mimeType !== "string" || !imageTypes.includes(mimeType)) {
    const message = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
    refuse("image_type", `${at}.media_type: ${message}`);
  }
  if (typeof data !== "string") refuse(rule, `${at}.data: Field required`);
  if (data === "") refuse("image_empty", `${at}: image cannot be empty`);
  if (data.length > maxImageBytes) {
    const message = `image exceeds 5 MB maximum: ${data.length} bytes > ${maxImageBytes} bytes`;
    refuse("image_too_large", `${at}: ${message}`);
  }
  const bytes = decodeBase64(data);
  if (bytes === null) refuse("image_base64", `${at}: invalid base64 data`);
  const head = readImageHead(bytes);
  if (head === null) refuse("image_unreadable", "Could not process image");
  if (head.mimeType !== mimeType) {
    const found = `The image was specified using the ${mimeType} media type`;
    const appears = `but the image appears to be a ${head.mimeType} image`;
    refuse("image_type_mismatch", `${at}: ${found}, ${appears}`);
  }
  if (Math.max(head.width, head.height) <= longestSide) return;
  const ofMany = longestSide === maxPixels ? "" : " for many-image requests";
  const message = `At least one of the image dimensions exceed max allowed size${ofMany}: ${longestSide} pixels`;
  refuse("image_dimensions", `${at}.data: ${message}`);
}

function checkBreakpoints(body: Fields, turns: readonly Turn[]): void {
  const blocks = turns.flatMap((turn) => turn.blocks).map(({ fields }) => fields);
  const inner = blocks.flatMap(({ content }) => listOf(content));
  const places = [body, ...listOf(body.tools), ...listOf(body.system), ...blocks, ...inner];
  const found = places.filter((each) => isFields(fieldsOf(each).cache_control)).length;
  if (found <= maxBreakpoints) return;
  const message = `A maximum of ${maxBreakpoints} blocks with cache_control may be provided. Found ${found}.`;
  refuse("too_many_breakpoints", message);
}
