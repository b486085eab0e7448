import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { Change, TranscriptMessage, TranscriptPolicy } from "../../transcript/contract.ts";
import type { ModelInfo } from "../../transcript/model-table.ts";
import { modelInfo } from "../../transcript/model-table.ts";
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
}

/** Of an answer, unless somebody says otherwise; the providers count thinking in, so room for it comes on top. */
const defaultOutput = 16_384;
const unknownOutput = 4096;

/** The request to a model, the same for the same transcript: nothing in it depends on the clock. */
export function modelRequest(input: ModelRequestInput): ModelRequest {
  const { transcript, policy, system, thinkingLevel = "off" } = input;
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
  const tools = (input.tools ?? []).map(functionTool);
  if (api === "anthropic-messages" && prompt[0]?.role !== "system") markLast(tools);
  const most = info.maxOutput ?? unknownOutput;
  const answer = input.maxOutputTokens ?? Math.min(most, defaultOutput);
  const maxOutputTokens = Math.max(answer, Math.min(answer + thinking.room, most));
  const providerOptions = joined(
    standingOptions(policy, info.thinking === "levels"),
    thinking.providerOptions,
  );
  return {
    options: {
      prompt,
      maxOutputTokens,
      ...(tools.length === 0 ? {} : { tools }),
      ...(thinking.reasoning === undefined ? {} : { reasoning: thinking.reasoning }),
      ...optionsField(providerOptions),
    },
    changes: [...changes, ...thinking.changes],
  };
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
    ...(description === undefined ? {} : { description }),
    inputSchema: inputSchema as LanguageModelV4FunctionTool["inputSchema"],
  };
}

/** Without a system prompt, the last tool ends what never changes. */
function markLast(tools: LanguageModelV4FunctionTool[]): void {
  const last = tools.at(-1);
  if (last !== undefined) Object.assign(last, optionsField(cacheMark));
}
