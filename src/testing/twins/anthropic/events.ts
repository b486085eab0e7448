import type { ScriptedReply, TwinRequest } from "../contract.ts";
import { inPieces, sseEvent } from "../sse.ts";
import type { AnswerBlock } from "./reply.ts";
import { answerOf } from "./reply.ts";

/** "Streaming messages" › Event types: the answer as the server streams it, event for event. */
export function eventsOf(reply: ScriptedReply, request: TwinRequest, newId: () => string): readonly string[] {
  const { content, stop_reason, stop_sequence, usage, ...message } = answerOf(reply, request, newId);
  const begun = {
    ...message,
    content: [],
    stop_reason: null,
    stop_sequence,
    usage: { ...usage, output_tokens: 1 },
  };
  const blocks = content.flatMap((block, index) => blockEvents(block, index));
  const ping = event("ping", {});
  return [
    event("message_start", { message: begun }),
    // The server pings once the first block has begun.
    ...blocks.slice(0, 1),
    ping,
    ...blocks.slice(1),
    event("message_delta", { delta: { stop_reason, stop_sequence }, usage }),
    event("message_stop", {}),
  ];
}

function event(type: string, fields: object): string {
  return sseEvent({ type, ...fields }, { name: type });
}

function blockEvents(block: AnswerBlock, index: number): readonly string[] {
  const { begun, deltas } = inDeltas(block);
  return [
    event("content_block_start", { index, content_block: begun }),
    ...deltas.map((delta) => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index }),
  ];
}

/** "Streaming messages" › Content block delta types: how a block begins, and what is added to it. */
function inDeltas(block: AnswerBlock): { readonly begun: object; readonly deltas: readonly object[] } {
  switch (block.type) {
    case "text":
      return {
        begun: { type: "text", text: "" },
        deltas: inPieces(block.text).map((text) => ({ type: "text_delta", text })),
      };
    case "thinking": {
      const { signature } = block;
      const thoughts = inPieces(block.thinking).map((thinking) => ({ type: "thinking_delta", thinking }));
      return {
        begun: { type: "thinking", thinking: "", signature: "" },
        deltas: [...thoughts, { type: "signature_delta", signature }],
      };
    }
    case "redacted_thinking":
      return { begun: block, deltas: [] };
    case "tool_use": {
      // The first piece of an input is empty.
      const pieces = ["", ...inPieces(JSON.stringify(block.input))];
      return {
        begun: { ...block, input: {} },
        deltas: pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
      };
    }
  }
}
