import { stringifyJson } from "../core/json.ts";
import { blocksOf } from "./blocks-of.ts";
import type { ContextMessage, TranscriptMessage } from "./contract.ts";
import { estimateTokens } from "./estimate-tokens.ts";
import { textTokens } from "./text-tokens.ts";
import { visibleMessage } from "./visible.ts";

/** About what each part of a request comes to, in tokens. */
export interface TokensByPart {
  readonly system: number;
  readonly tools: number;
  /** Of what a compaction or a branch left; absent where there is none. */
  readonly summary?: number;
  readonly user: number;
  /** What the model said; its thinking and its calls are apart. */
  readonly assistant: number;
  readonly thinking: number;
  readonly toolCalls: number;
  readonly toolResults: number;
  readonly images: number;
  readonly total: number;
  /** The model's context window; absent where it is not known. */
  readonly window?: number;
}

export interface CountedRequest {
  readonly messages: readonly TranscriptMessage[];
  /** The context that they come from, for what in them is a summary. */
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
    for (const block of blocksOf<Block>(message.content))
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

/** What a message costs that says nothing, and a block beyond that. */
const emptyMessage = estimateTokens([{ role: "user", content: [] }]);

function tokensOf(block: Block): number {
  return estimateTokens([{ role: "assistant", content: [block] } as TranscriptMessage]) - emptyMessage;
}

/** Summaries as they stand in a request. */
function summaryTexts(context: readonly ContextMessage[]): ReadonlySet<string> {
  const texts = context
    .filter(({ role }) => role === "compactionSummary" || role === "branchSummary")
    .map((message) => visibleMessage(message)?.content)
    .filter((content) => typeof content === "string");
  return new Set(texts.map((text) => text.toWellFormed()));
}
