import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Api, TranscriptMessage, TranscriptPolicy } from "../../transcript/contract.ts";
import type { Report } from "./metadata.ts";
import {
  fieldOf,
  mergeMetadata,
  metadataOf,
  ofProvider,
  optionsField,
  ownName,
  without,
} from "./metadata.ts";
import type { AssistantPart } from "./parts.ts";
import { heldPart, notSent, restorePart, takesBack, userPartsOf } from "./parts.ts";
import { partsOfThinking, signatureOut } from "./signatures.ts";
import { resultPartOf } from "./tool-results.ts";

interface ToModelOptions {
  readonly api: Api;
  readonly system?: string | undefined;
  /** Sets Anthropic's prompt cache marks and removes any others, because at most four are allowed. */
  readonly cacheBreakpoints?: boolean;
  /** Called for every part that is not sent. */
  readonly report?: Report;
}

type AssistantPrompt = Extract<LanguageModelV4Message, { role: "assistant" }>;

/** Converts a transcript to an AI SDK prompt. Consecutive results become one message. */
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

/** Converts answers and results. Records each call's name for the result that answers it. */
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
    const rest = mergeMetadata(metadataOf(block.skein?.providerMetadata), ofProvider("openai", { itemId }));
    const metadata = signatureOut(block.thoughtSignature, rest, this.#api, "call");
    return {
      type: "tool-call",
      toolCallId,
      toolName: block.name,
      input: block.arguments,
      ...optionsField(metadata),
    };
  }

  /** Splits off the OpenAI Responses item ID, which is appended to the call ID as in pi. */
  #idsOf(id: string): [callId: string, itemId?: string] {
    const bar = this.#api === "openai-responses" ? id.indexOf("|") : -1;
    return bar <= 0 ? [id] : [id.slice(0, bar), id.slice(bar + 1)];
  }

  #heldParts(block: { readonly type: string }): AssistantPart[] {
    const part = heldPart(block);
    const live = part !== null && takesBack(part, this.#api) ? restorePart(part) : null;
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
    Object.assign(last, optionsField(mergeMetadata(last.providerOptions, metadata)));
  }
}

/**
 * Anthropic caches a request up to each mark. It allows four marks, which we place on the system prompt and the last
 * user turns.
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

/** Returns the last message of each user turn, because the API merges consecutive user and tool messages. */
function userTurnEnds(prompt: LanguageModelV4Prompt): number[] {
  const isUsers = (message: LanguageModelV4Message | undefined) =>
    message?.role === "user" || message?.role === "tool";
  return prompt.flatMap((message, index) =>
    isUsers(message) && !isUsers(prompt[index + 1]) && message.content.length > 0 ? [index] : [],
  );
}

function marked(message: LanguageModelV4Message): LanguageModelV4Message {
  return { ...message, ...optionsField(mergeMetadata(message.providerOptions, cacheMark)) };
}

/** Removes marks that came with the messages. Otherwise, the AI SDK would drop ours because they come last. */
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

/**
 * Separates texts. Two of the APIs have a single text per answer, and their packages would join our texts without a
 * separator.
 */
export function separateTexts(prompt: LanguageModelV4Prompt, api: Api): LanguageModelV4Prompt {
  const isJoined = api === "openai-completions" || api === "mistral-conversations";
  return isJoined
    ? prompt.map((message) => (message.role === "assistant" ? separate(message) : message))
    : prompt;
}

type Answer = Extract<LanguageModelV4Message, { role: "assistant" }>;

function separate(message: Answer): Answer {
  const last = message.content.findLastIndex(({ type }) => type === "text");
  const content = message.content.map((part, index) =>
    part.type === "text" && index < last && /\S$/.test(part.text)
      ? { ...part, text: `${part.text}\n\n` }
      : part,
  );
  return { ...message, content };
}

const failedText = "The tool failed:";

type ToolMessage = Extract<LanguageModelV4Message, { role: "tool" }>;

/** Adds a note that a tool failed, for APIs that have no field for failures and for results with images. */
export function describeFailures(
  prompt: LanguageModelV4Prompt,
  { provider, api }: Pick<TranscriptPolicy, "provider" | "api">,
): LanguageModelV4Prompt {
  // OpenAI's package writes a failure as JSON, but the package for compatible servers does not.
  const isSilent = api === "mistral-conversations" || (api === "openai-completions" && provider !== "openai");
  return prompt.map((message) => (message.role === "tool" ? describeFailure(message, isSilent) : message));
}

function describeFailure(message: ToolMessage, isSilent: boolean): ToolMessage {
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
