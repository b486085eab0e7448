import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { AssistantMessage } from "../../core/messages.ts";
import type { Api, Change, TranscriptMessage, TranscriptPolicy } from "../../transcript/contract.ts";
import type { Effort, ModelInfo } from "../../transcript/model-table.ts";
import { allEfforts, modelInfo } from "../../transcript/model-table.ts";
import { toWellFormed, toWellFormedJson } from "../../transcript/steps/normalize-context.ts";
import { ToolNames } from "../../transcript/tool-names.ts";
import type { Metadata } from "./metadata.ts";
import { mergeMetadata, ofProvider, optionsField } from "./metadata.ts";
import { cacheMark, describeFailures, separateTexts, toModelMessages } from "./to-model-messages.ts";

/** A tool in a request. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string;
  /** A JSON Schema for an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

export interface ModelRequestInput {
  /** The result of `prepareTranscript`. */
  readonly transcript: readonly TranscriptMessage[];
  readonly policy: Pick<TranscriptPolicy, "provider" | "api" | "model">;
  readonly system?: string | undefined;
  /** If absent, the tools are unknown. This is reported if the history contains calls. */
  readonly tools?: readonly OfferedTool[] | undefined;
  /** Defaults to `off`. */
  readonly thinkingLevel?: string | undefined;
  /** Defaults to the model's limit, up to 16,384. */
  readonly maxOutputTokens?: number | undefined;
  /** Overrides the model table. */
  readonly info?: Partial<ModelInfo> | undefined;
}

export interface ModelRequest {
  readonly options: LanguageModelV4CallOptions;
  /** Settings that could not be applied as configured. */
  readonly changes: readonly Change[];
  /** The names of the tools in the request, used to map tool names in the answer's calls back to the originals. */
  readonly toolNames: ToolNames;
}

/** Excludes thinking. Providers count it as output too, so thinking tokens are added to this limit. */
const defaultOutput = 16_384;
const unknownOutput = 4096;
/** OpenAI Responses rejects a smaller limit. */
const minResponsesOutput = 16;

/** Builds the request to a model. The same transcript always produces the same request. */
export function modelRequest(input: ModelRequestInput): ModelRequest {
  const { transcript, policy, thinkingLevel = "off" } = input;
  const system = toWellFormed(input.system ?? "");
  const { provider, api, model } = policy;
  const info: Partial<ModelInfo> = { ...modelInfo(provider, model, api), ...input.info };
  const changes: Change[] = [];
  const report = (change: Change) => changes.push(change);
  const messages = toModelMessages(transcript, { api, system, cacheBreakpoints: true, report });
  const prompt = describeFailures(separateTexts(messages, api), policy);
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
    const note = `The tool ${name} is offered as ${sent}, because the provider does not accept its name.`;
    if (sent !== name) report({ step: "modelRequest", kind: "name_rewritten", note });
  }
  const tools = offered.map((tool) => functionTool({ ...tool, name: toolNames.sent(tool.name) }));
  if (api === "anthropic-messages" && prompt[0]?.role !== "system") markLast(tools);
  const providerOptions = mergeMetadata(
    standingOptions(policy, info.thinking === "levels"),
    thinking.providerOptions,
  );
  return {
    options: {
      prompt,
      maxOutputTokens: outputLimit(input.maxOutputTokens, thinking.room, info, api),
      ...(tools.length === 0 ? {} : { tools }),
      ...(thinking.reasoning === undefined ? {} : { reasoning: thinking.reasoning }),
      ...optionsField(providerOptions),
    },
    changes: [...changes, ...thinking.changes, ...toolsUnknown(input)],
    toolNames,
  };
}

/** Returns the output limit: at most half the window, because the prompt must fit too. */
function outputLimit(given: number | undefined, room: number, info: Partial<ModelInfo>, api: Api): number {
  const half = Math.floor((info.contextWindow ?? Number.POSITIVE_INFINITY) / 2);
  const most = Math.min(info.maxOutput ?? unknownOutput, half);
  const answer = Math.min(given ?? Math.min(most, defaultOutput), half);
  const least = api === "openai-responses" ? minResponsesOutput : 1;
  return Math.max(least, answer, Math.min(answer + room, most));
}

/** Some providers reject calls in the history if no tools are offered. */
function toolsUnknown({ tools, transcript }: ModelRequestInput): readonly Change[] {
  if (tools !== undefined) return [];
  const hasCalls = transcript.some(
    ({ role, content }) =>
      role === "assistant" && typeof content !== "string" && content.some(({ type }) => type === "toolCall"),
  );
  const note = "The history contains tool calls, but the tools are unknown, so the request offers none.";
  return hasCalls ? [{ step: "modelRequest", kind: "tools_unknown", note }] : [];
}

/** Tells OpenAI not to store responses and to return encrypted reasoning instead. */
function standingOptions({ api }: ModelRequestInput["policy"], thinks: boolean) {
  if (api !== "openai-responses") return undefined;
  return ofProvider("openai", {
    store: false,
    include: thinks ? ["reasoning.encrypted_content"] : undefined,
  });
}

/** Cached, because each request offers the same schema objects, and they never change. */
const schemas = new WeakMap<object, unknown>();

function wellFormedSchema(schema: object): unknown {
  const known = schemas.get(schema) ?? toWellFormedJson(schema);
  schemas.set(schema, known);
  return known;
}

function functionTool({ name, description, inputSchema }: OfferedTool): LanguageModelV4FunctionTool {
  return {
    type: "function",
    name,
    ...(description === undefined || description.trim() === ""
      ? {}
      : { description: toWellFormed(description) }),
    inputSchema: wellFormedSchema(inputSchema) as LanguageModelV4FunctionTool["inputSchema"],
  };
}

/** Marks the last tool for caching. If there is no system prompt, it ends the constant part of the request. */
function markLast(tools: LanguageModelV4FunctionTool[]): void {
  const last = tools.at(-1);
  if (last !== undefined) Object.assign(last, optionsField(cacheMark));
}

type Reasoning = NonNullable<LanguageModelV4CallOptions["reasoning"]>;

export interface ThinkingOptions {
  readonly reasoning?: Reasoning;
  readonly providerOptions?: Metadata | undefined;
  /** Tokens to add to the output limit. Not needed for Anthropic, whose package adds the budget itself. */
  readonly room: number;
  readonly changes: readonly Change[];
}

/** The token budget for each level, or the extra output tokens that the level needs if the API has no budget. */
const budgets = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 24_576, max: 24_576 } as const;
type Level = keyof typeof budgets;

export interface ThinkingRequest {
  readonly api: Api;
  /** `off` or a level. */
  readonly level: string;
  /** From the model table. */
  readonly thinking: ModelInfo["thinking"] | undefined;
  readonly efforts?: ModelInfo["efforts"] | undefined;
  readonly messages: readonly TranscriptMessage[];
}

export function thinkingOptions(request: ThinkingRequest): ThinkingOptions {
  const { api, level, thinking } = request;
  if (level === "off" || level === "none") return turnOff(request);
  if (!isLevel(level)) return notAsked("thinking_level_unknown", `No provider supports the level ${level}.`);
  if (thinking === "none")
    return notAsked("thinking_not_supported", "This model does not think, so the level has no effect.");
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

/** Returns the nearest effort that the model accepts, preferring the lower of two, or `null` if it accepts none. */
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
      ? `This model chooses its own thinking level, so the level ${level} is not sent.`
      : `This model does not support the level ${level}, so the nearest level, ${effort}, is used.`;
  return { effort, changes: [changeOf("thinking_level_changed", note)] };
}

/** Turns thinking off for models that think by default. */
function turnOff({ api, thinking, efforts, messages }: ThinkingRequest): ThinkingOptions {
  const isSilent = thinking === "levels" || (thinking === "budget" && api === "google-generative-ai");
  if (!isSilent) return { room: 0, changes: [] };
  const hasThought = openLoop(messages).some(({ content }) =>
    content.some(({ type }) => type === "thinking"),
  );
  if (api === "anthropic-messages" && hasThought) {
    const note =
      "The turn started with thinking and is still calling tools, so thinking cannot be turned off before the turn ends.";
    return notAsked("thinking_left_on", note);
  }
  const least = efforts?.find((effort) => effort === "none" || effort === "minimal");
  if (efforts !== undefined && least === undefined)
    return notAsked("thinking_left_on", "This model always thinks. Thinking cannot be turned off.");
  // Thinking summaries require an organization that OpenAI has verified.
  const summary = api === "openai-responses" ? { reasoningSummary: null } : undefined;
  return {
    reasoning: least ?? "none",
    providerOptions: ofProvider("openai", summary),
    room: 0,
    changes: [],
  };
}

/** For an unknown model, the provider's package decides whether the model accepts a budget. */
function anthropicBudget({ thinking, messages }: ThinkingRequest, level: Level): ThinkingOptions {
  const [first] = openLoop(messages);
  if (first !== undefined && first.content[0]?.type !== "thinking") {
    const note =
      "The turn started without thinking and is still calling tools, so the provider does not accept thinking before the turn ends.";
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
 * Returns the answers in a turn that is still calling tools. Anthropic treats them as one answer and does not allow a
 * change of thinking mode within it. User text after results is in the same message and does not end the turn.
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
