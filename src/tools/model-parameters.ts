import type { JsonSchema } from "../core/schema.ts";

type Json = Readonly<Record<string, unknown>>;

/** Parameters as a model gets them: closed objects, choices as one list of words, without keywords of our own. */
export function modelParameters({ keep: _, ...schema }: JsonSchema): Json {
  const { anyOf, items, properties } = schema;
  const words = anyOf?.map((each) => each.const) ?? schema.enum ?? [];
  if (words.length > 0 && words.every((word) => typeof word === "string")) {
    const { anyOf: __, ...rest } = schema;
    return { ...rest, type: "string", enum: words };
  }
  return {
    ...schema,
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(modelParameters) }),
    ...(items === undefined ? {} : { items: modelParameters(items) }),
    ...(properties === undefined
      ? {}
      : { properties: modelProperties(properties), additionalProperties: false }),
  };
}

function modelProperties(properties: Readonly<Record<string, JsonSchema>>): Json {
  return Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, modelParameters(each)]));
}
