import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { MessageDraft } from "../../core/seal.ts";
import { cutText, thrownText } from "../../core/text.ts";
import type { Change, TranscriptMessage } from "../../transcript/contract.ts";
import type { ToolNames } from "../../transcript/tool-names.ts";
import type { RequestPlan } from "../contract.ts";
import { mergeMetadata, ofProvider, optionsField } from "../models/metadata.ts";
import { modelRequest } from "../models/model-request.ts";

export interface ModelCall {
  readonly options: LanguageModelV4CallOptions;
  /** The system prompt as sent. */
  readonly system: string | null;
  /** Settings that could not be applied as configured. */
  readonly changes: readonly Change[];
  /** Maps tool names in the answer's calls back to their original names. */
  readonly toolNames: ToolNames;
}

/** Builds the call to a model. Both runs and the X-ray use it, so the X-ray shows exactly what a run sends. */
export function buildModelCall(plan: RequestPlan, transcript: readonly TranscriptMessage[]): ModelCall {
  const system = withOutputRules(plan.system, plan.outputSchema);
  const { options, changes, toolNames } = modelRequest({
    transcript,
    policy: plan.model.policy,
    system: system ?? undefined,
    tools: plan.tools,
    thinkingLevel: plan.thinkingLevel,
    maxOutputTokens: plan.limits.maxOutputTokens,
    info: plan.model.info,
  });
  return { options: outputOptions(options, plan), system, changes, toolNames };
}

type Schema = Readonly<Record<string, unknown>>;

/** Adds the schema to the system prompt, because not every API has a field for it. */
export function withOutputRules(system: string | null, schema: Schema | null): string | null {
  if (schema === null) return system;
  const rules = `Your final answer must be JSON that matches this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
  return system === null || system.trim() === "" ? rules : `${system}\n\n${rules}`;
}

/** Adds the schema for APIs that accept one together with the other options. */
export function outputOptions(
  options: LanguageModelV4CallOptions,
  plan: RequestPlan,
): LanguageModelV4CallOptions {
  const { outputSchema } = plan;
  if (outputSchema === null || !takesSchema(plan)) return options;
  // OpenAI's strict mode rejects most schemas that were not written for it.
  const loose = ofProvider("openai", { strictJsonSchema: false });
  return {
    ...options,
    ...optionsField(
      mergeMetadata(options.providerOptions, plan.model.policy.api.startsWith("openai-") ? loose : undefined),
    ),
    responseFormat: {
      type: "json",
      schema: outputSchema as NonNullable<
        Extract<LanguageModelV4CallOptions["responseFormat"], { type: "json" }>["schema"]
      >,
    },
  };
}

/**
 * OpenAI and the rehearsal model accept a schema together with tools. Other providers reject the combination or do not
 * document it. Anthropic's package turns the schema into a forced tool call, which is incompatible with thinking.
 */
function takesSchema({ model, tools, thinkingLevel }: RequestPlan): boolean {
  const { api } = model.policy;
  if (api === "openai-responses" || ["openai", "rehearsal"].includes(model.provider)) return true;
  return tools.length === 0 && (api !== "anthropic-messages" || thinkingLevel === "off");
}

const fence = /^\s*```(?:json)?[ \t]*\n([\s\S]*?)\n?[ \t]*```\s*$/i;

/** Parses an answer and checks it against the schema. */
export async function readOutput(
  text: string,
  schema: Schema,
): Promise<{ readonly output: unknown } | { readonly problem: string }> {
  const bare = fence.exec(text)?.[1] ?? text;
  let output: unknown;
  try {
    // Also removes a byte order mark.
    output = JSON.parse(bare.trim());
  } catch (error) {
    return { problem: `it is not valid JSON (${cutText(thrownText(error), 200)})` };
  }
  const { jsonSchemaProblems } = await import("../tools/check-json-schema.ts");
  try {
    const problems = jsonSchemaProblems(schema, output);
    return problems.length === 0 ? { output } : { problem: problems.join("; ") };
  } catch (error) {
    return { problem: `the schema is invalid: ${cutText(thrownText(error), 200)}` };
  }
}

/** Returns a message that explains to the model what to correct. */
export function correction(problem: string): MessageDraft {
  const content = `Your answer does not match the JSON Schema: ${problem}. Answer again with only JSON that matches the schema.`;
  return { role: "custom", customType: "skein.output", content, display: false };
}
