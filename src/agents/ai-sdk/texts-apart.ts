import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { Api } from "../../transcript/contract.ts";

/** An answer has one text in two of the formats, and their packages put ours together with nothing between. */
export function withTextsApart(prompt: LanguageModelV4Prompt, api: Api): LanguageModelV4Prompt {
  const isGlued = api === "openai-completions" || api === "mistral-conversations";
  return isGlued
    ? prompt.map((message) => (message.role === "assistant" ? apart(message) : message))
    : prompt;
}

type Answer = Extract<LanguageModelV4Message, { role: "assistant" }>;

function apart(message: Answer): Answer {
  const last = message.content.findLastIndex(({ type }) => type === "text");
  const content = message.content.map((part, index) =>
    part.type === "text" && index < last && /\S$/.test(part.text)
      ? { ...part, text: `${part.text}\n\n` }
      : part,
  );
  return { ...message, content };
}
