import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import type { TranscriptPolicy } from "../../transcript/contract.ts";
import { fieldOf, ownName } from "./metadata.ts";

/** That a tool failed has no field in some formats, nor with images in any; the model is told in words. */

const failedText = "The tool failed:";

type ToolMessage = Extract<LanguageModelV4Message, { role: "tool" }>;

export function withToldFailures(
  prompt: LanguageModelV4Prompt,
  { provider, api }: Pick<TranscriptPolicy, "provider" | "api">,
): LanguageModelV4Prompt {
  // OpenAI's own package writes a failure as JSON; the one for other servers does not.
  const isSilent = api === "mistral-conversations" || (api === "openai-completions" && provider !== "openai");
  return prompt.map((message) => (message.role === "tool" ? told(message, isSilent) : message));
}

function told(message: ToolMessage, isSilent: boolean): ToolMessage {
  const content = message.content.map((part) =>
    part.type === "tool-result" ? { ...part, output: outputOf(part, isSilent) } : part,
  );
  return { ...message, content };
}

function outputOf(
  part: LanguageModelV4ToolResultPart,
  isSilent: boolean,
): LanguageModelV4ToolResultPart["output"] {
  const { output } = part;
  if (output.type === "error-text" && isSilent) return { ...output, value: `${failedText} ${output.value}` };
  const hasFailed = fieldOf(part.providerOptions, ownName, "isError") === true;
  if (output.type !== "content" || !hasFailed) return output;
  return { ...output, value: [{ type: "text", text: failedText }, ...output.value] };
}
