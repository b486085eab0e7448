import type { ScriptedReply, ScriptedUsage, TwinRequest } from "./contract.ts";
import { countContents, mustSign, parsePath } from "./google-contents.ts";
import type { Fields } from "./shared.ts";
import { countUsage, fieldsOf, splitInShortPieces, sseEvent, stopReasonOf } from "./shared.ts";
import { signatures } from "./signatures.ts";

/** Returns the stream. Each chunk is a response with one of the parts. */
function encodeChunks(reply: ScriptedReply, request: TwinRequest, newId: () => string): readonly object[] {
  const { model, parts, usage, responseId } = encodeReply(reply, request, newId);
  const pieces = parts.flatMap((part) =>
    typeof part.text === "string" && part.text !== ""
      ? splitInShortPieces(part.text).map((text) => ({ ...part, text, thoughtSignature: undefined }))
      : [part],
  );
  // "Thought signatures" › Streaming: the signature for a text comes in a separate part with empty text.
  const signed = parts.find((part) => part.text !== undefined && part.thoughtSignature !== undefined);
  if (signed !== undefined) pieces.push({ text: "", thoughtSignature: signed.thoughtSignature });
  const last = pieces.pop() ?? { text: "" };
  const chunk = (part: Fields, end: object) => ({
    candidates: [{ content: { parts: [part], role: "model" }, ...end, index: 0 }],
    usageMetadata: encodeUsage(usage),
    modelVersion: model,
    responseId,
  });
  return [...pieces.map((part) => chunk(part, {})), chunk(last, { finishReason: finishReasonOf(reply) })];
}

export function googleEvents(
  reply: ScriptedReply,
  request: TwinRequest,
  newId: () => string,
): readonly string[] {
  return encodeChunks(reply, request, newId).map((chunk) => sseEvent(chunk, { end: "\r\n" }));
}

/** "GenerateContent" › Response body. A stream without `alt=sse` is a list of chunks. */
export function googleAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  if (parsePath(request.path)?.method === "streamGenerateContent") return encodeChunks(reply, request, newId);
  const { model, parts, usage, responseId } = encodeReply(reply, request, newId);
  return {
    candidates: [{ content: { parts, role: "model" }, finishReason: finishReasonOf(reply), index: 0 }],
    usageMetadata: encodeUsage(usage),
    modelVersion: model,
    responseId,
  };
}

interface EncodedReply {
  readonly model: string;
  readonly parts: readonly Fields[];
  readonly usage: Required<ScriptedUsage>;
  readonly responseId: string;
}

function encodeReply(reply: ScriptedReply, request: TwinRequest, newId: () => string): EncodedReply {
  const model = parsePath(request.path)?.model ?? "";
  const usage = countUsage(reply, countContents(fieldsOf(request.body)));
  return { model, parts: encodeParts(reply, model, newId), usage, responseId: newId() };
}

/**
 * "Thought signatures" › How it works: thoughts are unsigned summaries. The first function call is signed or, if there
 * is no call, the last text. Gemini 3 and later always sign. Earlier models sign only after thinking.
 */
function encodeParts(reply: ScriptedReply, model: string, newId: () => string): readonly Fields[] {
  const thoughts = reply.content.filter((block) => block.type === "thinking").map((block) => block.thinking);
  const isSigned = mustSign(model) || thoughts.length > 0;
  const firstCall = reply.content.findIndex((block) => block.type === "toolCall");
  const bearer = firstCall === -1 ? reply.content.findLastIndex((block) => block.type === "text") : firstCall;
  const thoughtSignature = signatures.sign("google-generative-ai", model, thoughts.join("\n"));
  return reply.content.flatMap((block, index): Fields[] => {
    const signed = isSigned && index === bearer ? { thoughtSignature } : {};
    if (block.type === "text") return [{ text: block.text, ...signed }];
    if (block.type === "thinking")
      return block.redacted === true ? [] : [{ text: block.thinking, thought: true }];
    const { name, arguments: args, id = newId().slice(0, 8).toLowerCase() } = block;
    return [{ functionCall: { name, args, id }, ...signed }];
  });
}

function finishReasonOf(reply: ScriptedReply): string {
  return stopReasonOf(reply) === "length" ? "MAX_TOKENS" : "STOP";
}

/**
 * "GenerateContent" › UsageMetadata: the prompt count includes cached tokens, but the candidates count does not include
 * thoughts.
 */
function encodeUsage({ input, output, cacheRead, reasoning }: Required<ScriptedUsage>): Fields {
  const promptTokenCount = input + cacheRead;
  return {
    promptTokenCount,
    candidatesTokenCount: output - reasoning,
    totalTokenCount: promptTokenCount + output,
    ...(cacheRead === 0 ? {} : { cachedContentTokenCount: cacheRead }),
    promptTokensDetails: [{ modality: "TEXT", tokenCount: promptTokenCount }],
    ...(reasoning === 0 ? {} : { thoughtsTokenCount: reasoning }),
  };
}
