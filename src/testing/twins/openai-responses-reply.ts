import type { ScriptedBlock, ScriptedReply, TwinRequest } from "./contract.ts";
import type { Fields } from "./shared.ts";
import {
  alphanumericId,
  countPromptTokens,
  countUsage,
  createdAt,
  fieldsOf,
  listOf,
  splitInFewPieces,
  sseEvent,
  stopReasonOf,
} from "./shared.ts";
import { sealReasoning } from "./signatures.ts";

export function responsesAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  const started = startResponse(fieldsOf(request.body), newId);
  return finishResponse(started, reply, request, encodeItems(reply, request, newId));
}

/** Events are typed and numbered. There is no `[DONE]` after the last one. */
export function responsesEvents(reply: ScriptedReply, request: TwinRequest, newId: () => string): string[] {
  const started = startResponse(fieldsOf(request.body), newId);
  const items = encodeItems(reply, request, newId);
  const finished = finishResponse(started, reply, request, items);
  const events: Fields[] = [
    { type: "response.created", response: started },
    { type: "response.in_progress", response: started },
    ...items.flatMap(encodeItemEvents),
    { type: `response.${finished.status}`, response: finished },
  ];
  return events.map(({ type, ...fields }, index) =>
    sseEvent({ type, sequence_number: index, ...fields }, { name: String(type) }),
  );
}

function startResponse(body: Fields, newId: () => string): Fields {
  const reasoning = fieldsOf(body.reasoning);
  return {
    id: `resp_${alphanumericId(newId, 48)}`,
    object: "response",
    created_at: createdAt,
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    model: body.model,
    output: [],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    service_tier: "default",
    store: body.store ?? true,
    text: body.text ?? { format: { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    truncation: body.truncation ?? "disabled",
    usage: null,
    metadata: body.metadata ?? {},
  };
}

function finishResponse(
  started: Fields,
  reply: ScriptedReply,
  { body }: TwinRequest,
  output: readonly OutputItem[],
): Fields {
  const isCut = stopReasonOf(reply) === "length";
  const { input: items, instructions, tools } = fieldsOf(body);
  const usage = countUsage(reply, countPromptTokens([items, instructions], tools));
  const input = usage.input + usage.cacheRead + usage.cacheWrite;
  return {
    ...started,
    status: isCut ? "incomplete" : "completed",
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    output,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: input + usage.output,
    },
  };
}

interface OutputItem extends Fields {
  readonly id: string;
}

function encodeItems(reply: ScriptedReply, request: TwinRequest, newId: () => string): OutputItem[] {
  const status = reply.stopReason === "length" ? "incomplete" : "completed";
  return reply.content.map((block) => encodeItem(block, status, fieldsOf(request.body), newId));
}

function encodeItem(block: ScriptedBlock, status: string, body: Fields, newId: () => string): OutputItem {
  const hex = alphanumericId(newId, 48);
  switch (block.type) {
    case "text":
      return {
        id: `msg_${hex}`,
        type: "message",
        status,
        role: "assistant",
        content: [encodeText(block.text)],
      };
    case "thinking":
      return encodeReasoning(block.redacted === true ? "" : block.thinking, body, `rs_${hex}`);
    case "toolCall":
      return {
        id: `fc_${hex}`,
        type: "function_call",
        status,
        call_id: block.id ?? `call_${alphanumericId(newId, 24)}`,
        name: block.name,
        arguments: JSON.stringify(block.arguments),
      };
  }
}

function encodeText(text: string): Fields {
  return { type: "output_text", annotations: [], logprobs: [], text };
}

/**
 * Summaries are included only if `reasoning.summary` requests them (Reasoning guide, "Reasoning summaries"). Encrypted
 * content is included only if `include` requests it (API reference, include).
 */
function encodeReasoning(thinking: string, { model, include, reasoning }: Fields, id: string): OutputItem {
  const isSummarized = typeof fieldsOf(reasoning).summary === "string" && thinking !== "";
  const isEncrypted = listOf(include).includes("reasoning.encrypted_content");
  return {
    id,
    type: "reasoning",
    summary: isSummarized ? [{ type: "summary_text", text: thinking }] : [],
    ...(isEncrypted ? { encrypted_content: sealReasoning(String(model ?? ""), id) } : {}),
  };
}

/**
 * Returns the events from `output_item.added`, where the item is empty, to `output_item.done` (API reference, "Streaming
 * events").
 */
function encodeItemEvents(item: OutputItem, index: number): Fields[] {
  const at = { output_index: index };
  const { begin, events } = streamedItem(item);
  return [
    { type: "response.output_item.added", ...at, item: { ...item, ...begin } },
    ...events.map(({ type, ...fields }) => ({ type, item_id: item.id, ...at, ...fields })),
    { type: "response.output_item.done", ...at, item },
  ];
}

function streamedItem(item: OutputItem): { readonly begin: Fields; readonly events: readonly Fields[] } {
  if (item.type === "reasoning")
    return { begin: { summary: [] }, events: listOf(item.summary).flatMap(summaryEvents) };
  const begin = { status: "in_progress" };
  if (item.type === "message") {
    const events = textEvents(fieldsOf(listOf(item.content)[0]));
    return { begin: { ...begin, content: [] }, events };
  }
  const text = String(item.arguments);
  const type = "response.function_call_arguments";
  return {
    begin: { ...begin, arguments: "" },
    events: [
      ...splitInFewPieces(text).map((delta) => ({ type: `${type}.delta`, delta })),
      { type: `${type}.done`, arguments: text },
    ],
  };
}

function summaryEvents(part: unknown, index: number): Fields[] {
  const at = { summary_index: index };
  const { text } = fieldsOf(part);
  const type = "response.reasoning_summary";
  return [
    { type: `${type}_part.added`, ...at, part: { ...fieldsOf(part), text: "" } },
    ...splitInFewPieces(String(text)).map((delta) => ({ type: `${type}_text.delta`, ...at, delta })),
    { type: `${type}_text.done`, ...at, text },
    { type: `${type}_part.done`, ...at, part },
  ];
}

function textEvents(part: Fields): Fields[] {
  const at = { content_index: 0 };
  const type = "response.output_text";
  const pieces = splitInFewPieces(String(part.text));
  return [
    { type: "response.content_part.added", ...at, part: encodeText("") },
    ...pieces.map((delta) => ({ type: `${type}.delta`, ...at, delta, logprobs: [] })),
    { type: `${type}.done`, ...at, text: part.text, logprobs: [] },
    { type: "response.content_part.done", ...at, part },
  ];
}
