import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Api, TranscriptMessage } from "../../transcript/contract.ts";
import { withBreakpoints } from "./cache-breakpoints.ts";
import type { Report } from "./metadata.ts";
import { joined, metadataOf, ofProvider, optionsField } from "./metadata.ts";
import type { AssistantPart } from "./parts.ts";
import { heldPart, revived, takesBack } from "./parts.ts";
import { notSent, userPartsOf } from "./result-content.ts";
import { signatureOut } from "./signatures.ts";
import { partsOfThinking } from "./thinking.ts";
import { resultPartOf } from "./tool-results.ts";

export interface ToModelOptions {
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
