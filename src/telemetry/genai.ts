import { readKey } from "../core/keys.ts";
import type { Usage } from "../core/messages.ts";
import { cutText } from "../core/text.ts";

/**
 * The attributes on spans, following OpenTelemetry's GenAI conventions. `docs/observability.md` lists them, and a test
 * compares the two.
 */
export const attributes = {
  operation: "gen_ai.operation.name",
  agentId: "gen_ai.agent.id",
  agentName: "gen_ai.agent.name",
  conversation: "gen_ai.conversation.id",
  provider: "gen_ai.provider.name",
  model: "gen_ai.request.model",
  finishReasons: "gen_ai.response.finish_reasons",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheRead: "gen_ai.usage.cache_read.input_tokens",
  cacheCreation: "gen_ai.usage.cache_creation.input_tokens",
  toolName: "gen_ai.tool.name",
  toolCallId: "gen_ai.tool.call.id",
  toolType: "gen_ai.tool.type",
  errorType: "error.type",
  sessionKey: "skein.session.key",
  runId: "skein.run.id",
  userId: "skein.user.id",
  state: "skein.run.state",
  lane: "skein.run.lane",
  attempt: "skein.run.attempt",
  queueMs: "skein.run.queue_ms",
  recovered: "skein.run.recovered",
  step: "skein.step",
  unfinished: "skein.unfinished",
} as const;

export type AttributeValue = string | number | boolean | string[];
export type AttributeSet = Record<string, AttributeValue>;

const providerNames: ReadonlyMap<string, string> = new Map([
  ["google", "gcp.gemini"],
  ["google-vertex", "gcp.vertex_ai"],
  ["mistral", "mistral_ai"],
  ["amazon-bedrock", "aws.bedrock"],
  ["azure", "azure.ai.openai"],
  ["xai", "x_ai"],
]);

const finishReasons: ReadonlyMap<string, string> = new Map([
  ["toolUse", "tool_call"],
  ["tool-calls", "tool_call"],
  ["content-filter", "content_filter"],
]);

const maxChars = 256;

/** Truncates text for a span name or an attribute. */
export function shorten(text: string): string {
  return cutText(text.toWellFormed(), maxChars);
}

export function modelAttributes(asked: { readonly provider: string; readonly model: string }): AttributeSet {
  return {
    [attributes.provider]: shorten(providerNames.get(asked.provider) ?? asked.provider),
    [attributes.model]: shorten(asked.model),
  };
}

export function finishAttributes(reason: string | undefined): AttributeSet {
  return reason === undefined
    ? {}
    : { [attributes.finishReasons]: [shorten(finishReasons.get(reason) ?? reason)] };
}

/** The conventions count cached tokens as part of the input. */
export function usageAttributes(usage: Usage | undefined): AttributeSet {
  if (usage === undefined) return {};
  const [read, written] = [amount(usage.cacheRead), amount(usage.cacheWrite)];
  return {
    [attributes.inputTokens]: amount(usage.input) + read + written,
    [attributes.outputTokens]: amount(usage.output),
    ...(read > 0 && { [attributes.cacheRead]: read }),
    ...(written > 0 && { [attributes.cacheCreation]: written }),
  };
}

/** Returns zero for invalid values because usage comes from providers. */
export function amount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

/** Returns `null` for a key without an agent. */
export function agentOfKey(sessionKey: string): string | null {
  const key = readKey(sessionKey);
  return "agentId" in key && typeof key.agentId === "string" ? key.agentId : null;
}
