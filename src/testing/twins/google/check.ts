import type { Refusal, TwinLimits, TwinRequest } from "../contract.ts";
import type { RequestSize } from "../count.ts";
import { sizeOf, tokensOf } from "../count.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import { checkFields } from "./check-fields.ts";
import { checkFunctionPairing } from "./check-functions.ts";
import { checkInlineData } from "./check-inline-data.ts";
import { checkNames } from "./check-names.ts";
import { checkSignatures } from "./check-signatures.ts";
import { checkTurns } from "./check-turns.ts";
import { parseContents } from "./contents.ts";
import type { PlacedData } from "./inline-data.ts";
import { inlineDataOf } from "./inline-data.ts";
import { calledBy } from "./models.ts";
import { refuse } from "./refusal.ts";

/** "Files" › Inline data: a request has at most 20 MB. */
const mostBytes = 20 * 1024 * 1024;
/** "Tokens" › Images: 258 for one that is small in both directions. */
const tokensOfImage = 258;

/** Whether Google would take the request. The order is the server's: form, then sense, then size. */
export function checkGenerate(request: TwinRequest, limits: TwinLimits): Refusal | null {
  const body = fieldsOf(request.body);
  if (body === null) return refuse("body_form", "Invalid JSON payload received. Expected an object.");
  const size = sizeOf(body);
  const refusal = checkFields(request, body) ?? checkSize(request, size);
  if (refusal !== null) return refusal;
  const contents = parseContents(listOf(body.contents) ?? []);
  if ("rule" in contents) return contents;
  const read = { body, model: calledBy(request.path)?.model ?? "", contents };
  const data = inlineDataOf(contents);
  return (
    checkNames(read) ??
    checkTurns(read) ??
    checkFunctionPairing(read) ??
    checkSignatures(read) ??
    checkInlineData(data) ??
    checkLength(promptTokens(size, data), limits)
  );
}

/** The tokens of a request that was taken. */
export function countContents(body: Fields): number {
  const contents = parseContents(listOf(body.contents) ?? []);
  return promptTokens(sizeOf(body), "rule" in contents ? [] : inlineDataOf(contents));
}

/** Published refusal: "Request payload size exceeds the limit: … bytes." */
function checkSize({ headers }: TwinRequest, { bytes, isWellFormed }: RequestSize): Refusal | null {
  if (Number(headers["content-length"] ?? bytes) > mostBytes) {
    return refuse("request_too_large", `Request payload size exceeds the limit: ${mostBytes} bytes.`);
  }
  // Texts of protocol buffers are UTF-8, which half a surrogate pair has no place in.
  return isWellFormed
    ? null
    : refuse("ill_formed_text", "Invalid JSON payload received. Unpaired surrogate.");
}

/** Published refusal: "The input token count (…) exceeds the maximum number of tokens allowed (…)." */
function checkLength(tokens: number, { contextWindow }: TwinLimits): Refusal | null {
  if (tokens <= contextWindow) return null;
  const message = `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${contextWindow}).`;
  return refuse("prompt_too_long", message);
}

function promptTokens({ text }: RequestSize, data: readonly PlacedData[]): number {
  let bytes = 0;
  for (const { blob } of data) if (typeof blob.data === "string") bytes += blob.data.length;
  return tokensOf(text - bytes) + data.length * tokensOfImage;
}
