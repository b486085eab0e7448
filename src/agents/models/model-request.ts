import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { AssistantMessage } from "../../core/messages.ts";
import type { Api, Change, TranscriptMessage, TranscriptPolicy } from "../../transcript/contract.ts";
import type { Effort, ModelInfo } from "../../transcript/model-table.ts";
import { allEfforts, modelInfo } from "../../transcript/model-table.ts";
import { toWellFormed, toWellFormedJson } from "../../transcript/steps/read-context.ts";
import { ToolNames } from "../../transcript/tool-names.ts";
import type { Metadata } from "./metadata.ts";
import { joined, ofProvider, optionsField } from "./metadata.ts";
import { cacheMark, toModelMessages, withTextsApart, withToldFailures } from "./to-model-messages.ts";

/** A tool that the model may call. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string;
  /** A JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

export interface ModelRequestInput {
  /** As `prepareTranscript` gave it. */
  readonly transcript: readonly TranscriptMessage[];
  readonly policy: Pick<TranscriptPolicy, "provider" | "api" | "model">;
  readonly system?: string | undefined;
  /** Left out: not known, which is told where the history has calls. */
  readonly tools?: readonly OfferedTool[] | undefined;
  /** Left out: `off`. */
  readonly thinkingLevel?: string | undefined;
  /** Left out: what the model can, within bounds. */
  readonly maxOutputTokens?: number | undefined;
  /** What is known of the model beside the table, and goes before it. */
  readonly info?: Partial<ModelInfo> | undefined;
}

export interface ModelRequest {
  readonly options: LanguageModelV4CallOptions;
  /** What could not be asked for as it was meant. */
  readonly changes: readonly Change[];
  /** The names that the tools have in the request; calls of the answer are mapped back by them. */
  readonly toolNames: ToolNames;
}

/** Of an answer, unless somebody says otherwise; the providers count thinking in, so room for it comes on top. */
const defaultOutput = 16_384;
const unknownOutput = 4096;
/** Responses refuse a smaller limit. */
const fewestOfResponses = 16;

/** The request to a model, the same for the same transcript: nothing in it depends on the clock. */
export function modelRequest(input: ModelRequestInput): ModelRequest {
  const { transcript, policy, thinkingLevel = "off" } = input;
  const system = toWellFormed(input.system ?? "");
  const { provider, api, model } = policy;
  const info: Partial<ModelInfo> = { ...modelInfo(provider, model, api), ...input.info };
  const changes: Change[] = [];
  const report = (change: Change) => changes.push(change);
  const messages = toModelMessages(transcript, { api, system, cacheBreakpoints: true, report });
  const prompt = withToldFailures(withTextsApart(messages, api), policy);
  const thinking = thinkingOptions({
    api,
    level: thinkingLevel,
    thinking: info.thinking,
    efforts: info.efforts,
    messages: transcript,
  });
  const offered = input.tools ?? [];
  const toolNames = new ToolNames(
    offered.map(({ name }) => name),
    api,
  );
  for (const { name } of offered) {
    const sent = toolNames.sent(name);
    const note = `The tool ${name} is offered as ${sent}: the provider does not take its name.`;
    if (sent !== name) report({ step: "modelRequest", kind: "name_rewritten", note });
  }
  const tools = offered.map((tool) => functionTool({ ...tool, name: toolNames.sent(tool.name) }));
  if (api === "anthropic-messages" && prompt[0]?.role !== "system") markLast(tools);
  const providerOptions = joined(
    standingOptions(policy, info.thinking === "levels"),
    thinking.providerOptions,
  );
  return {
    options: {
      prompt,
      maxOutputTokens: limitOf(input.maxOutputTokens, thinking.room, info, api),
      ...(tools.length === 0 ? {} : { tools }),
      ...(thinking.reasoning === undefined ? {} : { reasoning: thinking.reasoning }),
      ...optionsField(providerOptions),
    },
    changes: [...changes, ...thinking.changes, ...toolsUnknown(input)],
    toolNames,
  };
}

/** Of the answer. At most half the window, however large an answer may be: the prompt has to go into it too. */
function limitOf(given: number | undefined, room: number, info: Partial<ModelInfo>, api: Api): number {
  const half = Math.floor((info.contextWindow ?? Number.POSITIVE_INFINITY) / 2);
  const most = Math.min(info.maxOutput ?? unknownOutput, half);
  const answer = Math.min(given ?? Math.min(most, defaultOutput), half);
  const least = api === "openai-responses" ? fewestOfResponses : 1;
  return Math.max(least, answer, Math.min(answer + room, most));
}

/** Some providers refuse calls where no tools are offered; those of a lone file nobody knows. */
function toolsUnknown({ tools, transcript }: ModelRequestInput): readonly Change[] {
  if (tools !== undefined) return [];
  const hasCalls = transcript.some(
    ({ role, content }) =>
      role === "assistant" && typeof content !== "string" && content.some(({ type }) => type === "toolCall"),
  );
  const note = "The history has calls, and the tools are not known: the request offers none.";
  return hasCalls ? [{ step: "modelRequest", kind: "tools_unknown", note }] : [];
}

/** Responses are not to be stored there: the conversation is ours, and its reasoning comes back to us sealed. */
function standingOptions({ api }: ModelRequestInput["policy"], thinks: boolean) {
  if (api !== "openai-responses") return undefined;
  return ofProvider("openai", {
    store: false,
    include: thinks ? ["reasoning.encrypted_content"] : undefined,
  });
}

function functionTool({ name, description, inputSchema }: OfferedTool): LanguageModelV4FunctionTool {
  return {
    type: "function",
    name,
    ...(description === undefined || description.trim() === ""
      ? {}
      : { description: toWellFormed(description) }),
    inputSchema: toWellFormedJson(inputSchema) as LanguageModelV4FunctionTool["inputSchema"],
  };
}

/** Without a system prompt, the last tool ends what never changes. */
function markLast(tools: LanguageModelV4FunctionTool[]): void {
  const last = tools.at(-1);
  if (last !== undefined) Object.assign(last, optionsField(cacheMark));
}

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
