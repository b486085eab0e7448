import type { Refusal, TwinLimits, TwinRequest } from "../contract.ts";
import { checkEffort } from "../openai-shared-efforts.ts";
import { emptyList, missing, refuse, unknownField, wrongType } from "../openai-shared-errors.ts";
import { checkImages } from "../openai-shared-images.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, tokensOf, toolTokens } from "../openai-shared-values.ts";
import { imagesOf } from "./check-content.ts";
import { checkMessages } from "./check-messages.ts";
import { checkPairing } from "./check-pairing.ts";
import { checkTools } from "./check-tools.ts";

/** The parameters of `POST /v1/chat/completions` (API reference, Chat, "Create chat completion"). */
const known = new Set(
  `model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
  metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
  prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop
  store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
  web_search_options`.split(/\s+/),
);
const knownStreamOptions = new Set(["include_usage", "include_obfuscation"]);

export function checkChat(request: TwinRequest, limits: TwinLimits): Refusal | null {
  const { body } = request;
  if (!isFields(body)) {
    const message =
      "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload.)";
    return refuse({ rule: "not_json", message });
  }
  const wrong = checkParameters(body) ?? checkMessages(body.messages as readonly unknown[], body.model);
  if (wrong !== null) return wrong;
  const messages = body.messages as readonly Fields[];
  return (
    checkTools(body) ??
    checkPairing(messages) ??
    checkImages(imagesOf(messages)) ??
    checkLast(messages) ??
    checkSize(body, limits)
  );
}

function checkParameters(body: Fields): Refusal | null {
  if (typeof body.model !== "string" || body.model === "")
    return refuse({ rule: "missing_model", message: "you must provide a model parameter" });
  const { messages } = body;
  if (messages === undefined) return missing("messages", "missing_messages");
  const unknown = unknownField("", body, known);
  if (unknown !== null) return unknown;
  if (!Array.isArray(messages)) return wrongType("messages", "an array of objects", messages);
  if (messages.length === 0) return emptyList("messages", "missing_messages");
  return checkEffort(body.model, body.reasoning_effort, "reasoning_effort") ?? checkStreamOptions(body);
}

/** "Options for streaming response. Only set this when you set `stream: true`." (API reference) */
function checkStreamOptions({ stream, stream_options: options }: Fields): Refusal | null {
  if (options === undefined || options === null) return null;
  if (!isFields(options)) return wrongType("stream_options", "an object", options);
  if (stream !== true) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    return refuse({ rule: "stream_options_without_stream", message, param: "stream_options" });
  }
  return unknownField("stream_options", options, knownStreamOptions);
}

/** Stricter than the server, which goes on from an answer: a request of ours never ends in one. */
function checkLast(messages: readonly Fields[]): Refusal | null {
  if (messages.at(-1)?.role !== "assistant") return null;
  const message = "Invalid 'messages': the last message must not have the role 'assistant'.";
  return refuse({ rule: "last_message_assistant", message, param: "messages", code: "invalid_value" });
}

/** "This model's maximum context length is … tokens. However, your messages resulted in … tokens." */
function checkSize({ messages, tools }: Fields, { contextWindow }: TwinLimits): Refusal | null {
  const inMessages = tokensOf(messages);
  const inTools = toolTokens(tools);
  const tokens = inMessages + inTools;
  if (tokens <= contextWindow) return null;
  const parts = inTools === 0 ? "" : ` (${inMessages} in the messages, ${inTools} in the functions)`;
  const what = inTools === 0 ? "messages" : "messages or functions";
  const message = `This model's maximum context length is ${contextWindow} tokens. However, your messages resulted in ${tokens} tokens${parts}. Please reduce the length of the ${what}.`;
  return refuse({ rule: "context_length", message, param: "messages", code: "context_length_exceeded" });
}
