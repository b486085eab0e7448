import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Api, TranscriptMessage, TranscriptPolicy } from "../../transcript/contract.ts";
import type { Report } from "./metadata.ts";
import { fieldOf, joined, metadataOf, ofProvider, optionsField, ownName, without } from "./metadata.ts";
import type { AssistantPart } from "./parts.ts";
import { heldPart, notSent, revived, takesBack, userPartsOf } from "./parts.ts";
import { partsOfThinking, signatureOut } from "./signatures.ts";
import { resultPartOf } from "./tool-results.ts";

interface ToModelOptions {
  readonly api: Api;
  readonly system?: string | undefined;
  /** Marks for Anthropic's prompt cache; other marks are then taken out, because there may be four at the most. */
  readonly cacheBreakpoints?: boolean;
  /** Told of every part that is not sent. */
  readonly report?: Report;
}

type AssistantPrompt = Extract<LanguageModelV4Message, { role: "assistant" }>;

/**
 * The prompt of a transcript, as the SDK's models take it. Results that follow one another are one message. What a
 * provider said of a message stands under its name, and goes back to it alone.
 */
export function toModelMessages(
  messages: readonly TranscriptMessage[],
  options: ToModelOptions,
): LanguageModelV4Prompt {
  const converter = new Converter(options.api, options.report ?? (() => undefined));
  const prompt: LanguageModelV4Prompt = [];
  const { system = "" } = options;
  if (system.trim() !== "") prompt.push({ role: "system", content: system });
  for (const message of messages) {
    if (message.role === "user") {
      const content = userPartsOf(message.content, options.api, converter.report);
      prompt.push({ role: "user", content, ...optionsField(metadataOf(message.skein?.providerMetadata)) });
    } else if (message.role === "assistant") prompt.push(converter.answer(message));
    else converter.addResult(prompt, message);
  }
  return options.cacheBreakpoints === true && options.api === "anthropic-messages"
    ? withBreakpoints(prompt)
    : prompt;
}

/** Knows the calls that it has sent, for the results that answer them. */
class Converter {
  readonly report: Report;
  readonly #api: Api;
  readonly #names = new Map<string, string>();

  constructor(api: Api, report: Report) {
    this.#api = api;
    this.report = report;
  }

  answer(message: AssistantMessage): AssistantPrompt {
    const content = message.content.flatMap((block) => this.#partsOf(block));
    return { role: "assistant", content, ...optionsField(metadataOf(message.skein?.providerMetadata)) };
  }

  #partsOf(block: AssistantMessage["content"][number]): AssistantPart[] {
    switch (block.type) {
      case "text": {
        const rest = metadataOf(block.skein?.providerMetadata);
        const metadata = signatureOut(block.textSignature, rest, this.#api, "text");
        return [{ type: "text", text: block.text, ...optionsField(metadata) }];
      }
      case "thinking":
        return partsOfThinking(block, this.#api);
      case "toolCall":
        return [this.#callPart(block)];
      default:
        return this.#heldParts(block);
    }
  }

  #callPart(block: ToolCallBlock): AssistantPart {
    const [toolCallId, itemId] = this.#idsOf(block.id);
    this.#names.set(toolCallId, block.name);
    const rest = joined(metadataOf(block.skein?.providerMetadata), ofProvider("openai", { itemId }));
    const metadata = signatureOut(block.thoughtSignature, rest, this.#api, "call");
    return {
      type: "tool-call",
      toolCallId,
      toolName: block.name,
      input: block.arguments,
      ...optionsField(metadata),
    };
  }

  /** Pi writes the item's id of Responses behind that of the call. */
  #idsOf(id: string): [callId: string, itemId?: string] {
    const bar = this.#api === "openai-responses" ? id.indexOf("|") : -1;
    return bar <= 0 ? [id] : [id.slice(0, bar), id.slice(bar + 1)];
  }

  #heldParts(block: { readonly type: string }): AssistantPart[] {
    const part = heldPart(block);
    const live = part !== null && takesBack(part, this.#api) ? revived(part) : null;
    if (live !== null) return [live as unknown as AssistantPart];
    this.report(notSent(String(part?.type ?? block.type), "model's"));
    return [];
  }

  addResult(prompt: LanguageModelV4Prompt, message: ToolResultMessage): void {
    const [toolCallId] = this.#idsOf(message.toolCallId);
    const toolName = message.toolName ?? this.#names.get(toolCallId) ?? "unknown";
    const part = resultPartOf(message, { api: this.#api, toolCallId, toolName, report: this.report });
    const metadata = metadataOf(message.skein?.groupMetadata);
    const last = prompt.at(-1);
    if (last?.role !== "tool") {
      prompt.push({ role: "tool", content: [part], ...optionsField(metadata) });
      return;
    }
    last.content.push(part);
    Object.assign(last, optionsField(joined(last.providerOptions, metadata)));
  }
}

/**
 * Anthropic keeps what a request begins with, up to a mark, for the next one. There may be four marks; we set them on
 * the system prompt, which the tools stand before, and on the last two of what the API has as user messages.
 */

const markedTurns = 2;

export const cacheMark = ofProvider("anthropic", { cacheControl: { type: "ephemeral" } });

function withBreakpoints(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
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
