import type { ScriptedBlock, ScriptedReply, TwinRequest } from "../contract.ts";
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

/** What the server answers. It redacts nothing: redacted thinking of a script is only counted. */

type Said = Extract<ScriptedBlock, { type: "text" | "thinking" }>;

export function mistralAnswer(reply: ScriptedReply, request: TwinRequest, newId: () => string): unknown {
  const calls = callsFor(reply, newId);
  const said = saidIn(reply);
  const message = {
    role: "assistant",
    tool_calls: calls.length > 0 ? calls : null,
    content: said.some(({ type }) => type === "thinking")
      ? said.map((block) => (block.type === "text" ? textChunk(block.text) : thinkingChunk([block.thinking])))
      : said.map((block) => (block.type === "text" ? block.text : "")).join(""),
  };
  return {
    ...headOf(request, newId, "chat.completion"),
    usage: wireUsage(countOf(reply, request)),
    choices: [{ index: 0, finish_reason: finishReasonOf(reply), message }],
  };
}

/** Data only. The calls come whole and together, in the last chunk, with the finish reason and the usage. */
export function mistralEvents(reply: ScriptedReply, request: TwinRequest, newId: () => string): string[] {
  const head = headOf(request, newId, "chat.completion.chunk");
  const chunk = (delta: Fields, finish: string | null = null, more: Fields = {}) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
  const calls = callsFor(reply, newId);
  const last = calls.length > 0 ? { tool_calls: calls } : { content: "" };
  const usage = { usage: wireUsage(countOf(reply, request)) };
  return [
    chunk({ role: "assistant", content: "" }),
    ...contentsOf(saidIn(reply)).map((content) => chunk({ content })),
    chunk(last, finishReasonOf(reply), usage),
    "data: [DONE]\n\n",
  ];
}

/** Text comes as strings, thinking as lists of chunks; the first text behind it closes the thinking. */
function contentsOf(said: readonly Said[]): unknown[] {
  return said.flatMap((block, index): unknown[] => {
    if (block.type === "thinking") return piecesOf(block.thinking).map((piece) => [thinkingChunk([piece])]);
    const [first, ...others] = piecesOf(block.text);
    if (first === undefined || said[index - 1]?.type !== "thinking") return piecesOf(block.text);
    return [[{ ...thinkingChunk([]), closed: true }, textChunk(first)], ...others];
  });
}

function saidIn(reply: ScriptedReply): Said[] {
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

function callsFor(reply: ScriptedReply, newId: () => string): Fields[] {
  return callsOf(reply).map((call, index) => ({
    id: call.id ?? alphanumericId(newId, 9),
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
    index,
  }));
}

function headOf({ body }: TwinRequest, newId: () => string, object: string): Fields {
  const model = isFields(body) ? body.model : "";
  return { id: alphanumericId(newId, 32), object, created: createdAt, model };
}

function countOf(reply: ScriptedReply, { body }: TwinRequest): CountedUsage {
  const { messages, tools } = isFields(body) ? body : {};
  return usageOf(reply, tokensOf(messages) + toolTokens(tools));
}

function wireUsage({ input, output, cacheRead }: CountedUsage): Fields {
  return {
    prompt_tokens: input,
    total_tokens: input + output,
    completion_tokens: output,
    prompt_tokens_details: { cached_tokens: cacheRead },
  };
}
