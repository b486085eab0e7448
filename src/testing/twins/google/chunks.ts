import type { ScriptedReply, ScriptedUsage, TwinRequest } from "../contract.ts";
import { stopReasonOf, usageOf } from "../count.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf } from "../fields.ts";
import { signatures } from "../signatures.ts";
import { inPieces, sseEvent } from "../sse.ts";
import { countContents } from "./check.ts";
import { calledBy, mustSign } from "./models.ts";

/** The answer as the server streams it: each chunk is a response with some of the parts. */
export function chunksOf(reply: ScriptedReply, request: TwinRequest, newId: () => string): readonly object[] {
  const { model, parts, usage, responseId } = readScript(reply, request, newId);
  const pieces = parts.flatMap((part) =>
    typeof part.text === "string" && part.text !== ""
      ? inPieces(part.text).map((text) => ({ ...part, text, thoughtSignature: undefined }))
      : [part],
  );
  // "Thought signatures" › Streaming: the signature of a text comes in a part of its own, with an empty text.
  const signed = parts.find((part) => part.text !== undefined && part.thoughtSignature !== undefined);
  if (signed !== undefined) pieces.push({ text: "", thoughtSignature: signed.thoughtSignature });
  const last = pieces.pop() ?? { text: "" };
  const chunk = (part: Fields, end: object) => ({
    candidates: [{ content: { parts: [part], role: "model" }, ...end, index: 0 }],
    usageMetadata: usageFields(usage),
    modelVersion: model,
    responseId,
  });
  return [...pieces.map((part) => chunk(part, {})), chunk(last, { finishReason: finishReason(reply) })];
}

export function eventsOf(reply: ScriptedReply, request: TwinRequest, newId: () => string): readonly string[] {
  return chunksOf(reply, request, newId).map((chunk) => sseEvent(chunk, { end: "\r\n" }));
}

/** "GenerateContent" › Response body. A stream that was not asked for as events is a list of chunks. */
export function answerOf(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  if (calledBy(request.path)?.method === "streamGenerateContent") return chunksOf(reply, request, newId);
  const { model, parts, usage, responseId } = readScript(reply, request, newId);
  return {
    candidates: [{ content: { parts, role: "model" }, finishReason: finishReason(reply), index: 0 }],
    usageMetadata: usageFields(usage),
    modelVersion: model,
    responseId,
  };
}

interface Script {
  readonly model: string;
  readonly parts: readonly Fields[];
  readonly usage: ScriptedUsage;
  readonly responseId: string;
}

function readScript(reply: ScriptedReply, request: TwinRequest, newId: () => string): Script {
  const model = calledBy(request.path)?.model ?? "";
  const usage = usageOf(reply, countContents(fieldsOf(request.body) ?? {}));
  return { model, parts: partsOf(reply, model, newId), usage, responseId: newId() };
}

/**
 * "Thought signatures" › How it works: thoughts are unsigned summaries. The signature is on the first function call, or
 * on the last text where there is none; always from Gemini 3 on, before that where there was thought.
 */
function partsOf(reply: ScriptedReply, model: string, newId: () => string): readonly Fields[] {
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

function finishReason(reply: ScriptedReply): string {
  return stopReasonOf(reply) === "length" ? "MAX_TOKENS" : "STOP";
}

/** "GenerateContent" › UsageMetadata: the prompt with what was cached, the candidates without the thoughts. */
function usageFields({ input, output, cacheRead = 0, reasoning = 0 }: ScriptedUsage): Fields {
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
