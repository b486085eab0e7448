import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import type { StandardSchema, ToolParameters } from "./define-tool.ts";
import { isStandardSchema } from "./define-tool.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

const noArguments: JsonSchema = { type: "object", properties: {}, additionalProperties: false };

/** A schema as a model is told it: JSON Schema of an object. `what` names it where it cannot be told. */
export async function jsonSchemaOf(what: string, parameters: ToolParameters | null): Promise<JsonSchema> {
  if (parameters === null) return noArguments;
  const made = isStandardSchema(parameters) ? await converted(what, parameters) : parameters;
  // By way of text: what a library hides in its schemas stays behind.
  const { $schema: _, "~standard": __, ...schema } = JSON.parse(JSON.stringify(made));
  if (schema.type === "object") return { ...schema, properties: schema.properties ?? {} };
  throw unusable(what, "it is no schema of an object");
}

async function converted(what: string, schema: StandardSchema): Promise<unknown> {
  try {
    const own: unknown = Reflect.get(schema["~standard"], "jsonSchema");
    if (hasInput(own)) return own.input({ target: "draft-07" });
    const { asSchema } = await import("@ai-sdk/provider-utils");
    return await asSchema(schema as Parameters<typeof asSchema>[0]).jsonSchema;
  } catch (error) {
    throw unusable(what, thrownText(error), error);
  }
}

function hasInput(value: unknown): value is { input(options: { readonly target: string }): unknown } {
  return typeof value === "object" && value !== null && "input" in value && typeof value.input === "function";
}

function unusable(what: string, why: string, cause?: unknown): SkeinError {
  const problem = `${what} cannot be told to a model: ${why}`;
  const advice = "Use an object schema of a library that can be written as JSON Schema, without transforms";
  return new SkeinError("invalid_arguments", { problem, advice }, { cause });
}
