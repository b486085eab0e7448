import type { ValueSchema } from "./read-value.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** Parameters as a model is told them: plain JSON, closed, choices as one list of words, without keywords of ours. */
export function toldSchema(parameters: JsonSchema): JsonSchema {
  return told(JSON.parse(JSON.stringify(parameters)) as ValueSchema);
}

function told({ keep: _, ...schema }: ValueSchema): JsonSchema {
  const { anyOf, items, properties } = schema;
  const words = anyOf?.map((each) => each.const) ?? schema.enum ?? [];
  if (words.length > 0 && words.every((word) => typeof word === "string")) {
    const { anyOf: __, ...rest } = schema;
    return { ...rest, type: "string", enum: words };
  }
  return {
    ...schema,
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(told) }),
    ...(items === undefined ? {} : { items: told(items) }),
    ...(properties === undefined
      ? {}
      : { properties: toldProperties(properties), additionalProperties: false }),
  };
}

function toldProperties(properties: Readonly<Record<string, ValueSchema>>): JsonSchema {
  return Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, told(each)]));
}
