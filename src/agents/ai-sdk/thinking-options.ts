import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { AssistantMessage } from "../../core/messages.ts";
import type { Api, Change, TranscriptMessage } from "../../transcript/contract.ts";
import type { Effort, ModelInfo } from "../../transcript/model-table.ts";
import { allEfforts } from "../../transcript/model-table.ts";
import type { Metadata } from "./metadata.ts";
import { ofProvider } from "./metadata.ts";

/** How much a model is to think, in each provider's words. */

type Reasoning = NonNullable<LanguageModelV4CallOptions["reasoning"]>;

export interface ThinkingOptions {
  readonly reasoning?: Reasoning;
  readonly providerOptions?: Metadata | undefined;
  /** Tokens that the limit of the answer must leave for it; Anthropic's package adds a budget by itself. */
  readonly room: number;
  readonly changes: readonly Change[];
}

/** Tokens to think with, where they are told beforehand, and how much room it takes where they are not. */
const budgets = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 24_576, max: 24_576 } as const;
type Level = keyof typeof budgets;

export interface ThinkingRequest {
  readonly api: Api;
  /** As the session has it: `off`, or a level. */
  readonly level: string;
  /** What the table knows of the model. */
  readonly thinking: ModelInfo["thinking"] | undefined;
  readonly efforts?: ModelInfo["efforts"] | undefined;
  readonly messages: readonly TranscriptMessage[];
}

export function thinkingOptions(request: ThinkingRequest): ThinkingOptions {
  const { api, level, thinking } = request;
  if (level === "off" || level === "none") return switchedOff(request);
  if (!isLevel(level)) return notAsked("thinking_level_unknown", `No provider knows the level ${level}.`);
  if (thinking === "none")
    return notAsked("thinking_not_supported", "This model does not think; the level has no effect.");
  if (api === "anthropic-messages" && thinking !== "levels") return anthropicBudget(request, level);
  const { effort, changes } = effortFor(level, request.efforts);
  if (effort === null) return { room: budgets[level], changes };
  const budget = thinking === "budget" ? { thinkingBudget: budgets[level] } : {};
  const fields: Partial<Record<Api, Metadata | undefined>> = {
    "openai-responses": ofProvider("openai", { reasoningSummary: "auto" }),
    "google-generative-ai": ofProvider("google", { thinkingConfig: { includeThoughts: true, ...budget } }),
  };
  return { reasoning: effort, providerOptions: fields[api], room: budgets[effort], changes };
}

/** The nearest effort that the model takes; `null`: it takes none. Of two as near, the lesser. */
function effortFor(
  level: Level,
  efforts: readonly Effort[] | undefined,
): { readonly effort: Level | null; readonly changes: readonly Change[] } {
  if (efforts === undefined || efforts.includes(level)) return { effort: level, changes: [] };
  const place = allEfforts.indexOf(level);
  const distance = (effort: Effort) => Math.abs(allEfforts.indexOf(effort) - place);
  const [effort = null] = efforts
    .filter((each) => each !== "none")
    .toSorted((a, b) => distance(a) - distance(b));
  const note =
    effort === null
      ? `This model thinks by its own measure; the level ${level} is not sent.`
      : `This model does not take the level ${level}; the nearest that it takes is ${effort}.`;
  return { effort, changes: [changeOf("thinking_level_changed", note)] };
}

/** A model that thinks unless it is told not to is told so; what is not known to think is left alone. */
function switchedOff({ api, thinking, efforts, messages }: ThinkingRequest): ThinkingOptions {
  const isSilent = thinking === "levels" || (thinking === "budget" && api === "google-generative-ai");
  if (!isSilent) return { room: 0, changes: [] };
  const hasThought = openLoop(messages).some(({ content }) =>
    content.some(({ type }) => type === "thinking"),
  );
  if (api === "anthropic-messages" && hasThought) {
    const note =
      "The turn began with thinking and its tool calls go on; until it is over, it cannot be switched off.";
    return notAsked("thinking_left_on", note);
  }
  const least = efforts?.find((effort) => effort === "none" || effort === "minimal");
  if (efforts !== undefined && least === undefined)
    return notAsked("thinking_left_on", "This model always thinks; it cannot be switched off.");
  // A summary of thinking that nobody asked for needs an organisation that OpenAI has verified.
  const summary = api === "openai-responses" ? { reasoningSummary: null } : undefined;
  return {
    reasoning: least ?? "none",
    providerOptions: ofProvider("openai", summary),
    room: 0,
    changes: [],
  };
}

/** Whether a model that nobody knows takes a budget, its package decides. */
function anthropicBudget({ thinking, messages }: ThinkingRequest, level: Level): ThinkingOptions {
  const [first] = openLoop(messages);
  if (first !== undefined && first.content[0]?.type !== "thinking") {
    const note =
      "The turn began without thinking and its tool calls go on; until it is over, the provider takes none.";
    return notAsked("thinking_switched_off", note);
  }
  if (thinking === undefined) return { reasoning: level, room: budgets[level], changes: [] };
  const budget = { type: "enabled", budgetTokens: budgets[level] };
  return { providerOptions: ofProvider("anthropic", { thinking: budget }), room: 0, changes: [] };
}

function notAsked(kind: string, note: string): ThinkingOptions {
  return { room: 0, changes: [changeOf(kind, note)] };
}

function changeOf(kind: string, note: string): Change {
  return { step: "modelRequest", kind, note };
}

function isLevel(level: string): level is Level {
  return Object.hasOwn(budgets, level);
}

/**
 * The answers of a turn whose tool calls go on: to Anthropic they are one, in one mode of thinking. What a user says
 * behind results is in one message with them, and does not end the turn.
 */
function openLoop(messages: readonly TranscriptMessage[]): readonly AssistantMessage[] {
  const loop: AssistantMessage[] = [];
  let hasResults = false;
  for (const message of messages.toReversed()) {
    if (message.role === "toolResult") hasResults = true;
    if (message.role !== "assistant") continue;
    if (!hasResults) break;
    loop.push(message);
    hasResults = false;
  }
  return loop.toReversed();
}
