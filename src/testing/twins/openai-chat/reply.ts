import type { ScriptedReply, TwinRequest } from "../contract.ts";
import type { CountedUsage } from "../openai-shared-script.ts";
import {
  alphanumericId,
  callsOf,
  createdAt,
  finishReasonOf,
  piecesOf,
  usageOf,
} from "../openai-shared-script.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, tokensOf, toolTokens } from "../openai-shared-values.ts";

/**
 * What the server answers. Chat Completions never show what a model thought: thinking is only in the count of
 * `reasoning_tokens` (Reasoning guide, "How reasoning works").
 */

interface Call {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export function chatAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  const head = headOf(request, newId, "chat.completion");
  const calls = callsFor(reply, newId);
  const text = textOf(reply);
  const message = {
    role: "assistant",
    content: text === "" ? null : text,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    refusal: null,
    annotations: [],
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReasonOf(reply) };
  return { ...head, choices: [choice], usage: wireUsage(countOf(reply, request)), service_tier: "default" };
}

export function chatEvents(reply: ScriptedReply, request: TwinRequest, newId: () => string): string[] {
  const head = { ...headOf(request, newId, "chat.completion.chunk"), service_tier: "default" };
  const wantsUsage = includesUsage(request);
  const chunk = (choices: readonly unknown[], usage: unknown = null) =>
    `data: ${JSON.stringify({ ...head, choices, ...(wantsUsage ? { usage } : {}) })}\n\n`;
  const delta = (fields: Fields, finish: string | null = null) =>
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: finish }]);
  const text = piecesOf(textOf(reply));
  return [
    delta({ role: "assistant", content: text.length > 0 ? "" : null, refusal: null }),
    ...text.map((piece) => delta({ content: piece })),
    ...callsFor(reply, newId).flatMap((call, index) =>
      callDeltas(call, index).map((fields) => delta(fields)),
    ),
    delta({}, finishReasonOf(reply)),
    ...(wantsUsage ? [chunk([], wireUsage(countOf(reply, request)))] : []),
    "data: [DONE]\n\n",
  ];
}

/** First the name with no arguments, then the arguments in pieces. */
function callDeltas({ function: { name, arguments: text }, ...call }: Call, index: number): Fields[] {
  return [
    { tool_calls: [{ index, ...call, function: { name, arguments: "" } }] },
    ...piecesOf(text).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ];
}

function callsFor(reply: ScriptedReply, newId: () => string): Call[] {
  return callsOf(reply).map((call) => ({
    id: call.id ?? `call_${alphanumericId(newId, 24)}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }));
}

/** One message has one text. */
function textOf(reply: ScriptedReply): string {
  return reply.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function headOf({ body }: TwinRequest, newId: () => string, object: string): Fields {
  const model = isFields(body) ? body.model : "";
  return {
    id: `chatcmpl-${alphanumericId(newId, 29)}`,
    object,
    created: createdAt,
    model,
    system_fingerprint: null,
  };
}

function includesUsage({ body }: TwinRequest): boolean {
  return isFields(body) && isFields(body.stream_options) && body.stream_options.include_usage === true;
}

function countOf(reply: ScriptedReply, { body }: TwinRequest): CountedUsage {
  const { messages, tools } = isFields(body) ? body : {};
  return usageOf(reply, tokensOf(messages) + toolTokens(tools));
}

function wireUsage({ input, output, cacheRead, cacheWrite, reasoning }: CountedUsage): Fields {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
