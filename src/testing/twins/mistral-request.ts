import type { TwinLimits, TwinRequest } from "./contract.ts";
import { readDataUrl } from "./images.ts";
import {
  checkKnownFields,
  checkMessageSchema,
  checkName,
  checkObject,
  refuse,
  refuseMissing,
  refuseSchema,
  refuseType,
  roleRules,
} from "./mistral-schema.ts";
import type { Fields } from "./shared.ts";
import { countPromptTokens, fieldsOf, isBlank, isFields, isJsonObject, listOf, nameSet } from "./shared.ts";

/** The parameters for `POST /v1/chat/completions` (API reference, ChatCompletionRequest). */
const parameters = nameSet(
  `model messages temperature top_p max_tokens stream stop random_seed response_format tools tool_choice
  presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort safe_prompt metadata
  guardrails document_image_limit document_page_limit prompt_cache_key`,
);

const callId = /^[a-zA-Z0-9]{9}$/;
/** "The maximum number images per request via API is 8." "The current file size limit is 10Mb." (Vision guide, FAQ) */
const maxImages = 8;
const maxImageBytes = 10 * 1024 * 1024;
/** "PNG (.png), JPEG (.jpeg and .jpg), WEBP (.webp), Non-animated GIF with only one frame (.gif)" (Vision guide, FAQ) */
const imageTypes = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/** Checks whether Mistral would accept the request: first the whole schema, then the semantics. */
export function checkMistral({ body }: TwinRequest, limits: TwinLimits): void {
  if (!isFields(body)) {
    const msg = "Input should be a valid dictionary or object to extract fields from";
    refuseSchema("not_json", "model_attributes_type", [], msg, body);
  }
  const { model, messages } = body;
  if (model === undefined) refuseMissing(["model"], body, "missing_model");
  if (typeof model !== "string") refuseType(["model"], "string", model, "missing_model");
  if (messages === undefined) refuseMissing(["messages"], body, "missing_messages");
  if (!Array.isArray(messages)) refuseType(["messages"], "list", messages, "missing_messages");
  checkKnownFields([], body, parameters);
  for (const [index, message] of messages.entries()) checkMessageSchema(message, ["messages", index]);
  const checked: readonly Fields[] = messages;
  checkOrder(checked);
  checkPairing(checked);
  for (const [index, message] of checked.entries())
    checkMessage(message, index, index === checked.length - 1);
  checkTools(body.tools);
  checkImages(checked);
  checkSize(body, limits);
}

/** Checks the order of the roles, including the first and last messages. */
function checkOrder(messages: readonly Fields[]): void {
  const [first] = messages;
  const last = messages.at(-1);
  if (first === undefined || last === undefined)
    refuse("missing_messages", "order", "Conversation must have at least one message");
  if (first.role === "tool" || (messages.length === 1 && first.role === "assistant"))
    refuse("bad_first_role", "order", "Conversation must start with a user message or system message");
  if (last.role === "assistant" && last.prefix !== true) {
    const message =
      "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
    refuse("last_message_assistant", "order", message);
  }
  for (const [index, { role }] of messages.slice(1).entries()) {
    const previous = String(messages[index]?.role);
    if (!roleRules[previous]?.next.includes(String(role)))
      refuse("unexpected_role", "order", `Unexpected role '${role}' after role '${previous}'`);
  }
}

/**
 * Requires one result for each call, directly after the message with the calls (mistral-common, `validator.py`, tool
 * calls followed by tool messages).
 */
function checkPairing(messages: readonly Fields[]): void {
  const seen = new Set<unknown>();
  let calls = new Set<unknown>();
  let results = new Set<unknown>();
  const checkCount = () => {
    if (calls.size !== results.size)
      refuse("tool_call_without_result", "order", "Not the same number of function calls and responses");
  };
  for (const message of messages) {
    const { role, tool_call_id: id } = message;
    if (role === "tool") {
      if (results.has(id)) refuseDuplicate(id, "tool results");
      if (!calls.has(id)) {
        const text = `Unexpected tool call id ${nameOf(id)} in tool results`;
        refuse("tool_result_without_call", "order", text);
      }
      results.add(id);
      continue;
    }
    checkCount();
    calls = new Set();
    results = new Set();
    for (const call of listOf(message.tool_calls).map(fieldsOf)) {
      // Stricter than the server across messages because Skein uses each ID for only one call in the whole request.
      if (seen.has(call.id)) refuseDuplicate(call.id, "assistant message");
      seen.add(call.id);
      calls.add(call.id);
    }
  }
  checkCount();
}

function refuseDuplicate(id: unknown, where: string): never {
  refuse("duplicate_call_id", "order", `Duplicate tool call id ${nameOf(id)} in ${where}`);
}

function nameOf(id: unknown): string {
  return typeof id === "string" ? id : "None";
}

/** Checks each message on its own, after the order has been checked (mistral-common, `validator.py`). */
function checkMessage(message: Fields, index: number, isLast: boolean): void {
  const { role, content, name, tool_call_id: id } = message;
  // Stricter than the server, which accepts blank text. Skein never sends it.
  if (role === "user" && isEmptyContent(content))
    refuse("empty_content", "other", "User message must have content.");
  if (role === "assistant") checkAssistant(message, index, isLast);
  if (role !== "tool") return;
  checkCallId(id, "Tool call id has to be defined.");
  if ((name ?? null) !== null) checkName(name, ["messages", index, "tool", "name"], message);
}

function checkAssistant(message: Fields, index: number, isLast: boolean): void {
  const calls = listOf(message.tool_calls);
  if (calls.length === 0 && isEmptyContent(message.content)) {
    const text = "Assistant message must have either content or tool_calls, but not none.";
    refuse("empty_content", "assistant", text);
  }
  if (message.prefix === true && !isLast) {
    const text = "Assistant message with prefix True must be last message";
    refuse("prefix_not_last", "assistant", text);
  }
  for (const [at, call] of calls.map(fieldsOf).entries()) {
    const called = fieldsOf(call.function);
    checkCallId(call.id, "Tool call id has to be defined in serving mode.");
    checkName(called.name, ["messages", index, "assistant", "tool_calls", at, "function", "name"], called);
    // According to the API reference (FunctionCall), an object or JSON text of an object. Stricter than the server, which accepts any text.
    if (typeof called.arguments === "string" && !isJsonObject(called.arguments))
      refuse("bad_arguments", "call", "Function arguments must be a JSON object.");
  }
}

/** Whether the content is missing or contains blank text. */
function isEmptyContent(content: unknown): boolean {
  if (typeof content === "string") return isBlank(content);
  const texts = listOf(content).map((chunk) => fieldsOf(chunk).text);
  return texts.length === 0 || texts.some((text) => typeof text === "string" && isBlank(text));
}

/** "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9." (mistral-common, `validator.py`) */
function checkCallId(id: unknown, undefinedMessage: string): void {
  const rule = "bad_call_id";
  if (id === undefined || id === null) refuse(rule, "call", undefinedMessage);
  const name = typeof id === "string" ? id : "";
  if (callId.test(name)) return;
  refuse(rule, "call", `Tool call id was ${name} but must be a-z, A-Z, 0-9, with a length of 9.`);
}

function checkTools(tools: unknown): void {
  if (tools === undefined || tools === null) return;
  const rule = "bad_tools";
  if (!Array.isArray(tools)) refuseType(["tools"], "list", tools, rule);
  for (const [index, tool] of tools.entries()) {
    const loc = ["tools", index];
    checkObject(loc, tool, rule);
    if (tool.type !== undefined && tool.type !== "function") continue;
    const at = [...loc, "function"];
    if (!isFields(tool.function)) refuseMissing(at, tool, rule);
    checkName(tool.function.name, [...at, "name"], tool.function);
  }
}

function checkImages(messages: readonly Fields[]): void {
  const chunks = messages.flatMap(({ content }) => listOf(content)).map(fieldsOf);
  const images = chunks.filter(({ type }) => type === "image_url").map(({ image_url: image }) => image);
  if (images.length > maxImages) {
    const message = `Too many images in request: ${images.length}, maximum is ${maxImages}`;
    refuse("too_many_images", "arguments", message);
  }
  for (const image of images) checkImage(String(isFields(image) ? image.url : image));
}

function checkImage(url: string): void {
  if (/^https?:\/\//.test(url)) return;
  const image = url.startsWith("data:") ? readDataUrl(url) : null;
  if (image === null) refuse("image_not_base64", "file", "Image could not be decoded from base64");
  const { mediaType, actual, isAnimated, bytes } = image;
  if (!imageTypes.includes(mediaType))
    refuse("image_type_unsupported", "file", `Image type ${mediaType} is not supported`);
  // Stricter than the server if both types are supported.
  if (actual !== mediaType) refuse("image_type_mismatch", "file", `Image data is not of type ${mediaType}`);
  if (isAnimated) refuse("image_animated", "file", "Animated images are not supported");
  if (bytes > maxImageBytes)
    refuse("images_too_large", "file", `Image of ${bytes} bytes exceeds the limit of 10MB`);
}

/** "The token count of your prompt plus `max_tokens` cannot exceed the model's context length." (API reference) */
function checkSize(body: Fields, { contextWindow }: TwinLimits): void {
  const tokens = countPromptTokens([body.messages], body.tools);
  const most = typeof body.max_tokens === "number" ? body.max_tokens : 0;
  if (tokens + most <= contextWindow) return;
  const extra = tokens > contextWindow ? "" : ` with max_tokens ${most}`;
  const message = `Prompt contains ${tokens} tokens and 0 draft tokens${extra}, too large for model with ${contextWindow} maximum context length`;
  refuse("context_length", "arguments", message);
}
