import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { MessageDraft } from "../../core/seal.ts";
import { cutText, thrownText } from "../../core/text.ts";
import { joined, ofProvider, optionsField } from "../ai-sdk/metadata.ts";
import type { RequestPlan } from "../contract.ts";

/** Answers that have to fit a JSON Schema: how they are asked for, and how they are read. */

type Schema = Readonly<Record<string, unknown>>;

/** Every model is told, since not every API can be. */
export function withOutputRules(system: string | null, schema: Schema | null): string | null {
  if (schema === null) return system;
  const rules = `Your final answer must be JSON that fits this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
  return system === null || system.trim() === "" ? rules : `${system}\n\n${rules}`;
}

/** Adds the schema for the APIs that take one beside what else is asked of them. */
export function outputOptions(
  options: LanguageModelV4CallOptions,
  plan: RequestPlan,
): LanguageModelV4CallOptions {
  const { outputSchema } = plan;
  if (outputSchema === null || !takesSchema(plan)) return options;
  // OpenAI's strict mode refuses most schemas that were not written for it.
  const loose = ofProvider("openai", { strictJsonSchema: false });
  return {
    ...options,
    ...optionsField(
      joined(options.providerOptions, plan.model.policy.api.startsWith("openai-") ? loose : undefined),
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
 * OpenAI takes a schema beside tools, and so does the rehearsal model. Elsewhere the two exclude each other, or nobody says that they do not; and where
 * Anthropic's package makes a tool of the schema, the call of it is forced, which thinking does not allow.
 */
function takesSchema({ model, tools, thinkingLevel }: RequestPlan): boolean {
  const { api } = model.policy;
  if (api === "openai-responses" || ["openai", "rehearsal"].includes(model.provider)) return true;
  return tools.length === 0 && (api !== "anthropic-messages" || thinkingLevel === "off");
}

const fence = /^\s*```(?:json)?[ \t]*\n([\s\S]*?)\n?[ \t]*```\s*$/i;

/** The value that a text is, checked; or what is wrong with it. */
export async function readOutput(
  text: string,
  schema: Schema,
): Promise<{ readonly output: unknown } | { readonly problem: string }> {
  const bare = fence.exec(text)?.[1] ?? text;
  let output: unknown;
  try {
    output = JSON.parse(bare);
  } catch (error) {
    return { problem: `it is not JSON (${cutText(thrownText(error), 200)})` };
  }
  const { jsonSchemaProblems } = await import("../tools/check-json-schema.ts");
  const problems = jsonSchemaProblems(schema, output);
  return problems.length === 0 ? { output } : { problem: problems.join("; ") };
}

/** Tells the model what is wrong. */
export function correction(problem: string): MessageDraft {
  const content = `Your answer does not fit the JSON Schema: ${problem}. Answer again, with JSON that fits and nothing else.`;
  return { role: "custom", customType: "skein.output", content, display: false };
}
