import type { Refusal, TwinLimits, TwinRequest } from "../contract.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, tokensOf, toolTokens } from "../openai-shared-values.ts";
import { checkName } from "./check-calls.ts";
import { checkImages } from "./check-images.ts";
import { checkSaid, checkSchemas } from "./check-messages.ts";
import { checkOrder } from "./check-order.ts";
import { checkPairing } from "./check-pairing.ts";
import { extraField, misfit, missing, refuse, wrongType } from "./errors.ts";

/** The parameters of `POST /v1/chat/completions` (API reference, ChatCompletionRequest). */
const known = new Set(
  `model messages temperature top_p max_tokens stream stop random_seed response_format tools tool_choice
  presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort safe_prompt metadata
  guardrails document_image_limit document_page_limit prompt_cache_key`.split(/\s+/),
);

export function checkMistral(request: TwinRequest, limits: TwinLimits): Refusal | null {
  const { body } = request;
  if (!isFields(body)) {
    const msg = "Input should be a valid dictionary or object to extract fields from";
    return misfit("not_json", "model_attributes_type", [], msg, body);
  }
  const wrong = checkParameters(body) ?? checkSchemas(body.messages as readonly unknown[]);
  if (wrong !== null) return wrong;
  const messages = body.messages as readonly Fields[];
  return (
    checkOrder(messages) ??
    checkPairing(messages) ??
    checkSaid(messages) ??
    checkTools(body.tools) ??
    checkImages(messages) ??
    checkSize(body, limits)
  );
}

function checkParameters(body: Fields): Refusal | null {
  const { model, messages } = body;
  if (model === undefined) return missing(["model"], body, "missing_model");
  if (typeof model !== "string") return wrongType(["model"], "string", model, "missing_model");
  if (messages === undefined) return missing(["messages"], body, "missing_messages");
  if (!Array.isArray(messages)) return wrongType(["messages"], "list", messages, "missing_messages");
  return extraField([], body, known);
}

function checkTools(tools: unknown): Refusal | null {
  if (tools === undefined || tools === null) return null;
  if (!Array.isArray(tools)) return wrongType(["tools"], "list", tools, "bad_tools");
  for (const [index, tool] of tools.entries()) {
    const loc = ["tools", index];
    if (!isFields(tool)) return wrongType(loc, "dictionary", tool, "bad_tools");
    if (tool.type !== undefined && tool.type !== "function") continue;
    if (!isFields(tool.function)) return missing([...loc, "function"], tool, "bad_tools");
    const wrong = checkName(tool.function.name, [...loc, "function", "name"], tool.function);
    if (wrong !== null) return wrong;
  }
  return null;
}

/** "The token count of your prompt plus `max_tokens` cannot exceed the model's context length." (API reference) */
function checkSize(body: Fields, { contextWindow }: TwinLimits): Refusal | null {
  const tokens = tokensOf(body.messages) + toolTokens(body.tools);
  const most = typeof body.max_tokens === "number" ? body.max_tokens : 0;
  if (tokens + most <= contextWindow) return null;
  const extra = tokens > contextWindow ? "" : ` with max_tokens ${most}`;
  const message = `Prompt contains ${tokens} tokens and 0 draft tokens${extra}, too large for model with ${contextWindow} maximum context length`;
  return refuse("context_length", "arguments", message);
}
