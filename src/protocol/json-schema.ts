import { Errors } from "typebox/schema";

const mostTold = 5;

/** What of a value does not fit a JSON Schema, each with its path; empty: it fits. */
export function jsonSchemaProblems(
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
): readonly string[] {
  const [fits, errors] = Errors(schema, value);
  if (fits) return [];
  const told = errors.slice(0, mostTold).map(({ instancePath, message }) => {
    return `${instancePath === "" ? "the whole" : instancePath} ${message}`;
  });
  return told.length === 0 ? ["it does not fit the schema"] : told;
}
