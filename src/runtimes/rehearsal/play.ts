import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { Reply, ReplyCall } from "./reply.ts";

/** A reply as the AI SDK has it, whole or in parts. */

export interface NamedCall extends ReplyCall {
  readonly id: string;
}

/** Words, or a few characters of a script without blanks; no piece ends within a surrogate pair. */
export function piecesOf(text: string): readonly string[] {
  return text.match(/\s{0,64}\S{1,8}|\s{1,64}/gu) ?? [];
}

export function finishOf({ calls }: Pick<Reply, "calls">): LanguageModelV4FinishReason {
  return calls.length > 0 ? { unified: "tool-calls", raw: "tool_calls" } : { unified: "stop", raw: "stop" };
}

/** The calls with ids that no other call of the prompt has, the same for the same prompt. */
export function withIds(prompt: LanguageModelV4Prompt, made: readonly ReplyCall[]): readonly NamedCall[] {
  const taken = new Set(
    prompt.flatMap(({ role, content }) =>
      role === "assistant"
        ? content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))
        : [],
    ),
  );
  let next = taken.size;
  return made.map((call) => {
    do next += 1;
    while (taken.has(`call_${next}`));
    return { ...call, id: `call_${next}` };
  });
}

export function contentOf(reply: Reply, named: readonly NamedCall[]): LanguageModelV4Content[] {
  return [
    ...(reply.thinking === "" ? [] : [{ type: "reasoning" as const, text: reply.thinking }]),
    ...(reply.text === "" ? [] : [{ type: "text" as const, text: reply.text }]),
    ...named.map(toolCall),
  ];
}

/** The same in the parts of a stream, without its beginning and its end. */
export function streamParts(reply: Reply, named: readonly NamedCall[]): LanguageModelV4StreamPart[] {
  const run = (kind: "reasoning" | "text", text: string): LanguageModelV4StreamPart[] =>
    text === ""
      ? []
      : [
          { type: `${kind}-start`, id: kind },
          ...piecesOf(text).map(
            (delta): LanguageModelV4StreamPart => ({ type: `${kind}-delta`, id: kind, delta }),
          ),
          { type: `${kind}-end`, id: kind },
        ];
  return [...run("reasoning", reply.thinking), ...run("text", reply.text), ...named.flatMap(callParts)];
}

function callParts(call: NamedCall): LanguageModelV4StreamPart[] {
  const made = toolCall(call);
  return [
    { type: "tool-input-start", id: call.id, toolName: call.name },
    { type: "tool-input-delta", id: call.id, delta: made.input },
    { type: "tool-input-end", id: call.id },
    made,
  ];
}

function toolCall({ id, name, arguments: given }: NamedCall) {
  return { type: "tool-call" as const, toolCallId: id, toolName: name, input: JSON.stringify(given) };
}

/** Four characters are a token. */
export function usageOf(
  { prompt }: Pick<LanguageModelV4CallOptions, "prompt">,
  reply: Reply,
): LanguageModelV4Usage {
  const asked = prompt.reduce((sum, { content }) => sum + sizeOf(content), 0);
  const text = reply.text.length + reply.calls.reduce((sum, call) => sum + sizeOf(call.arguments), 0);
  return countedUsage(tokens(asked), tokens(text), tokens(reply.thinking.length));
}

export function countedUsage(
  input: number,
  text: number,
  reasoning = 0,
  cacheRead = 0,
): LanguageModelV4Usage {
  return {
    inputTokens: { total: input + cacheRead, noCache: input, cacheRead, cacheWrite: 0 },
    outputTokens: { total: text + reasoning, text, reasoning },
  };
}

const tokens = (characters: number) => Math.ceil(characters / 4);
const sizeOf = (value: unknown) => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).length;
