import type { Refusal, TwinLimits, TwinRequest } from "../contract.ts";
import { sizeOf } from "../count.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import { checkContent } from "./check-content.ts";
import { checkFields } from "./check-fields.ts";
import { checkImages } from "./check-images.ts";
import { checkBreakpoints, checkLength, checkSize, promptTokens } from "./check-limits.ts";
import { checkThinking } from "./check-thinking.ts";
import { checkThinkingMode } from "./check-thinking-mode.ts";
import { checkToolNames } from "./check-tool-names.ts";
import { checkToolPairing } from "./check-tools.ts";
import { checkTurns } from "./check-turns.ts";
import { imagesOf } from "./images.ts";
import { refuse } from "./refusal.ts";
import type { MessagesRequest } from "./turns.ts";
import { parseTurns } from "./turns.ts";

/** Whether Anthropic would take the request. The order is the server's: form, then sense, then size. */
export function checkMessages(request: TwinRequest, limits: TwinLimits): Refusal | null {
  const body = fieldsOf(request.body);
  if (body === null) return refuse("body_form", "The request body is not valid JSON: expected an object");
  const refusal = checkFields(request, body);
  if (refusal !== null) return refusal;
  const read = readMessages(body);
  if ("rule" in read) return read;
  const images = imagesOf(read.turns);
  const size = sizeOf(body);
  return (
    checkSize(request, size) ??
    checkContent(read) ??
    checkTurns(read) ??
    checkToolNames(read) ??
    checkToolPairing(read) ??
    checkThinkingMode(read, request) ??
    checkThinking(read) ??
    checkImages(images, limits) ??
    checkBreakpoints(read) ??
    checkLength(promptTokens(size, images), limits)
  );
}

/** The tokens of a request that was taken. */
export function countMessages(body: Fields): number {
  const read = readMessages(body);
  return promptTokens(sizeOf(body), "rule" in read ? [] : imagesOf(read.turns));
}

function readMessages(body: Fields): MessagesRequest | Refusal {
  const turns = parseTurns(listOf(body.messages) ?? []);
  return "rule" in turns ? turns : { body, model: String(body.model), turns };
}
