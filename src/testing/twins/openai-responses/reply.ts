import type { ScriptedReply, TwinRequest } from "../contract.ts";
import type { CountedUsage } from "../openai-shared-script.ts";
import { alphanumericId, createdAt, stopReasonOf, usageOf } from "../openai-shared-script.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, listOf, tokensOf, toolTokens } from "../openai-shared-values.ts";
import { itemEvents } from "./reply-events.ts";
import type { Manner, OutputItem } from "./reply-items.ts";
import { outputItems } from "./reply-items.ts";

export function responsesAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  const begun = begunResponse(request, newId);
  return doneResponse(begun, reply, request, outputItems(reply, mannerOf(request), newId));
}

/** Typed events, numbered; there is no `[DONE]` behind the last one. */
export function responsesEvents(reply: ScriptedReply, request: TwinRequest, newId: () => string): string[] {
  const begun = begunResponse(request, newId);
  const items = outputItems(reply, mannerOf(request), newId);
  const done = doneResponse(begun, reply, request, items);
  const events: Fields[] = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...items.flatMap((item, index) => itemEvents(item, index)),
    { type: `response.${done.status}`, response: done },
  ];
  return events.map(({ type, ...fields }, index) => {
    const data = JSON.stringify({ type, sequence_number: index, ...fields });
    return `event: ${type}\ndata: ${data}\n\n`;
  });
}

function begunResponse(request: TwinRequest, newId: () => string): Fields {
  const body = bodyOf(request);
  const reasoning = isFields(body.reasoning) ? body.reasoning : {};
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

function doneResponse(
  begun: Fields,
  reply: ScriptedReply,
  request: TwinRequest,
  output: readonly OutputItem[],
): Fields {
  const isCut = stopReasonOf(reply) === "length";
  const { input, instructions, tools } = bodyOf(request);
  return {
    ...begun,
    status: isCut ? "incomplete" : "completed",
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    output,
    usage: wireUsage(usageOf(reply, tokensOf(input, instructions) + toolTokens(tools))),
  };
}

function mannerOf(request: TwinRequest): Manner {
  const { model, include, reasoning } = bodyOf(request);
  const summary = isFields(reasoning) ? reasoning.summary : null;
  return {
    model: typeof model === "string" ? model : "",
    isEncrypted: listOf(include).includes("reasoning.encrypted_content"),
    isSummarised: typeof summary === "string",
  };
}

function bodyOf({ body }: TwinRequest): Fields {
  return isFields(body) ? body : {};
}

function wireUsage({ input, output, cacheRead, cacheWrite, reasoning }: CountedUsage): Fields {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}
