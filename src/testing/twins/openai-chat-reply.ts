import type { ScriptedReply, TwinRequest } from "./contract.ts";
import type { Fields } from "./shared.ts";
import {
  alphanumericId,
  callsOf,
  countPromptTokens,
  countUsage,
  createdAt,
  fieldsOf,
  finishReasonOf,
  splitInFewPieces,
  sseDone,
  sseEvent,
} from "./shared.ts";

/**
 * Chat Completions replies. They never contain the model's thinking, which is only counted in `reasoning_tokens`
 * (Reasoning guide, "How reasoning works").
 */

interface Call {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export function chatAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  const head = headOf(request, newId, "chat.completion");
  const calls = encodeCalls(reply, newId);
  const text = textOf(reply);
  const message = {
    role: "assistant",
    content: text === "" ? null : text,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    refusal: null,
    annotations: [],
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReasonOf(reply) };
  return { ...head, choices: [choice], usage: encodeUsage(reply, request), service_tier: "default" };
}

export function chatEvents(reply: ScriptedReply, request: TwinRequest, newId: () => string): string[] {
  const head = { ...headOf(request, newId, "chat.completion.chunk"), service_tier: "default" };
  const wantsUsage = fieldsOf(fieldsOf(request.body).stream_options).include_usage === true;
  const chunk = (choices: readonly unknown[], usage: unknown = null) =>
    sseEvent({ ...head, choices, ...(wantsUsage ? { usage } : {}) });
  const delta = (fields: Fields, finish: string | null = null) =>
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: finish }]);
  const text = splitInFewPieces(textOf(reply));
  return [
    delta({ role: "assistant", content: text.length > 0 ? "" : null, refusal: null }),
    ...text.map((piece) => delta({ content: piece })),
    ...encodeCalls(reply, newId)
      .flatMap(callDeltas)
      .map((fields) => delta(fields)),
    delta({}, finishReasonOf(reply)),
    ...(wantsUsage ? [chunk([], encodeUsage(reply, request))] : []),
    sseDone,
  ];
}

/** Sends the name without arguments first, and then the arguments in pieces. */
function callDeltas({ function: { name, arguments: text }, ...call }: Call, index: number): Fields[] {
  return [
    { tool_calls: [{ index, ...call, function: { name, arguments: "" } }] },
    ...splitInFewPieces(text).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ];
}

function encodeCalls(reply: ScriptedReply, newId: () => string): Call[] {
  return callsOf(reply).map((call) => ({
    id: call.id ?? `call_${alphanumericId(newId, 24)}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }));
}

/** A message contains a single string of text. */
function textOf(reply: ScriptedReply): string {
  return reply.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function headOf({ body }: TwinRequest, newId: () => string, object: string): Fields {
  return {
    id: `chatcmpl-${alphanumericId(newId, 29)}`,
    object,
    created: createdAt,
    model: fieldsOf(body).model ?? "",
    system_fingerprint: null,
  };
}

function encodeUsage(reply: ScriptedReply, { body }: TwinRequest): Fields {
  const { messages, tools } = fieldsOf(body);
  const { input, output, cacheRead, cacheWrite, reasoning } = countUsage(
    reply,
    countPromptTokens([messages], tools),
  );
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
