import { countMessages } from "./anthropic-messages.ts";
import type { ScriptedReply, TwinRequest } from "./contract.ts";
import type { Fields } from "./shared.ts";
import { countUsage, fieldsOf, splitInShortPieces, sseEvent, stopReasonOf } from "./shared.ts";
import { redactThinking, signatures } from "./signatures.ts";

/** One block in an answer. */
type AnswerBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: Fields };

const stopReasons = { stop: "end_turn", length: "max_tokens", toolUse: "tool_use" } as const;

/** "Messages" › Returns: the answer to a request without streaming. */
export function anthropicAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string) {
  const body = fieldsOf(request.body);
  const model = String(body.model);
  return {
    id: `msg_01${newId()}`,
    type: "message",
    role: "assistant",
    model,
    content: encodeContent(reply, model, newId),
    stop_reason: stopReasons[stopReasonOf(reply)],
    stop_sequence: null,
    usage: encodeUsage(reply, body),
  };
}

function encodeContent(reply: ScriptedReply, model: string, newId: () => string): readonly AnswerBlock[] {
  return reply.content.map((block): AnswerBlock => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "toolCall") {
      const { name, arguments: input, id = `toolu_01${newId()}` } = block;
      return { type: "tool_use", id, name, input };
    }
    const { thinking } = block;
    if (block.redacted === true) return { type: "redacted_thinking", data: redactThinking(model, thinking) };
    return { type: "thinking", thinking, signature: signatures.sign("anthropic-messages", model, thinking) };
  });
}

/** "Messages" › `usage`: `input_tokens` does not include the cache. */
function encodeUsage(reply: ScriptedReply, body: Fields): Fields {
  const { input, output, cacheRead, cacheWrite, reasoning } = countUsage(reply, countMessages(body));
  return {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: output,
    ...(reasoning === 0 ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
    service_tier: "standard",
  };
}

/** "Streaming messages" › Event types: the answer as the server streams it. */
export function anthropicEvents(
  reply: ScriptedReply,
  request: TwinRequest,
  newId: () => string,
): readonly string[] {
  const { content, stop_reason, stop_sequence, usage, ...head } = anthropicAnswer(reply, request, newId);
  const started = { content: [], stop_reason: null, stop_sequence, usage: { ...usage, output_tokens: 1 } };
  const [first, ...others] = content.flatMap(blockEvents);
  return [
    event("message_start", { message: { ...head, ...started } }),
    // The server sends a ping after the start of the first block.
    ...(first === undefined ? [] : [first]),
    event("ping", {}),
    ...others,
    event("message_delta", { delta: { stop_reason, stop_sequence }, usage }),
    event("message_stop", {}),
  ];
}

function event(type: string, fields: object): string {
  return sseEvent({ type, ...fields }, { name: type });
}

function blockEvents(block: AnswerBlock, index: number): readonly string[] {
  const { start, deltas } = splitBlock(block);
  return [
    event("content_block_start", { index, content_block: start }),
    ...deltas.map((delta) => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index }),
  ];
}

/** "Streaming messages" › Content block delta types: how a block starts, and the deltas that follow. */
function splitBlock(block: AnswerBlock): { readonly start: object; readonly deltas: readonly object[] } {
  switch (block.type) {
    case "text":
      return {
        start: { type: "text", text: "" },
        deltas: splitInShortPieces(block.text).map((text) => ({ type: "text_delta", text })),
      };
    case "thinking": {
      const pieces = splitInShortPieces(block.thinking);
      const deltas = pieces.map((thinking) => ({ type: "thinking_delta", thinking }));
      return {
        start: { type: "thinking", thinking: "", signature: "" },
        deltas: [...deltas, { type: "signature_delta", signature: block.signature }],
      };
    }
    case "redacted_thinking":
      return { start: block, deltas: [] };
    case "tool_use": {
      // The first piece of an input is empty.
      const pieces = ["", ...splitInShortPieces(JSON.stringify(block.input))];
      return {
        start: { ...block, input: {} },
        deltas: pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
      };
    }
  }
}
