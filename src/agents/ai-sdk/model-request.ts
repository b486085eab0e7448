import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { Api, Change, TranscriptMessage, TranscriptPolicy } from "../../transcript/contract.ts";
import type { ModelInfo } from "../../transcript/model-table.ts";
import { modelInfo } from "../../transcript/model-table.ts";
import { toWellFormed, toWellFormedJson } from "../../transcript/steps/read-context.ts";
import { ToolNames } from "../../transcript/tool-names.ts";
import { cacheMark } from "./cache-breakpoints.ts";
import { joined, ofProvider, optionsField } from "./metadata.ts";
import { withTextsApart } from "./texts-apart.ts";
import { thinkingOptions } from "./thinking-options.ts";
import { toModelMessages } from "./to-model-messages.ts";
import { withToldFailures } from "./told-failures.ts";

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
