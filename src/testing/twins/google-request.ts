import type { TwinLimits, TwinRequest } from "./contract.ts";
import type { Content, Part } from "./google-contents.ts";
import {
  countContents,
  inlineDataOf,
  mustSign,
  parseContents,
  parseParts,
  parsePath,
  refuse,
  refuseForm,
  refuseValue,
} from "./google-contents.ts";
import { decodeProtoBytes, readImageHead } from "./images.ts";
import type { Fields } from "./shared.ts";
import { fieldsOf, isFields, listOf, measureRequest } from "./shared.ts";
import { signatures } from "./signatures.ts";

/** "Function calling" › Function declarations. */
const functionName = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/;
/** "Image understanding" › Supported image formats: GIF is not one of them. */
const imageTypes = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
/** "Document", "Audio" and "Video understanding": other accepted types. */
const otherTypes = /^(?:application\/(?:pdf|json|rtf|xml)$|audio\/|video\/|text\/)/;
/** "Thought signatures" › FAQs: accepted in place of an unknown signature. */
const signatureSubstitutes = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];
/** "Files" › Inline data: the maximum size of a request is 20 MB. */
const maxRequestBytes = 20 * 1024 * 1024;

/**
 * Checks whether Google would accept the request: first its key, its parameters and its size in bytes, then the form of
 * its contents and declarations, then the rules for turns, signatures and inline data, and finally its size in tokens.
 */
export function checkGenerate(request: TwinRequest, { contextWindow }: TwinLimits): void {
  const { body } = request;
  if (!isFields(body)) refuse("body_form", "Invalid JSON payload received. Expected an object.");
  checkParameters(request, body);
  checkRequestSize(request, body);
  const contents = parseContents(body.contents);
  for (const part of contents.flatMap(({ parts }) => parts)) checkFunctionForm(part);
  checkDeclarations(body.tools);
  checkOrder(contents);
  for (const [index, content] of contents.entries())
    if (content.role === "user") checkResponses(content, contents[index - 1]);
  checkSignatures(contents, parsePath(request.path)?.model ?? "");
  for (const [place, blob] of inlineDataOf(contents)) checkInlineData(place, blob);
  // Published error.
  const tokens = countContents(body);
  if (tokens <= contextWindow) return;
  const message = `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${contextWindow}).`;
  refuse("prompt_too_long", message);
}

function checkParameters(
  { headers, path }: TwinRequest,
  { contents, systemInstruction: system }: Fields,
): void {
  // "API keys": in a header, or in the query string.
  if (!headers["x-goog-api-key"] && !/[?&]key=[^&]/.test(path)) {
    const found = "Method doesn't allow unregistered callers (callers without established identity).";
    const advice = "Please use API Key or other form of API consumer identity to call this API.";
    refuse("api_key", `${found} ${advice}`, 403);
  }
  if (contents !== undefined && !Array.isArray(contents)) refuseForm("contents_form", "contents");
  if (listOf(contents).length === 0) refuseValue("no_contents", "contents", "contents is not specified");
  if (system === undefined) return;
  // "GenerateContent" › `systemInstruction`: a content with text only.
  for (const { kind, place } of parseParts(fieldsOf(system).parts, "system_instruction"))
    if (kind !== "text") refuseValue("system_not_text", place, "only text is supported");
}

/** Published error: "Request payload size exceeds the limit: … bytes." */
function checkRequestSize({ headers }: TwinRequest, body: Fields): void {
  const { bytes, isWellFormed } = measureRequest(body);
  if (Number(headers["content-length"] ?? bytes) > maxRequestBytes)
    refuse("request_too_large", `Request payload size exceeds the limit: ${maxRequestBytes} bytes.`);
  // Strings in protocol buffers are UTF-8, which cannot encode half a surrogate pair.
  if (!isWellFormed) refuse("ill_formed_text", "Invalid JSON payload received. Unpaired surrogate.");
}

/** "GenerateContent" › FunctionCall, FunctionResponse: both contain an object, but a call's object can be absent. */
function checkFunctionForm({ kind, fields, place }: Part): void {
  if (kind !== "functionCall" && kind !== "functionResponse") return;
  const [wireName, field] = kind === "functionCall" ? ["call", "args"] : ["response", "response"];
  const at = `${place}.function_${wireName}`;
  const value = fields[kind];
  if (!isFields(value)) refuseForm("function_form", at);
  checkName(value.name, `${at}.name`);
  const given = value[field];
  if (isFields(given) || (given === undefined && field === "args")) return;
  const struct = "type.googleapis.com/google.protobuf.Struct";
  const message = `Invalid value at '${at}.${field}' (${struct}), ${(JSON.stringify(given) ?? "null").slice(0, 80)}`;
  refuseForm(`function_${field}`, `${at}.${field}`, message);
}

function checkDeclarations(tools: unknown): void {
  const names = new Set<unknown>();
  for (const [index, tool] of listOf(tools).entries()) {
    for (const [at, declaration] of listOf(fieldsOf(tool).functionDeclarations).entries()) {
      const { name } = fieldsOf(declaration);
      checkName(name, `tools[${index}].function_declarations[${at}].name`);
      if (names.has(name)) refuse("declaration_repeated", `Duplicate function declaration found: ${name}`);
      names.add(name);
    }
  }
}

function checkName(name: unknown, place: string): void {
  if (typeof name !== "string" || name === "") refuseValue("function_name", place, "Name cannot be empty.");
  if (functionName.test(name)) return;
  const problem =
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.";
  refuseValue("function_name", place, problem);
}

const callTurn =
  "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
const responseTurn =
  "Please ensure that function response turn comes immediately after a function call turn.";

/** Checks the order of the turns. The messages are published errors. */
function checkOrder(contents: readonly Content[]): void {
  const has = ({ parts }: Content, kind: string) => parts.some((part) => part.kind === kind);
  for (const content of contents) {
    if (content.role === "user" && has(content, "functionCall")) refuse("call_of_user", callTurn);
    if (content.role === "model" && has(content, "functionResponse"))
      refuse("response_of_model", responseTurn);
  }
  // Like the server, the twin accepts two consecutive user turns, but not two consecutive model turns or a model turn
  // at the start.
  const misplaced = contents.filter(
    ({ index, role }) => role === "model" && contents[index - 1]?.role !== "user",
  );
  if (misplaced.some((content) => has(content, "functionCall"))) refuse("call_turn_misplaced", callTurn);
  if (contents.length > 1 && misplaced.length > 0) {
    const message = "Please ensure that multiturn requests alternate between user and model.";
    refuse("turns_not_alternating", message);
  }
  if (contents.at(-1)?.role !== "model") return;
  const message =
    contents.length === 1
      ? "Please ensure that single turn requests end with a user role or the role field is empty."
      : "Please ensure that multiturn requests ends with a user role or a function response.";
  refuse("last_turn_model", message);
}

function functionsOf(content: Content | undefined, kind: string): readonly Fields[] {
  return (content?.parts ?? []).flatMap(({ fields }) =>
    fields[kind] === undefined ? [] : [fieldsOf(fields[kind])],
  );
}

/** "Function calling" › Parallel function calling: each call has one response, with its name and ID. */
function checkResponses(content: Content, before: Content | undefined): void {
  const responses = functionsOf(content, "functionResponse");
  const calls = functionsOf(before, "functionCall");
  if (responses.length > 0 && calls.length === 0) refuse("response_without_call", responseTurn);
  if (responses.length !== calls.length) {
    const message =
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    refuse("response_count", message);
  }
  const hasId = ({ id }: Fields) => typeof id === "string" && id !== "";
  if (calls.every(hasId) && responses.every(hasId)) {
    const names = new Map(calls.map(({ id, name }) => [id, name]));
    if (names.size !== calls.length) refuse("call_id_repeated", "functionCall.id must be unique in a turn.");
    for (const { id, name } of responses) {
      if (names.get(id) !== name)
        refuse("response_id", "functionResponse.id does not match functionCall.id.");
      names.delete(id);
    }
  }
  const open = calls.map(({ name }) => name);
  for (const { name } of responses) {
    const at = open.indexOf(name);
    if (at === -1) refuse("response_name", "functionResponse.name does not match functionCall.name.");
    open.splice(at, 1);
  }
}

function checkSignatures(contents: readonly Content[], model: string): void {
  for (const { fields, place } of contents.flatMap(({ parts }) => parts)) {
    const { thoughtSignature: signature } = fields;
    if (signature === undefined || signatureSubstitutes.some((each) => each === signature)) continue;
    const at = `${place}.thought_signature`;
    // Published errors.
    if (typeof signature !== "string" || decodeProtoBytes(signature) === null)
      refuseBytes("signature_base64", at, JSON.stringify(signature));
    if (!signatures.verify("google-generative-ai", model, "", signature))
      refuse("signature_corrupted", "Corrupted thought signature.");
  }
  if (!mustSign(model)) return;
  // "Thought signatures" › Function calling: in each step since the last user input, the first call must be signed.
  const isInput = ({ role, parts }: Content) =>
    role === "user" && !parts.some(({ kind }) => kind === "functionResponse");
  for (const { index, parts } of contents.slice(contents.findLastIndex(isInput) + 1)) {
    const call = parts.find(({ kind }) => kind === "functionCall");
    if (call === undefined || call.fields.thoughtSignature !== undefined) continue;
    const message = [
      "Function call is missing a thought_signature in functionCall parts.",
      "This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance.",
      `Additional data, function call \`default_api:${fieldsOf(call.fields.functionCall).name}\` , position ${index + 1}.`,
      "Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    ].join(" ");
    refuse("signature_missing", message);
  }
}

/** Published error. */
function refuseBytes(rule: string, field: string, shown: string): never {
  refuseForm(rule, field, `Invalid value at '${field}' (TYPE_BYTES), Base64 decoding failed for ${shown}`);
}

/** Published errors: "Unsupported MIME type", "Base64 decoding failed", "Unable to process input image." */
function checkInlineData(place: string, { mimeType, data }: Fields): void {
  if (typeof mimeType !== "string" || mimeType === "")
    refuseValue("mime_type", `${place}.mime_type`, "mime_type is not specified");
  const isImage = imageTypes.includes(mimeType);
  if (!isImage && !otherTypes.test(mimeType)) refuse("mime_type", `Unsupported MIME type: ${mimeType}`);
  const bytes = typeof data === "string" ? decodeProtoBytes(data) : null;
  const at = `${place}.data`;
  if (bytes === null) refuseBytes("data_base64", at, JSON.stringify(String(data).slice(0, 40)));
  if (bytes.length === 0) refuseValue("data_empty", at, "data must not be empty.");
  if (!isImage || readImageHead(bytes) !== null) return;
  const advice = "Please retry or report in https://developers.generativeai.google/guide/troubleshooting";
  refuse("image_unreadable", `Unable to process input image. ${advice}`);
}
