import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4ResponseMetadata,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { isRecord } from "../../core/is-record.ts";
import type { AssistantBlock, AssistantMessage, ToolCallBlock, Usage } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { Api } from "../../transcript/contract.ts";
import { apiOf } from "../../transcript/policy.ts";
import type { Metadata, Report } from "./metadata.ts";
import { ownField } from "./metadata.ts";
import type { AssistantPart, ResponseOnlyPart } from "./parts.ts";
import { partBlock } from "./parts.ts";
import { continuesItem, signatureIn, thinkingOfParts, tryParseJson } from "./signatures.ts";

/** The fields of a response other than its content. */
export interface ResponseFacts {
  readonly finishReason: LanguageModelV4FinishReason;
  readonly usage?: LanguageModelV4Usage | undefined;
  readonly providerMetadata?: Metadata | undefined;
  readonly response?: LanguageModelV4ResponseMetadata | undefined;
}

/** The model that answered and the time of the answer. */
interface ResponseAbout {
  readonly provider: string;
  readonly api: string;
  readonly model: string;
  readonly timestamp: number;
  /** Absent if unknown. */
  readonly cost?: Required<NonNullable<Usage["cost"]>>;
}

export type AnswerDraft = Extract<MessageDraft, { role: "assistant" }>;

/** Converts a model's answer to a session message. */
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

/** Converts a response part to a prompt part, which is the form in which it is stored. */
function promptPart(part: LanguageModelV4Content, report: Report): AssistantPart[] {
  const { providerMetadata, ...fields } = part;
  const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
  if (part.type === "tool-result" && part.preliminary === true) {
    const note = `A preliminary result from ${part.toolName} was dropped because the final result replaces it.`;
    report({ step: "assistantMessageOf", kind: "preliminary_result", note });
    return [];
  }
  const same = { ...fields, ...options } as unknown as AssistantPart;
  switch (part.type) {
    case "tool-call":
      return part.providerExecuted === true
        ? [{ ...same, input: tryParseJson(part.input) ?? part.input } as AssistantPart]
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

type Part = AssistantPart | (ResponseOnlyPart & { readonly providerOptions?: Metadata });
type ReasoningPart = Extract<AssistantPart, { type: "reasoning" }>;
type TextPart = Extract<AssistantPart, { type: "text" }>;
type CallPart = Extract<AssistantPart, { type: "tool-call" }>;

/** Converts an answer's parts to blocks. A part without a matching block is kept unchanged. */
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

/** Returns the reasoning part at `from`. With OpenAI Responses, returns all parts of its reasoning item. */
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

/** Returns arguments as an object, parsing JSON if necessary. Returns `null` if they are not an object. */
function inputOf(input: unknown): Record<string, unknown> | null {
  if (isRecord(input)) return input;
  if (input === undefined || (typeof input === "string" && input.trim() === "")) return {};
  const value = typeof input === "string" ? tryParseJson(input) : undefined;
  return isRecord(value) ? value : null;
}

/** Returns the fields that occur only in responses. */
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

type CompleteUsage = Required<Usage>;

/** Like pi, counts cached tokens separately from `input`. The four counts add up to the total. */
export function usageOf(
  usage: LanguageModelV4Usage | undefined,
  cost: CompleteUsage["cost"] = noCost,
): CompleteUsage {
  const { total, noCache, cacheRead = 0, cacheWrite = 0 } = usage?.inputTokens ?? ({} as Partial<Counts>);
  const { total: out, text = 0, reasoning = 0 } = usage?.outputTokens ?? ({} as Partial<OutputCounts>);
  // Some servers report more cached tokens than total tokens.
  const input = Math.max(0, noCache ?? (total ?? 0) - cacheRead - cacheWrite);
  const output = out ?? text + reasoning;
  const totalTokens = input + output + cacheRead + cacheWrite;
  return { input, output, cacheRead, cacheWrite, totalTokens, cost };
}

type Counts = LanguageModelV4Usage["inputTokens"];
type OutputCounts = LanguageModelV4Usage["outputTokens"];

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted";

/** Corrects the finish reason for servers that report `stop`, or nothing, when a tool should be called. */
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

/** Returns a sentence about an abnormal finish, or `undefined` if the answer finished normally. */
export function errorMessageOf({ unified, raw }: LanguageModelV4FinishReason): string | undefined {
  const word = raw === undefined ? "" : ` (${raw})`;
  switch (unified) {
    case "content-filter":
      return `The provider stopped the answer because of its content${word}.`;
    case "error":
      return `The provider ended the answer with an error${word}.`;
    case "interrupted":
      return `The answer ended before it was complete${word}.`;
    default:
      return undefined;
  }
}
