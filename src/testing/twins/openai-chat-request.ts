import type { TwinLimits, TwinRequest } from "./contract.ts";
import type { RequestImage, TextRule } from "./openai.ts";
import {
  callArguments,
  checkContentText,
  checkEffort,
  checkImages,
  checkKnownFields,
  checkList,
  checkObject,
  checkOneOf,
  checkText,
  functionName,
  refuse,
  refuseMissing,
} from "./openai.ts";
import type { Fields } from "./shared.ts";
import { countPromptTokens, fieldsOf, isFields, listOf, nameSet } from "./shared.ts";

/** The parameters for `POST /v1/chat/completions` (API reference, Chat, "Create chat completion"). */
const parameters = nameSet(
  `model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
  metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
  prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop
  store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
  web_search_options`,
);
const streamOptions = nameSet("include_usage include_obfuscation");
/** The fields for each role (API reference, Chat, "messages"). */
const messageFields: Readonly<Record<string, ReadonlySet<string>>> = {
  system: nameSet("role content name"),
  assistant: nameSet("role content name refusal audio annotations tool_calls function_call"),
  user: nameSet("role content name"),
  function: nameSet("role content name"),
  tool: nameSet("role content name tool_call_id"),
  developer: nameSet("role content name"),
};
const roles = Object.keys(messageFields);
/** Models whose own servers accept `reasoning_content` (DeepSeek, "Thinking Mode"; Moonshot, "Kimi K2 Thinking"). */
const reasoningModels = /^(?:deepseek|kimi)-/;
const assistantFieldsWithReasoning = new Set([...(messageFields.assistant ?? []), "reasoning_content"]);
/** The content parts for each role (API reference, Chat, "messages", content). The other roles have only text. */
const partTypes: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "image_url", "input_audio", "file"],
  assistant: ["text", "refusal"],
};
const partFields = nameSet("text image_url input_audio refusal audio file type prompt_cache_breakpoint");
/** An assistant message needs no content if it has one of these. */
const contentSubstitutes = ["tool_calls", "function_call", "refusal", "audio"];
const callFields = nameSet("id type function custom");
const functionFields = nameSet("name arguments");
const callTypes = ["function", "custom"];
/** "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40" */
const callId: TextRule = { rule: "bad_call_id", isNonEmpty: true, maxLength: 40 };
const resultCallId: TextRule = { rule: "bad_call_id", isNonEmpty: true };
/** "A max of 128 functions are supported." (API reference, Chat, tools) */
const maxTools = 128;

/** Checks whether Chat Completions would accept the request. */
export function checkChat({ body }: TwinRequest, limits: TwinLimits): void {
  if (!isFields(body)) {
    const message =
      "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload.)";
    refuse({ rule: "not_json", message });
  }
  checkParameters(body);
  const messages = listOf(body.messages);
  for (const [index, message] of messages.entries())
    checkMessage(message, index, reasoningModels.test(String(body.model)));
  checkTools(body);
  const checked = messages as readonly Fields[];
  checkPairing(checked);
  checkImages(imagesOf(checked));
  // Stricter than the server, which would continue an answer. Skein's requests never end with one.
  if (checked.at(-1)?.role === "assistant") {
    const message = "Invalid 'messages': the last message must not have the role 'assistant'.";
    refuse({ rule: "last_message_assistant", message, param: "messages", code: "invalid_value" });
  }
  checkSize(body, limits);
}

function checkParameters(body: Fields): void {
  const { model, messages, stream, stream_options: options } = body;
  if (typeof model !== "string" || model === "")
    refuse({ rule: "missing_model", message: "you must provide a model parameter" });
  if (messages === undefined) refuseMissing("messages", "missing_messages");
  checkKnownFields("", body, parameters);
  checkList("messages", messages, { emptyRule: "missing_messages" });
  checkEffort(model, body.reasoning_effort, "reasoning_effort");
  if (options === undefined || options === null) return;
  // "Options for streaming response. Only set this when you set `stream: true`." (API reference)
  const param = "stream_options";
  checkObject(param, options);
  if (stream !== true) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    refuse({ rule: "stream_options_without_stream", message, param });
  }
  checkKnownFields(param, options, streamOptions);
}

function checkMessage(message: unknown, index: number, takesReasoning: boolean): void {
  const at = `messages[${index}]`;
  checkObject(at, message);
  const { role } = message;
  if (role === undefined) refuseMissing(`${at}.role`, "bad_role");
  checkOneOf(`${at}.role`, role, roles, "bad_role");
  const isAssistant = role === "assistant";
  const fields = takesReasoning && isAssistant ? assistantFieldsWithReasoning : messageFields[role];
  checkKnownFields(at, message, fields ?? new Set());
  checkContent(message, role, index);
  if (isAssistant) checkCalls(message.tool_calls, `${at}.tool_calls`);
  if (role === "tool") checkText(`${at}.tool_call_id`, message.tool_call_id, resultCallId);
}

/** "The contents of the assistant message. Required unless `tool_calls` or `function_call` is specified." */
function checkContent(message: Fields, role: string, index: number): void {
  const { content } = message;
  const isReplaced =
    role === "assistant" && contentSubstitutes.some((name) => (message[name] ?? null) !== null);
  if (content === undefined || content === null) {
    if (isReplaced) return;
    const text = "Invalid value for 'content': expected a string, got null.";
    refuse({ rule: "empty_content", message: text, param: `messages.[${index}].content` });
  }
  const canBeBlank = isReplaced || (role !== "user" && role !== "assistant");
  const param = `messages[${index}].content`;
  if (typeof content === "string") {
    checkContentText(content, param, canBeBlank);
    return;
  }
  checkList(param, content, { emptyRule: "empty_content", expected: "one of a string or array of objects" });
  for (const [at, part] of content.entries())
    checkPart(part, { param: `${param}[${at}]`, role, index, canBeBlank });
}

interface PartPlace {
  readonly param: string;
  readonly role: string;
  readonly index: number;
  readonly canBeBlank: boolean;
}

function checkPart(part: unknown, { param, role, index, canBeBlank }: PartPlace): void {
  checkObject(param, part);
  const { type } = part;
  const rule = "bad_part";
  if (type === undefined) refuseMissing(`${param}.type`, rule);
  const allowed = partTypes[role] ?? ["text"];
  if (type === "image_url" && !allowed.includes(type)) {
    const at = `messages[${index}]`;
    const message = `Invalid '${at}'. Image URLs are only allowed for messages with role 'user', but this message with role '${role}' contains an image URL.`;
    refuse({ rule: "image_outside_user", message, param: at, code: "invalid_value" });
  }
  checkOneOf(`${param}.type`, type, allowed, rule);
  checkKnownFields(param, part, partFields);
  const value = part[type];
  const at = `${param}.${type}`;
  if (type === "text" || type === "refusal") {
    checkContentText(value, at, canBeBlank, rule);
    return;
  }
  if (value === undefined) refuseMissing(at, rule);
  checkObject(at, value, rule);
  if (type !== "image_url" || typeof value.url === "string") return;
  checkText(`${at}.url`, value.url, { rule });
}

function checkCalls(calls: unknown, param: string): void {
  if (calls === undefined || calls === null) return;
  checkList(param, calls, { emptyRule: "empty_tool_calls" });
  for (const [index, call] of calls.entries()) {
    const at = `${param}[${index}]`;
    checkObject(at, call);
    checkKnownFields(at, call, callFields);
    checkText(`${at}.id`, call.id, callId);
    const called = checkTyped(call, at, "bad_call_type");
    const isFunction = call.type === "function";
    const inner = `${at}.${call.type}`;
    if (isFunction) checkKnownFields(inner, called, functionFields);
    checkText(`${inner}.name`, called.name, functionName);
    if (isFunction) checkText(`${inner}.arguments`, called.arguments, callArguments);
  }
}

/** Checks a call or a tool. Its function's fields are under the name of its type. */
function checkTyped(value: Fields, at: string, typeRule: string, rule?: string): Fields {
  const { type } = value;
  if (type === undefined) refuseMissing(`${at}.type`, rule);
  checkOneOf(`${at}.type`, type, callTypes, typeRule);
  const inner = value[type];
  if (inner === undefined) refuseMissing(`${at}.${type}`, rule);
  checkObject(`${at}.${type}`, inner, rule);
  return inner;
}

function checkTools({ tools, tool_choice: choice }: Fields): void {
  const rule = "bad_tools";
  if (tools === undefined || tools === null) {
    if (choice === undefined || choice === null || choice === "none") return;
    const message =
      "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
    refuse({ rule: "tool_choice_without_tools", message, param: "tool_choice" });
  }
  checkList("tools", tools, { rule, emptyRule: rule });
  if (tools.length > maxTools) {
    const message = `Invalid 'tools': array too long. Expected an array with maximum length ${maxTools}, but got an array with length ${tools.length} instead.`;
    refuse({ rule, message, param: "tools", code: "array_above_max_length" });
  }
  for (const [index, tool] of tools.entries()) {
    const at = `tools[${index}]`;
    checkObject(at, tool, rule);
    const { name } = checkTyped(tool, at, rule, rule);
    checkText(`${at}.${tool.type}.name`, name, functionName);
  }
}

/**
 * Each message with calls must be directly followed by exactly one tool message for each call (Function calling guide,
 * "Handling function calls"; the server's own messages).
 */
function checkPairing(messages: readonly Fields[]): void {
  const seen = new Set<string>();
  let ids: readonly string[] = [];
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      checkResult(String(message.tool_call_id), ids, open, index);
      continue;
    }
    checkAnswered(open, `messages.[${index}].role`);
    ids = listOf(message.tool_calls).map((call) => String(fieldsOf(call).id));
    open = new Set(ids);
    for (const id of ids) {
      // Stricter than the server across messages because Skein uses each ID for only one call in the whole request.
      if (seen.has(id)) refuseDuplicate(id, index);
      seen.add(id);
    }
  }
  checkAnswered(open, "messages");
}

function checkResult(id: string, ids: readonly string[], open: Set<string>, index: number): void {
  const rule = "tool_result_without_call";
  if (ids.length === 0) {
    const message =
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
    refuse({ rule, message, param: `messages.[${index}].role` });
  }
  if (open.delete(id)) return;
  if (ids.includes(id)) refuseDuplicate(id, index);
  const message = `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`;
  refuse({ rule, message, param: `messages.[${index}].tool_call_id` });
}

function refuseDuplicate(id: string, index: number): never {
  const message = `Duplicate value for 'tool_call_id' of '${id}' in message[${index}].`;
  refuse({ rule: "duplicate_call_id", message, param: `messages.[${index}]` });
}

function checkAnswered(open: ReadonlySet<string>, param: string): void {
  if (open.size === 0) return;
  const message = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(", ")}`;
  refuse({ rule: "tool_call_without_result", message, param });
}

function imagesOf(messages: readonly Fields[]): RequestImage[] {
  return messages.flatMap(({ content }, index) =>
    listOf(content).flatMap((part, at) => {
      const { image_url: image } = fieldsOf(part);
      if (!isFields(image)) return [];
      return [{ url: String(image.url), param: `messages[${index}].content[${at}].image_url` }];
    }),
  );
}

/** "This model's maximum context length is … tokens. However, your messages resulted in … tokens." */
function checkSize({ messages, tools }: Fields, { contextWindow }: TwinLimits): void {
  const inMessages = countPromptTokens([messages], undefined);
  const inTools = countPromptTokens([], tools);
  const tokens = inMessages + inTools;
  if (tokens <= contextWindow) return;
  const parts = inTools === 0 ? "" : ` (${inMessages} in the messages, ${inTools} in the functions)`;
  const what = inTools === 0 ? "messages" : "messages or functions";
  const message = `This model's maximum context length is ${contextWindow} tokens. However, your messages resulted in ${tokens} tokens${parts}. Please reduce the length of the ${what}.`;
  refuse({ rule: "context_length", message, param: "messages", code: "context_length_exceeded" });
}
