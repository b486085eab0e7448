import type { ScriptedBlock, ScriptedReply, TwinRequest } from "./contract.ts";
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
 * Mistral's replies. Mistral's server redacts nothing, so redacted thinking in a script only adds to the token count.
 */

type SpokenBlock = Extract<ScriptedBlock, { type: "text" | "thinking" }>;

export function mistralAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  const calls = encodeCalls(reply, newId);
  const blocks = spokenBlocks(reply);
  const message = {
    role: "assistant",
    tool_calls: calls.length > 0 ? calls : null,
    content: blocks.some(({ type }) => type === "thinking")
      ? blocks.map((block) =>
          block.type === "text" ? textChunk(block.text) : thinkingChunk([block.thinking]),
        )
      : blocks.map((block) => (block.type === "text" ? block.text : "")).join(""),
  };
  return {
    ...headOf(request, newId, "chat.completion"),
    usage: encodeUsage(reply, request),
    choices: [{ index: 0, finish_reason: finishReasonOf(reply), message }],
  };
}

/** Events contain only data. The last chunk contains all calls in full, along with the finish reason and the usage. */
export function mistralEvents(reply: ScriptedReply, request: TwinRequest, newId: () => string): string[] {
  const head = headOf(request, newId, "chat.completion.chunk");
  const chunk = (delta: Fields, finish: string | null = null, more: Fields = {}) =>
    sseEvent({ ...head, choices: [{ index: 0, delta, finish_reason: finish }], ...more });
  const calls = encodeCalls(reply, newId);
  const last = calls.length > 0 ? { tool_calls: calls } : { content: "" };
  const usage = { usage: encodeUsage(reply, request) };
  return [
    chunk({ role: "assistant", content: "" }),
    ...encodeContents(spokenBlocks(reply)).map((content) => chunk({ content })),
    chunk(last, finishReasonOf(reply), usage),
    sseDone,
  ];
}

/** Text is sent as strings, and thinking as lists of chunks. The first text after the thinking ends it. */
function encodeContents(blocks: readonly SpokenBlock[]): unknown[] {
  return blocks.flatMap((block, index): unknown[] => {
    if (block.type === "thinking")
      return splitInFewPieces(block.thinking).map((piece) => [thinkingChunk([piece])]);
    const [first, ...others] = splitInFewPieces(block.text);
    if (first === undefined || blocks[index - 1]?.type !== "thinking") return splitInFewPieces(block.text);
    return [[{ ...thinkingChunk([]), closed: true }, textChunk(first)], ...others];
  });
}

function spokenBlocks(reply: ScriptedReply): SpokenBlock[] {
  return reply.content.flatMap((block) => {
    if (block.type === "toolCall") return [];
    return block.type === "thinking" && block.redacted === true ? [] : [block];
  });
}

function textChunk(text: string): Fields {
  return { type: "text", text };
}

function thinkingChunk(texts: readonly string[]): Fields {
  return { type: "thinking", thinking: texts.map(textChunk) };
}

function encodeCalls(reply: ScriptedReply, newId: () => string): Fields[] {
  return callsOf(reply).map((call, index) => ({
    id: call.id ?? alphanumericId(newId, 9),
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
    index,
  }));
}

function headOf({ body }: TwinRequest, newId: () => string, object: string): Fields {
  return { id: alphanumericId(newId, 32), object, created: createdAt, model: fieldsOf(body).model ?? "" };
}

function encodeUsage(reply: ScriptedReply, { body }: TwinRequest): Fields {
  const { messages, tools } = fieldsOf(body);
  const usage = countUsage(reply, countPromptTokens([messages], tools));
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + usage.output,
    completion_tokens: usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead },
  };
}
