import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { joined, ofProvider, optionsField, without } from "./metadata.ts";

/**
 * Anthropic keeps what a request begins with, up to a mark, for the next one. There may be four marks; we set them on
 * the system prompt, which the tools stand before, and on the last two of what the API has as user messages.
 */

const markedTurns = 2;

export const cacheMark = ofProvider("anthropic", { cacheControl: { type: "ephemeral" } });

export function withBreakpoints(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const ends = new Set(userTurnEnds(prompt).slice(-markedTurns));
  return prompt.map((message, index) => {
    const bare = unmarked(message);
    return message.role === "system" || ends.has(index) ? marked(bare) : bare;
  });
}

/** Users' and tools' messages in a row are one for the API; a mark on the last of them is on its last part. */
function userTurnEnds(prompt: LanguageModelV4Prompt): number[] {
  const isUsers = (message: LanguageModelV4Message | undefined) =>
    message?.role === "user" || message?.role === "tool";
  return prompt.flatMap((message, index) =>
    isUsers(message) && !isUsers(prompt[index + 1]) && message.content.length > 0 ? [index] : [],
  );
}

function marked(message: LanguageModelV4Message): LanguageModelV4Message {
  return { ...message, ...optionsField(joined(message.providerOptions, cacheMark)) };
}

/** Without marks that came with the messages: the SDK would leave out the last ones, which are ours. */
function unmarked(message: LanguageModelV4Message): LanguageModelV4Message {
  const clean = withoutMark(message);
  if (clean.role === "system") return clean;
  const content = clean.content.map((part) => {
    const bare = withoutMark(part);
    return bare.type === "tool-result" ? { ...bare, output: withoutMark(cleanValue(bare.output)) } : bare;
  });
  return { ...clean, content } as LanguageModelV4Message;
}

function cleanValue<T extends { type: string }>(output: T): T {
  const { value } = output as { value?: unknown };
  return output.type === "content" && Array.isArray(value)
    ? { ...output, value: value.map(withoutMark) }
    : output;
}

type Marked = { providerOptions?: LanguageModelV4Message["providerOptions"] };

function withoutMark<T extends object>(part: T): T {
  const { providerOptions, ...bare } = part as T & Marked;
  const left = without(providerOptions, "anthropic", ["cacheControl", "cache_control"]);
  return left === providerOptions ? part : ({ ...bare, ...optionsField(left) } as unknown as T);
}
