import type { Problem } from "../core/check-schema.ts";
import { findProblems } from "../core/check-schema.ts";
import type { JsonSchema, Schema } from "../core/schema.ts";
import type { FieldProblem } from "./errors.ts";

export type CheckedParams<P> = { readonly params: P } | { readonly problems: readonly FieldProblem[] };

const maxProblems = 20;

/**
 * Returns either the params with the schema's defaults applied or the invalid fields. Values are not converted, and the
 * given object is not changed. The amount of work is bounded, regardless of what a client sends.
 */
export function checkParams<P>(schema: Schema<P>, given: unknown): CheckedParams<P> {
  const params = given ?? {};
  const problems = findProblems(schema, params, maxProblems);
  return problems.length === 0
    ? { params: withDefaults(schema, params) as P }
    : { problems: fieldProblems(problems) };
}

/** Returns the first problem with each field. */
function fieldProblems(problems: readonly Problem[]): readonly FieldProblem[] {
  const byPath = new Map<string, FieldProblem>();
  for (const problem of problems) {
    const path = pathText(problem.path);
    if (!byPath.has(path)) byPath.set(path, { path, problem: problemText(problem) });
  }
  return [...byPath.values()];
}

/** Only top-level params have defaults. */
function withDefaults({ properties = {} }: JsonSchema, given: object): object {
  const params: Record<string, unknown> = { ...given };
  for (const [name, field] of Object.entries(properties)) {
    if (field.default !== undefined && !Object.hasOwn(given, name)) params[name] = field.default;
  }
  return params;
}

/** For example `files[0].name`. */
function pathText(path: Problem["path"]): string {
  return path.reduce<string>((text, part) => {
    if (/^\d+$/.test(String(part))) return `${text}[${part}]`;
    return text === "" ? String(part) : `${text}.${part}`;
  }, "");
}

/** Returns the problem as a phrase that follows the field's name. */
export function problemText({ keyword, schema, alternatives = [] }: Problem): string {
  switch (keyword) {
    case "required":
      return "is required";
    case "unknown":
      return "is not a known field";
    case "type":
      return `must be ${schema.type}`;
    case "const":
      return `must be ${JSON.stringify(schema.const)}`;
    case "enum":
      return oneOfText(schema.enum);
    case "minimum":
      return `must be >= ${schema.minimum}`;
    case "maximum":
      return `must be <= ${schema.maximum}`;
    case "pattern":
      return `must match pattern "${schema.pattern}"`;
    case "minLength":
      return `must not have fewer than ${schema.minLength} characters`;
    case "maxLength":
      return `must not have more than ${schema.maxLength} characters`;
    case "minItems":
      return `must not have fewer than ${schema.minItems} items`;
    case "maxItems":
      return `must not have more than ${schema.maxItems} items`;
    case "uniqueItems":
      return "must not have duplicate items";
    case "maxProperties":
      return `must not have more than ${schema.maxProperties} properties`;
    case "oneOf":
      return `needs exactly one of ${requiredNames(schema.oneOf)?.join(", ")}`;
    default:
      return alternativesText(schema, alternatives);
  }
}

/** Describes the alternatives by their required fields, their allowed values, or the type of a nullable value. */
function alternativesText({ anyOf }: JsonSchema, problems: readonly Problem[]): string {
  const names = requiredNames(anyOf);
  if (names !== null) return `needs ${names.join(" or ")}`;
  const values = problems.flatMap(({ keyword, schema }) =>
    keyword === "const" ? [schema.const] : keyword === "enum" ? (schema.enum ?? []) : [],
  );
  if (values.length > 0) return oneOfText(values);
  const isNull = ({ schema }: Problem) => schema.type === "null";
  const [first, ...others] = problems.filter((each) => !isNull(each));
  return first !== undefined && others.length === 0 && problems.some(isNull)
    ? `${problemText(first)}, or null`
    : "does not match any of the allowed formats";
}

/** Returns the required field names if the alternatives do nothing but require fields, otherwise `null`. */
function requiredNames(alternatives: readonly JsonSchema[] = []): readonly string[] | null {
  const names = alternatives.flatMap(({ required = [] }) => required);
  return alternatives.every(({ type, required }) => type === undefined && required !== undefined)
    ? names
    : null;
}

function oneOfText(values: readonly unknown[] = []): string {
  return `must be one of ${values.map((each) => JSON.stringify(each)).join(", ")}`;
}
