import type { Refusal, TwinLimits, TwinRequest } from "../contract.ts";
import { checkEffort } from "../openai-shared-efforts.ts";
import { checkName, emptyText, missing, refuse, unknownField, wrongType } from "../openai-shared-errors.ts";
import { checkImages } from "../openai-shared-images.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isBlank, isFields, listOf, tokensOf, toolTokens } from "../openai-shared-values.ts";
import { imagesOf } from "./check-content.ts";
import { checkItems } from "./check-items.ts";
import { checkPairing } from "./check-pairing.ts";
import { checkReasoning } from "./check-reasoning.ts";

/**
 * The parameters of `POST /v1/responses` (API reference, Responses, "Create a model response"); `client_metadata` is none of
 * the reference, but Codex sends it with every request and the server takes it.
 */
const known = new Set(
  `background client_metadata context_management conversation include input instructions max_output_tokens max_tool_calls metadata model
  moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
  prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text
  tool_choice tools top_logprobs top_p truncation user`.split(/\s+/),
);
const fewestOutputTokens = 16;

export function checkResponses(request: TwinRequest, limits: TwinLimits): Refusal | null {
  const { body } = request;
  if (!isFields(body)) {
    const message = "We could not parse the JSON body of your request.";
    return refuse({ rule: "not_json", message });
  }
  return checkParameters(body) ?? checkInput(body) ?? checkTools(body.tools) ?? checkSize(body, limits);
}

function checkParameters(body: Fields): Refusal | null {
  const { model, max_output_tokens: most, previous_response_id: previous, conversation } = body;
  if (typeof model !== "string" || model === "") return missing("model", "missing_model");
  const unknown = unknownField("", body, known);
  if (unknown !== null) return unknown;
  if (typeof most === "number" && most < fewestOutputTokens) {
    const message = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${fewestOutputTokens}, but got ${most} instead.`;
    const param = "max_output_tokens";
    return refuse({ rule: "max_output_tokens", message, param, code: "integer_below_min_value" });
  }
  const effort = isFields(body.reasoning) ? body.reasoning.effort : undefined;
  const wrong = checkEffort(model, effort, "reasoning.effort");
  if (wrong !== null) return wrong;
  return unstored("previous_response_id", previous) ?? unstored("conversation", conversation);
}

/** The twin stores nothing: no earlier response and no conversation can be named. */
function unstored(param: string, value: unknown): Refusal | null {
  if (value === undefined || value === null) return null;
  const named = isFields(value) ? value.id : value;
  const id = typeof named === "string" ? named : "";
  if (param === "conversation")
    return refuse({
      rule: "unknown_conversation",
      message: `Conversation with id '${id}' not found.`,
      status: 404,
    });
  const message = `Previous response with id '${id}' not found.`;
  return refuse({ rule: "unknown_response", message, param, code: "previous_response_not_found" });
}

function checkInput(body: Fields): Refusal | null {
  const { input } = body;
  if (input === undefined) return missing("input", "empty_input");
  if (input === "" || (Array.isArray(input) && input.length === 0)) {
    const message = `One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided.`;
    return refuse({ rule: "empty_input", message, code: "missing_required_parameter" });
  }
  if (typeof input === "string") return isBlank(input) ? emptyText("input", "empty_input") : null;
  if (!Array.isArray(input)) return wrongType("input", "a string", input, "empty_input");
  const wrong = checkItems(input);
  if (wrong !== null) return wrong;
  const items = input as readonly Fields[];
  return (
    checkReasoning(items, String(body.model), body.store !== false) ??
    checkPairing(items) ??
    checkImages(imagesOf(items)) ??
    checkLast(items)
  );
}

/** Stricter than the server, which goes on from an answer: a request of ours never ends in one. */
function checkLast(items: readonly Fields[]): Refusal | null {
  if (items.at(-1)?.role !== "assistant") return null;
  const message = "Invalid 'input': the last item must not be a message of the role 'assistant'.";
  return refuse({ rule: "last_item_assistant", message, param: "input", code: "invalid_value" });
}

function checkTools(tools: unknown): Refusal | null {
  if (tools === undefined || tools === null) return null;
  if (!Array.isArray(tools)) return wrongType("tools", "an array of objects", tools, "bad_tools");
  for (const [index, tool] of listOf(tools).entries()) {
    if (!isFields(tool)) return wrongType(`tools[${index}]`, "an object", tool, "bad_tools");
    if (tool.type === undefined) return missing(`tools[${index}].type`, "bad_tools");
    const isNamed = tool.type === "function" || tool.type === "custom";
    const wrong = isNamed ? checkName(`tools[${index}].name`, tool.name) : null;
    if (wrong !== null) return wrong;
  }
  return null;
}

/** "`disabled` (default): if the input size will exceed the context window size for a model, the request will fail with a 400 error." (API reference, truncation) */
function checkSize(body: Fields, { contextWindow }: TwinLimits): Refusal | null {
  const { input, instructions, tools, truncation } = body;
  if (truncation === "auto" || tokensOf(input, instructions) + toolTokens(tools) <= contextWindow)
    return null;
  const message =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";
  return refuse({ rule: "context_length", message, param: "input", code: "context_length_exceeded" });
}
