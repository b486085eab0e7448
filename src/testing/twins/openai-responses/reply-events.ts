import { piecesOf } from "../openai-shared-script.ts";
import type { Fields } from "../openai-shared-values.ts";
import type { CallItem, MessageItem, OutputItem, ReasoningItem } from "./reply-items.ts";
import { textPart } from "./reply-items.ts";

/** The events of one output item, from `output_item.added` to `output_item.done` (API reference, "Streaming events"). */
export function itemEvents(item: OutputItem, outputIndex: number): Fields[] {
  const at = { output_index: outputIndex };
  return [
    { type: "response.output_item.added", ...at, item: begun(item) },
    ...innerEvents(item).map(({ type, ...fields }) => ({ type, item_id: item.id, ...at, ...fields })),
    { type: "response.output_item.done", ...at, item },
  ];
}

/** The item as it is when it begins: empty. */
function begun(item: OutputItem): OutputItem | Fields {
  if (item.type === "reasoning") return { ...item, summary: [] };
  if (item.type === "message") return { ...item, status: "in_progress", content: [] };
  return { ...item, status: "in_progress", arguments: "" };
}

function innerEvents(item: OutputItem): Fields[] {
  if (item.type === "reasoning") return reasoningEvents(item);
  return item.type === "message" ? messageEvents(item) : callEvents(item);
}

function reasoningEvents({ summary }: ReasoningItem): Fields[] {
  return summary.flatMap((part, index) => {
    const at = { summary_index: index };
    const piece = (delta: string) => ({ type: "response.reasoning_summary_text.delta", ...at, delta });
    return [
      { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
      ...piecesOf(part.text).map(piece),
      { type: "response.reasoning_summary_text.done", ...at, text: part.text },
      { type: "response.reasoning_summary_part.done", ...at, part },
    ];
  });
}

function messageEvents({ content: [part] }: MessageItem): Fields[] {
  const at = { content_index: 0 };
  const piece = (delta: string) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] });
  return [
    { type: "response.content_part.added", ...at, part: textPart("") },
    ...piecesOf(part.text).map(piece),
    { type: "response.output_text.done", ...at, text: part.text, logprobs: [] },
    { type: "response.content_part.done", ...at, part },
  ];
}

function callEvents({ arguments: text }: CallItem): Fields[] {
  const piece = (delta: string) => ({ type: "response.function_call_arguments.delta", delta });
  return [...piecesOf(text).map(piece), { type: "response.function_call_arguments.done", arguments: text }];
}
