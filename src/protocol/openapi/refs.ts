import type * as s from "../../core/schema.ts";

/** Puts references in the place of schemas that have a name. What is the same is the same by its JSON. */
export function schemaRefs(named: Readonly<Record<string, s.Schema>>) {
  const names = new Map(Object.entries(named).map(([name, schema]) => [JSON.stringify(schema), name]));
  const replaced = (value: unknown, isTop: boolean): unknown => {
    if (Array.isArray(value)) return value.map((each) => replaced(each, false));
    if (typeof value !== "object" || value === null) return value;
    const name = isTop ? undefined : names.get(JSON.stringify(value));
    if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaced(each, false)]));
  };
  return {
    withRefs: (schema: s.Schema): unknown => replaced(schema, false),
    components: () =>
      Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, replaced(schema, true)])),
  };
}
