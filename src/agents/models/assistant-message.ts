import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4ResponseMetadata,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { AssistantBlock, AssistantMessage, ToolCallBlock, Usage } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { isRecord } from "../../core/shape.ts";
import type { Api } from "../../transcript/contract.ts";
import { apiOf } from "../../transcript/policy.ts";
import type { Metadata, Report } from "./metadata.ts";
import { ownField } from "./metadata.ts";
import type { AssistantPart, ResponseOnlyPart } from "./parts.ts";
import { partBlock } from "./parts.ts";
import { continuesItem, parsed, signatureIn, thinkingOfParts } from "./signatures.ts";

/** What a model said beside its content. */
export interface ResponseFacts {
  readonly finishReason: LanguageModelV4FinishReason;
  readonly usage?: LanguageModelV4Usage | undefined;
  readonly providerMetadata?: Metadata | undefined;
  readonly response?: LanguageModelV4ResponseMetadata | undefined;
}

/** Who was asked, and when. */
interface ResponseAbout {
  readonly provider: string;
  readonly api: string;
  readonly model: string;
  readonly timestamp: number;
  /** Left out: not known. */
  readonly cost?: Required<NonNullable<Usage["cost"]>>;
}

export type AnswerDraft = Extract<MessageDraft, { role: "assistant" }>;

/** The answer of a model as a message of a session, with all that the provider said of it. */
export function assistantMessageOf(
  content: readonly LanguageModelV4Content[],
  facts: ResponseFacts,
  about: ResponseAbout,
  report: Report = () => undefined,
): AnswerDraft {
  const parts = content.flatMap((part) => promptPart(part, report));
  const blocks = blocksOfParts(parts, apiOf(about.provider, about.api));
  const { cost, ...rest } = about;
  const hasCalls = blocks.some((block) => block.type === "toolCall");
  const errorMessage = errorMessageOf(facts.finishReason);
  return {
    role: "assistant",
    content: blocks,
    ...rest,
    usage: usageOf(facts.usage, cost),
    stopReason: stopReasonOf(facts.finishReason, hasCalls),
    ...(errorMessage === undefined ? {} : { errorMessage }),
    skein: {
      finishReason: { ...facts.finishReason },
      ...(facts.usage === undefined ? {} : { usage: { ...facts.usage } }),
      ...responseField(facts),
      ...(cost === undefined && facts.usage !== undefined ? { costKnown: false } : {}),
    },
  };
}

function responseField({ response, providerMetadata }: ResponseFacts): {
  response?: Record<string, unknown>;
} {
  const { id, modelId, timestamp } = response ?? {};
  const time =
    timestamp === undefined || Number.isNaN(timestamp.getTime()) ? undefined : timestamp.toISOString();
  const known = Object.entries({ id, modelId, timestamp: time, providerMetadata }).filter(
    ([, value]) => value !== undefined,
  );
  return known.length === 0 ? {} : { response: Object.fromEntries(known) };
}

/** A part of a response as one of a prompt, which is what it is kept as. */
function promptPart(part: LanguageModelV4Content, report: Report): AssistantPart[] {
  const { providerMetadata, ...fields } = part;
  const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
  if (part.type === "tool-result" && part.preliminary === true) {
    const note = `A preliminary result of ${part.toolName} was left out; the final one stands for it.`;
    report({ step: "assistantMessageOf", kind: "preliminary_result", note });
    return [];
  }
  const same = { ...fields, ...options } as unknown as AssistantPart;
  switch (part.type) {
    case "tool-call":
      return part.providerExecuted === true
        ? [{ ...same, input: parsed(part.input) ?? part.input } as AssistantPart]
        : [same];
    case "tool-result": {
      const { result, isError, preliminary: _, ...rest } = part;
      const output = { type: isError === true ? "error-json" : "json", value: result };
      const { providerMetadata: _metadata, ...bare } = rest;
      return [{ ...bare, output, ...options } as AssistantPart];
    }
    default:
      return [same];
  }
}

/** The blocks of an answer, whether it came as a response or stands in a prompt. */

type Part = AssistantPart | (ResponseOnlyPart & { readonly providerOptions?: Metadata });
type ReasoningPart = Extract<AssistantPart, { type: "reasoning" }>;
type TextPart = Extract<AssistantPart, { type: "text" }>;
type CallPart = Extract<AssistantPart, { type: "tool-call" }>;

/** Every part is kept: those without a block of their own as they are. */
export function blocksOfParts(parts: readonly Part[], api: Api): AssistantMessage["content"] {
  const blocks: unknown[] = [];
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] as Part;
    if (part.type === "reasoning") {
      const group = reasoningFrom(parts, at, api);
      blocks.push(thinkingOfParts(group, api));
      at += group.length - 1;
    } else blocks.push(blockOf(part, api));
  }
  return blocks as AssistantBlock[];
}

/** On Responses, the parts of one reasoning item. */
function reasoningFrom(parts: readonly Part[], from: number, api: Api): ReasoningPart[] {
  const group = [parts[from] as ReasoningPart];
  for (let at = from + 1; api === "openai-responses"; at++) {
    const [next, last] = [parts[at], group.at(-1)];
    if (next?.type !== "reasoning" || last === undefined || !continuesItem(last, next)) break;
    group.push(next);
  }
  return group;
}

function blockOf(part: Exclude<Part, { type: "reasoning" }>, api: Api): unknown {
  if (part.type === "text") return textBlock(part, api);
  return part.type === "tool-call" && part.providerExecuted !== true ? callBlock(part, api) : partBlock(part);
}

function textBlock(part: TextPart, api: Api): AssistantBlock {
  const { signature, rest } = signatureIn(part.providerOptions, api, "text");
  return {
    type: "text",
    text: part.text,
    ...(signature === undefined ? {} : { textSignature: signature }),
    ...skeinField(rest, responseFields(part, "citations")),
  };
}

function callBlock(part: CallPart, api: Api): ToolCallBlock {
  const { signature, rest } = signatureIn(part.providerOptions, api, "call");
  const input = inputOf(part.input);
  const own = { ...responseFields(part, "dynamic"), ...(input === null ? { invalidInput: true } : {}) };
  return {
    type: "toolCall",
    id: part.toolCallId,
    name: part.toolName,
    arguments: input ?? { input: part.input ?? null },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
    ...skeinField(rest, own),
  };
}

/** Arguments are an object, or the JSON of one; without any, an empty one. `null`: they are something else. */
function inputOf(input: unknown): Record<string, unknown> | null {
  if (isRecord(input)) return input;
  if (input === undefined || (typeof input === "string" && input.trim() === "")) return {};
  const value = typeof input === "string" ? parsed(input) : undefined;
  return isRecord(value) ? value : null;
}

/** Only a response has these; no request takes them back. */
function responseFields(part: object, field: string): Record<string, unknown> {
  const value: unknown = Reflect.get(part, field);
  return value === undefined ? {} : { [field]: value };
}

function skeinField(
  metadata: Metadata | undefined,
  own: Readonly<Record<string, unknown>>,
): { skein?: { providerMetadata?: Metadata } } {
  const skein = { ...ownField(metadata).skein, ...own };
  return Object.keys(skein).length === 0 ? {} : { skein };
}

/**
 * Tokens, both ways. With us `input` is what was read and not found in the cache, as pi counts it, and the four add up
 * to the total. The SDK's packages have each provider's own way behind them: Anthropic counts cached tokens beside the
 * input, the others within it; Google counts thoughts beside the answer, the others within it.
 */

type CompleteUsage = Required<Usage>;

export function usageOf(
  usage: LanguageModelV4Usage | undefined,
  cost: CompleteUsage["cost"] = noCost,
): CompleteUsage {
  const { total, noCache, cacheRead = 0, cacheWrite = 0 } = usage?.inputTokens ?? ({} as Partial<Counts>);
  const { total: out, text = 0, reasoning = 0 } = usage?.outputTokens ?? ({} as Partial<OutputCounts>);
  // Some servers report more cached tokens than tokens.
  const input = Math.max(0, noCache ?? (total ?? 0) - cacheRead - cacheWrite);
  const output = out ?? text + reasoning;
  const totalTokens = input + output + cacheRead + cacheWrite;
  return { input, output, cacheRead, cacheWrite, totalTokens, cost };
}

type Counts = LanguageModelV4Usage["inputTokens"];
type OutputCounts = LanguageModelV4Usage["outputTokens"];

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted";
type Unified = LanguageModelV4FinishReason["unified"];

/** Some servers stop, or say nothing, where they mean that a tool is to be called. */
function stopReasonOf({ unified }: LanguageModelV4FinishReason, hasCalls: boolean): StopReason {
  switch (unified) {
    case "length":
      return "length";
    case "content-filter":
    case "error":
    case "interrupted":
      return "error";
    default:
      return hasCalls ? "toolUse" : "stop";
  }
}

/** What went wrong, in a sentence; `undefined` where nothing did. */
export function errorMessageOf({ unified, raw }: LanguageModelV4FinishReason): string | undefined {
  const word = raw === undefined ? "" : ` (${raw})`;
  switch (unified) {
    case "content-filter":
      return `The provider stopped the answer for its content${word}.`;
    case "error":
      return `The provider ended the answer with an error${word}.`;
    case "interrupted":
      return `The answer ended before it was complete${word}.`;
    default:
      return undefined;
  }
}

const unifiedOf: Readonly<Record<string, Unified>> = {
  stop: "stop",
  length: "length",
  toolUse: "tool-calls",
  error: "error",
  aborted: "interrupted",
};

/** The reason as the provider told it, where that was kept; `undefined`: it is not known. */
export function finishReasonOf(message: AssistantMessage): LanguageModelV4FinishReason | undefined {
  const { unified, raw } = message.skein?.finishReason ?? {};
  const isKept = typeof unified === "string" && (raw === undefined || typeof raw === "string");
  if (isKept) return { unified: unified as Unified, raw };
  const { stopReason } = message;
  if (stopReason === undefined) return undefined;
  const known = Object.hasOwn(unifiedOf, stopReason) ? unifiedOf[stopReason] : undefined;
  return { unified: known ?? "other", raw: undefined };
}
