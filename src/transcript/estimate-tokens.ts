import { readImageHeader } from "../core/image-header.ts";
import { stringifyJson } from "../core/json.ts";
import type { AssistantBlock, AssistantMessage, Content } from "../core/messages.ts";
import type { ContextMessage, TranscriptMessage } from "./contract.ts";
import { isImageBlob, toBlocks } from "./derive.ts";
import { modelMessage } from "./model-message.ts";
import { maxImageSide } from "./policy.ts";
import { textTokens } from "./text-tokens.ts";
import type { Vocabulary } from "./tokenizer-states.ts";

/** Estimates the tokens in messages that no provider has counted. */

const tokensPerMessage = 4;
/** An image whose size is unknown is assumed to have 1,200 × 750 pixels. */
const tokensPerImage = 1200;
const pixelsPerToken = 750;
/** In base64 characters. In a JPEG, the dimensions come after the thumbnail and the color profile. */
const headerCharacters = 128 * 1024;

export function estimateTokens(messages: readonly TranscriptMessage[], vocabulary?: Vocabulary): number {
  let tokens = 0;
  for (const { content } of messages) tokens += tokensPerMessage + contentTokens(content, vocabulary);
  return tokens;
}

function contentTokens(
  content: Content | readonly AssistantBlock[],
  vocabulary: Vocabulary | undefined,
): number {
  if (typeof content === "string") return textTokens(content, vocabulary);
  let tokens = 0;
  for (const block of content) tokens += blockTokens(block, vocabulary);
  return tokens;
}

function blockTokens(
  block: AssistantBlock | Exclude<Content, string>[number],
  vocabulary: Vocabulary | undefined,
): number {
  switch (block.type) {
    case "text":
      // The image is loaded before the request is sent.
      return isImageBlob(block) ? tokensPerImage : textTokens(block.text, vocabulary);
    case "thinking":
      return textTokens(block.thinking, vocabulary);
    case "toolCall":
      return textTokens(`${block.name}${stringifyJson(block.arguments ?? {})}`, vocabulary);
    case "image":
      return imageTokens(block.data);
    default:
      return 0;
  }
}

function imageTokens(data: string): number {
  const header = readImageHeader(Buffer.from(data.slice(0, headerCharacters), "base64"));
  if (header === null) return tokensPerImage;
  const { width, height } = header;
  const scale = Math.min(1, maxImageSide / Math.max(width, height));
  return Math.ceil((width * scale * (height * scale)) / pixelsPerToken);
}

interface ContextTokens {
  readonly tokens: number;
  /** The estimate for the whole request. It is stored with the answer, next to the provider's count. */
  readonly estimated: number;
}

interface ContextTokensOptions {
  /** The model that the request is for. A count by another model is not used. */
  readonly model?: { readonly provider: string; readonly model: string };
  /** The estimate for the system prompt and the tools, which a provider's count includes. */
  readonly standing?: number;
  /**
   * The time of the last compaction in milliseconds. Earlier counts include messages that are no longer in the context.
   */
  readonly compactedAt?: number;
}

/**
 * Returns the size of a request. If the provider has counted an earlier one, this is its count, plus the estimate for
 * everything added since. A request that has become smaller is scaled down, because an estimate can be larger than the
 * provider's count.
 */
export function contextTokens(
  messages: readonly TranscriptMessage[],
  { model, standing = 0, compactedAt = Number.NEGATIVE_INFINITY }: ContextTokensOptions = {},
): ContextTokens {
  const estimated = standing + estimateTokens(messages);
  const before = findLastMeasure(messages, model, compactedAt);
  if (before === null) return { tokens: estimated, estimated };
  const added = estimated - before.estimated;
  const tokens =
    added >= 0 ? before.counted + added : Math.ceil((before.counted * estimated) / before.estimated);
  return { tokens, estimated };
}

/** One request's size, as counted by its provider and as estimated when it was sent. */
interface Measure {
  readonly counted: number;
  readonly estimated: number;
}

/** Returns the measure of the last counted request, or `null`. The search ends at a message older than the compaction. */
function findLastMeasure(
  messages: readonly TranscriptMessage[],
  model: ContextTokensOptions["model"],
  compactedAt: number,
): Measure | null {
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index] as TranscriptMessage;
    const time = message.timestamp ?? Number.NEGATIVE_INFINITY;
    if (message.timestamp !== undefined && time <= compactedAt) return null;
    const isKnown = time > compactedAt || compactedAt === Number.NEGATIVE_INFINITY;
    const measure = isKnown && message.role === "assistant" ? measureOf(message, model) : null;
    if (measure !== null) return measure;
  }
  return null;
}

function measureOf(message: AssistantMessage, model: ContextTokensOptions["model"]): Measure | null {
  const isOther =
    model !== undefined && (message.provider !== model.provider || message.model !== model.model);
  if (isOther) return null;
  const counted = countedTokens(message);
  const estimated = toAmount(message.skein?.requestTokens);
  return counted > 0 && estimated > 0 ? { counted, estimated } : null;
}

/**
 * Returns the tokens in the request that led to an answer, or 0 if there is no valid count. The count in an aborted
 * answer is unreliable, and a count that covers only the answer does not include the request.
 */
function countedTokens({ stopReason, usage }: AssistantMessage): number {
  if (usage === undefined || stopReason === "error" || stopReason === "aborted") return 0;
  const seen = toAmount(usage.input) + toAmount(usage.cacheRead) + toAmount(usage.cacheWrite);
  return seen > 0 ? seen : Math.max(0, toAmount(usage.totalTokens) - toAmount(usage.output));
}

function toAmount(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) && value > 0 ? value : 0;
}

/** Estimated tokens for each part of a request. */
export interface TokensByPart {
  readonly system: number;
  readonly tools: number;
  /** Summaries from compactions and branches. Absent if there are none. */
  readonly summary?: number;
  readonly user: number;
  /** The model's text, without thinking and calls. */
  readonly assistant: number;
  readonly thinking: number;
  readonly toolCalls: number;
  readonly toolResults: number;
  readonly images: number;
  readonly total: number;
  /** The model's context window. Absent if unknown. */
  readonly window?: number;
}

interface CountedRequest {
  readonly messages: readonly TranscriptMessage[];
  /** The context that the messages were built from, to recognize summaries. */
  readonly context: readonly ContextMessage[];
  readonly system?: string | undefined;
  readonly tools?: readonly unknown[] | undefined;
  readonly window?: number | undefined;
}

type Part = "summary" | "user" | "assistant" | "thinking" | "toolCalls" | "toolResults" | "images";

const partOfRole = { user: "user", assistant: "assistant", toolResult: "toolResults" } as const;

export function tokensByPart({ messages, context, system, tools, window }: CountedRequest): TokensByPart {
  const summaries = summaryTexts(context);
  const parts: Record<Part, number> = {
    summary: 0,
    user: 0,
    assistant: 0,
    thinking: 0,
    toolCalls: 0,
    toolResults: 0,
    images: 0,
  };
  for (const message of messages) {
    const own = partOfRole[message.role];
    parts[own] += emptyMessage;
    for (const block of toBlocks<Block>(message.content))
      parts[partOf(block, own, summaries)] += tokensOf(block);
  }
  const { summary, ...others } = parts;
  const counted = {
    system: textTokens(system ?? ""),
    tools: tools === undefined || tools.length === 0 ? 0 : textTokens(stringifyJson(tools)),
    ...(summaries.size === 0 ? {} : { summary }),
    ...others,
  };
  const total = Object.values(counted).reduce((sum, each) => sum + each, 0);
  return { ...counted, total, ...(window === undefined ? {} : { window }) };
}

type Block = Exclude<TranscriptMessage["content"], string>[number];

function partOf(block: Block, own: Part, summaries: ReadonlySet<string>): Part {
  switch (block.type) {
    case "thinking":
      return "thinking";
    case "toolCall":
      return "toolCalls";
    case "image":
      return "images";
    default:
      return own === "user" && summaries.has(block.text) ? "summary" : own;
  }
}

/** The cost of an empty message. A block's cost is its increase over this value. */
const emptyMessage = estimateTokens([{ role: "user", content: [] }]);

/** Returns the part of the total that belongs to one message. */
export function messageTokens({ content }: TranscriptMessage): number {
  return toBlocks<Block>(content).reduce((tokens, block) => tokens + tokensOf(block), emptyMessage);
}

function tokensOf(block: Block): number {
  return estimateTokens([{ role: "assistant", content: [block] } as TranscriptMessage]) - emptyMessage;
}

/** Returns the summaries as they appear in the request. */
function summaryTexts(context: readonly ContextMessage[]): ReadonlySet<string> {
  const texts = context
    .filter(({ role }) => role === "compactionSummary" || role === "branchSummary")
    .map((message) => modelMessage(message)?.content)
    .filter((content) => typeof content === "string");
  return new Set(texts.map((text) => text.toWellFormed()));
}
