import type { ScriptedReply, TwinRequest } from "../contract.ts";
import { stopReasonOf, usageOf } from "../count.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf } from "../fields.ts";
import { redactThinking, signatures } from "../signatures.ts";
import { countMessages } from "./check.ts";

/** A block of an answer, whole. */
export type AnswerBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: Fields };

/** "Messages" › Returns: what is answered where no stream was asked for. */
export interface Answer {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly content: readonly AnswerBlock[];
  readonly stop_reason: string;
  readonly stop_sequence: null;
  readonly usage: Fields;
}

const stopReasons = { stop: "end_turn", length: "max_tokens", toolUse: "tool_use" } as const;

export function answerOf(reply: ScriptedReply, request: TwinRequest, newId: () => string): Answer {
  const body = fieldsOf(request.body) ?? {};
  const model = String(body.model);
  return {
    id: `msg_01${newId()}`,
    type: "message",
    role: "assistant",
    model,
    content: contentOf(reply, model, newId),
    stop_reason: stopReasons[stopReasonOf(reply)],
    stop_sequence: null,
    usage: usageFields(reply, body),
  };
}

function contentOf(reply: ScriptedReply, model: string, newId: () => string): readonly AnswerBlock[] {
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

/** "Messages" › `usage`: `input_tokens` are those that the cache had no part in. */
function usageFields(reply: ScriptedReply, body: Fields): Fields {
  const usage = usageOf(reply, countMessages(body));
  const { input, output, cacheRead = 0, cacheWrite = 0, reasoning } = usage;
  return {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: output,
    ...(reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
    service_tier: "standard",
  };
}
