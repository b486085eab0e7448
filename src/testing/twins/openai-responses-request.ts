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
  refuseEmptyText,
  refuseMissing,
  refuseType,
} from "./openai.ts";
import { checkPairing, checkReasoning } from "./openai-responses-pairing.ts";
import type { Fields } from "./shared.ts";
import { countPromptTokens, fieldsOf, isBlank, isFields, listOf, nameSet } from "./shared.ts";

/**
 * The parameters for `POST /v1/responses` (API reference, Responses, "Create a model response"), and `client_metadata`,
 * which is not in the reference but which Codex sends and the server accepts.
 */
const parameters = nameSet(
  `background client_metadata context_management conversation include input instructions max_output_tokens max_tool_calls
  metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
  prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text
  tool_choice tools top_logprobs top_p truncation user`,
);
const minOutputTokens = 16;

interface ItemKind {
  /** If absent, any field is accepted. */
  readonly fields?: ReadonlySet<string>;
  /** "Invalid 'input[3].id': 'call_1'. Expected an ID that begins with 'fc'." */
  readonly idPrefix?: string;
  readonly check?: (item: Fields, at: string) => void;
}

/** Each item type (API reference, Responses, "Input item list"). */
const itemKinds: Readonly<Record<string, ItemKind>> = {
  message: { idPrefix: "msg", check: checkMessage },
  reasoning: {
    idPrefix: "rs",
    fields: nameSet("type id summary content encrypted_content status"),
    check: checkReasoningItem,
  },
  function_call: {
    idPrefix: "fc",
    fields: nameSet("type id call_id name arguments status async namespace caller"),
    check: (item, at) => checkCall(item, at, "arguments", callArguments),
  },
  function_call_output: {
    idPrefix: "fc",
    fields: nameSet("type id call_id output status caller"),
    check: checkCallOutput,
  },
  custom_tool_call: {
    idPrefix: "ctc",
    fields: nameSet("type id call_id name input status async namespace caller"),
    check: (item, at) => checkCall(item, at, "input", { rule: "bad_arguments" }),
  },
  custom_tool_call_output: {
    idPrefix: "ctc",
    fields: nameSet("type id call_id output status caller"),
    check: checkCallOutput,
  },
  item_reference: { fields: nameSet("type id") },
  // Items for tools that the server runs itself, and for its own bookkeeping.
  ...Object.fromEntries(
    [
      ...nameSet(
        `file_search_call computer_call computer_call_output web_search_call code_interpreter_call
        image_generation_call local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call
        apply_patch_call_output mcp_list_tools mcp_approval_request mcp_approval_response mcp_call tool_search_call
        tool_search_output additional_tools program program_output compaction compaction_trigger
        configuration_update`,
      ),
    ].map((type) => [type, {}]),
  ),
};
const itemTypes = Object.keys(itemKinds);
/** "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64" */
const callId: TextRule = { rule: "bad_call_id", isNonEmpty: true, maxLength: 64 };

const roles = ["assistant", "system", "developer", "user"];
const messageFields = nameSet("type role content id status");
const assistantFields = new Set([...messageFields, "phase"]);
/** Input and output have different part types (API reference, "Input message", "Output message"). */
const inputParts = ["input_text", "input_image", "input_file"];
const outputParts = ["output_text", "refusal"];
const partFields = nameSet(
  `type text refusal annotations logprobs image_url file_id file_data file_url filename detail
  prompt_cache_breakpoint`,
);

/** Checks whether the Responses API would accept the request. */
export function checkResponses({ body }: TwinRequest, limits: TwinLimits): void {
  if (!isFields(body))
    refuse({ rule: "not_json", message: "We could not parse the JSON body of your request." });
  checkParameters(body);
  checkInput(body);
  checkTools(body.tools);
  checkSize(body, limits);
}

function checkParameters(body: Fields): void {
  const { model, max_output_tokens: most, conversation } = body;
  if (typeof model !== "string" || model === "") refuseMissing("model", "missing_model");
  checkKnownFields("", body, parameters);
  if (typeof most === "number" && most < minOutputTokens) {
    const message = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${minOutputTokens}, but got ${most} instead.`;
    const param = "max_output_tokens";
    refuse({ rule: param, message, param, code: "integer_below_min_value" });
  }
  checkEffort(model, fieldsOf(body.reasoning).effort, "reasoning.effort");
  // The twin stores nothing, so a request cannot refer to an earlier response or conversation.
  const param = "previous_response_id";
  if ((body[param] ?? null) !== null) {
    const message = `Previous response with id '${nameOf(body[param])}' not found.`;
    refuse({ rule: "unknown_response", message, param, code: "previous_response_not_found" });
  }
  if ((conversation ?? null) === null) return;
  const message = `Conversation with id '${nameOf(conversation)}' not found.`;
  refuse({ rule: "unknown_conversation", message, status: 404 });
}

function nameOf(value: unknown): string {
  const id = isFields(value) ? value.id : value;
  return typeof id === "string" ? id : "";
}

function checkInput(body: Fields): void {
  const { input, model, store } = body;
  const rule = "empty_input";
  if (input === undefined) refuseMissing("input", rule);
  if (input === "" || (Array.isArray(input) && input.length === 0)) {
    const message = `One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided.`;
    refuse({ rule, message, code: "missing_required_parameter" });
  }
  if (typeof input === "string") {
    if (isBlank(input)) refuseEmptyText("input", rule);
    return;
  }
  checkList("input", input, { rule, expected: "a string" });
  checkItems(input);
  const items = input as readonly Fields[];
  checkReasoning(items, { model: String(model), isStored: store !== false });
  checkPairing(items);
  checkImages(imagesOf(items));
  if (items.at(-1)?.role !== "assistant") return;
  // Stricter than the server, which would continue an answer. Skein's requests never end with one.
  const message = "Invalid 'input': the last item must not be a message with the role 'assistant'.";
  refuse({ rule: "last_item_assistant", message, param: "input", code: "invalid_value" });
}

/** Checks each item on its own, and checks that IDs are unique. */
function checkItems(items: readonly unknown[]): void {
  const ids = new Set<unknown>();
  for (const [index, item] of items.entries()) {
    const at = `input[${index}]`;
    checkObject(at, item, "bad_item");
    checkItem(item, at);
    if (item.id === undefined || item.id === null) continue;
    if (ids.has(item.id)) {
      const message = `Duplicate item found with id ${item.id}. Remove duplicate items from your input and try again.`;
      refuse({ rule: "duplicate_item", message, param: "input" });
    }
    ids.add(item.id);
  }
}

function checkItem(item: Fields, at: string): void {
  const type = item.type ?? (item.role === undefined ? undefined : "message");
  if (type === undefined) refuseMissing(`${at}.type`, "bad_item");
  checkOneOf(`${at}.type`, type, itemTypes, "bad_item");
  const { fields, idPrefix, check } = itemKinds[type] ?? {};
  checkItemId(item.id, idPrefix, `${at}.id`);
  if (fields !== undefined) checkKnownFields(at, item, fields);
  check?.(item, at);
}

function checkItemId(id: unknown, prefix: string | undefined, param: string): void {
  if (id === undefined || id === null) return;
  const rule = "bad_item_id";
  if (typeof id !== "string") refuseType(param, "a string", id, rule);
  if (prefix === undefined || id.startsWith(prefix)) return;
  const message = `Invalid '${param}': '${id}'. Expected an ID that begins with '${prefix}'.`;
  refuse({ rule, message, param, code: "invalid_value" });
}

function checkCall(item: Fields, at: string, input: string, expected: TextRule): void {
  checkText(`${at}.call_id`, item.call_id, callId);
  checkText(`${at}.name`, item.name, functionName);
  checkText(`${at}.${input}`, item[input], expected);
}

/** A call's output is a string or input parts (API reference, "Function tool call output"). It can be blank. */
function checkCallOutput({ call_id: id, output }: Fields, at: string): void {
  checkText(`${at}.call_id`, id, callId);
  if (output === undefined) refuseMissing(`${at}.output`, "bad_output");
  checkParts(output, `${at}.output`, inputParts, true);
}

function checkMessage(item: Fields, at: string): void {
  const { role, content } = item;
  if (role === undefined) refuseMissing(`${at}.role`, "bad_role");
  checkOneOf(`${at}.role`, role, roles, "bad_role");
  const isAssistant = role === "assistant";
  checkKnownFields(at, item, isAssistant ? assistantFields : messageFields);
  if (content === undefined) refuseMissing(`${at}.content`, "empty_content");
  const canBeBlank = role === "system" || role === "developer";
  checkParts(content, `${at}.content`, isAssistant ? outputParts : inputParts, canBeBlank);
}

function checkParts(content: unknown, param: string, allowed: readonly string[], canBeBlank: boolean): void {
  if (typeof content === "string") {
    checkContentText(content, param, canBeBlank);
    return;
  }
  const expected = "one of an array of objects or string";
  checkList(param, content, { rule: "bad_content", emptyRule: "empty_content", expected });
  for (const [index, part] of content.entries()) checkPart(part, `${param}[${index}]`, allowed, canBeBlank);
}

function checkPart(part: unknown, param: string, allowed: readonly string[], canBeBlank: boolean): void {
  const rule = "bad_part";
  checkObject(param, part, rule);
  const { type, image_url: url, file_id: file } = part;
  if (type === undefined) refuseMissing(`${param}.type`, rule);
  // "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
  checkOneOf(param, type, allowed, rule);
  checkKnownFields(param, part, partFields);
  if (type === "input_file") return;
  if (type === "input_image") {
    // "Provide either `image_url` or `file_id`." (Images and vision guide)
    if (typeof url !== "string" && typeof file !== "string")
      checkText(`${param}.image_url`, url ?? undefined, { rule });
    return;
  }
  const name = type === "refusal" ? "refusal" : "text";
  checkContentText(part[name], `${param}.${name}`, canBeBlank, rule);
}

/** `summary` is a list of summary texts (API reference, "Reasoning", required). */
function checkReasoningItem({ id, summary, encrypted_content: encrypted }: Fields, at: string): void {
  const rule = "bad_reasoning";
  if (summary === undefined) refuseMissing(`${at}.summary`, rule);
  checkList(`${at}.summary`, summary, { rule });
  for (const [index, part] of summary.entries()) {
    const param = `${at}.summary[${index}]`;
    checkObject(param, part, rule);
    checkOneOf(param, part.type, ["summary_text"], rule);
    if (typeof part.text !== "string") refuseType(`${param}.text`, "a string", part.text, rule);
  }
  if ((encrypted ?? null) === null && (id ?? null) === null) refuseMissing(`${at}.id`, rule);
  if ((encrypted ?? null) === null || typeof encrypted === "string") return;
  refuseType(`${at}.encrypted_content`, "a string", encrypted, rule);
}

function imagesOf(items: readonly Fields[]): RequestImage[] {
  return items.flatMap((item, index) =>
    ["content", "output"].flatMap((name) =>
      listOf(item[name]).flatMap((part, at) => {
        const { type, image_url: url } = fieldsOf(part);
        if (type !== "input_image" || typeof url !== "string") return [];
        return [{ url, param: `input[${index}].${name}[${at}].image_url` }];
      }),
    ),
  );
}

function checkTools(tools: unknown): void {
  if (tools === undefined || tools === null) return;
  const rule = "bad_tools";
  checkList("tools", tools, { rule });
  for (const [index, tool] of tools.entries()) {
    const at = `tools[${index}]`;
    checkObject(at, tool, rule);
    if (tool.type === undefined) refuseMissing(`${at}.type`, rule);
    if (tool.type === "function" || tool.type === "custom") checkText(`${at}.name`, tool.name, functionName);
  }
}

/** "`disabled` (default): if the input size will exceed the context window size for a model, the request will fail with a 400 error." (API reference, truncation) */
function checkSize(body: Fields, { contextWindow }: TwinLimits): void {
  const { input, instructions, tools, truncation } = body;
  if (truncation === "auto" || countPromptTokens([input, instructions], tools) <= contextWindow) return;
  const message =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";
  refuse({ rule: "context_length", message, param: "input", code: "context_length_exceeded" });
}
