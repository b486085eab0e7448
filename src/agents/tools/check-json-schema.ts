import type { TSchema } from "typebox";
import type { TLocalizedValidationError } from "typebox/error";
import { Compile, Errors } from "typebox/schema";
import { Settings } from "typebox/system";
import { Value } from "typebox/value";
import { thrownText } from "../../core/text.ts";

/**
 * Checks values against schemas from outside Skein, such as those of users' tools and requested outputs. This is the
 * only file that loads TypeBox.
 */

/** A problem with a value. */
export interface Mistake {
  readonly path: readonly PropertyKey[];
  readonly expected: string;
}

/** The number of errors after which TypeBox stops, including secondary errors. */
const mostErrors = 128;

/** An object with more unknown properties than this is rejected without further checks. */
const mostUnknown = 20;
/**
 * To describe an error, TypeBox receives at most `mostShown` items per list, `mostShown` unknown properties per object,
 * and `mostParts` parts in total.
 */
const mostShown = 256;
const mostParts = 10_000;
/** Deeper than any realistic schema. */
const deepest = 64;

/** Returns a copy of the value with the schema's defaults, or the problems with the value. Nothing is coerced. */
export function checkValue(
  schema: object,
  value: unknown,
): { readonly value: unknown } | { readonly mistakes: readonly Mistake[] } {
  const crowd = unknownCrowd(schema, value);
  if (crowd.length > 0) return { mistakes: crowd };
  const filled = Value.Default(schema as TSchema, structuredClone(value));
  if (Value.Check(schema as TSchema, filled)) return { value: filled };
  return { mistakes: explainMistakes(schema, filled) };
}

/** Returns why no value can be checked against a schema, such as an invalid pattern, or `null` if values can be. */
export function schemaProblem(schema: Readonly<Record<string, unknown>>): string | null {
  try {
    Compile(schema);
    return null;
  } catch (error) {
    return thrownText(error);
  }
}

const maxProblems = 5;

/** Returns the problems with a value, each with its path. Empty if the value is valid. Throws for an invalid schema. */
export function jsonSchemaProblems(
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
): readonly string[] {
  const [isFit, errors] = Errors(schema, value);
  if (isFit) return [];
  const problems = errors
    .slice(0, maxProblems)
    .map(({ instancePath, message }) => `${instancePath === "" ? "the value" : instancePath} ${message}`);
  return problems.length === 0 ? ["it does not match the schema"] : problems;
}

/**
 * If an object has too many unknown properties, returns the first ones, otherwise an empty list. Reads no more names
 * than needed.
 */
function unknownCrowd(schema: object, value: unknown): readonly Mistake[] {
  const { properties = {}, additionalProperties } = schema as Closed;
  if (additionalProperties !== false || typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return [];
  const found: Mistake[] = [];
  for (const name in value) {
    if (Object.hasOwn(properties, name)) continue;
    found.push({ path: [name], expected: "is not known" });
    if (found.length > mostUnknown) return found;
  }
  return [];
}

interface Closed {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly additionalProperties?: unknown;
}

/** Explains why a value is invalid, based on a bounded part of it. */
function explainMistakes(schema: object, whole: unknown): readonly Mistake[] {
  const type = schema as TSchema;
  const value = boundedPart(whole, namesIn(schema));
  const errors = allErrors(type, value);
  const mistakes = withoutFollowing(errors).flatMap((error) => mistakesOf(error, errors, type));
  return mistakes.length === 0 ? [{ path: [], expected: "does not match" }] : mistakes;
}

/** Returns a copy with at most `mostShown` items per list and `mostShown` properties that the schema does not name. */
function boundedPart(whole: unknown, named: ReadonlySet<string>): unknown {
  let left = mostParts;
  const part = (value: unknown, depth: number): unknown => {
    if (typeof value !== "object" || value === null || depth > deepest) return value;
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) {
        if (items.length >= mostShown || --left < 0) break;
        items.push(part(item, depth + 1));
      }
      return items;
    }
    const kept: Record<string, unknown> = {};
    const keep = (name: string) => {
      const item = part(Reflect.get(value, name), depth + 1);
      Object.defineProperty(kept, name, {
        value: item,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    };
    let others = 0;
    for (const name in value) {
      if (others >= mostShown || --left < 0) break;
      if (named.has(name)) continue;
      others += 1;
      keep(name);
    }
    for (const name of named) if (Object.hasOwn(value, name)) keep(name);
    return kept;
  };
  return part(whole, 0);
}

const namesOf = new WeakMap<object, ReadonlySet<string>>();

/** Returns the names of all properties in a schema, at any depth. */
function namesIn(schema: object): ReadonlySet<string> {
  const known = namesOf.get(schema);
  if (known !== undefined) return known;
  const names = new Set<string>();
  const seen = new Set<object>();
  const walk = (part: unknown): void => {
    if (typeof part !== "object" || part === null || seen.has(part)) return;
    seen.add(part);
    const { properties } = part as Closed;
    for (const name of Object.keys(properties ?? {})) names.add(name);
    for (const each of Object.values(part)) walk(each);
  };
  walk(schema);
  namesOf.set(schema, names);
  return names;
}

/** Returns all errors. TypeBox's maximum number of errors is a process-wide setting. */
function allErrors(type: TSchema, value: unknown): readonly TLocalizedValidationError[] {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: mostErrors });
  try {
    return Value.Errors(type, value);
  } finally {
    Settings.Set({ maxErrors });
  }
}

/**
 * Removes errors that merely follow from others: those of each failed branch of an alternative, and the error that an
 * object has unknown properties.
 */
function withoutFollowing(errors: readonly TLocalizedValidationError[]): TLocalizedValidationError[] {
  const choices = errors
    .filter(({ keyword }) => keyword === "anyOf" || keyword === "oneOf")
    .map(({ keyword, schemaPath }) => `${schemaPath}/${keyword}/`);
  return errors.filter(
    ({ keyword, schemaPath }) =>
      keyword !== "additionalProperties" && !choices.some((path) => `${schemaPath}/`.startsWith(path)),
  );
}

function mistakesOf(
  error: TLocalizedValidationError,
  all: readonly TLocalizedValidationError[],
  schema: TSchema,
): readonly Mistake[] {
  const path = pathOf(error.instancePath);
  switch (error.keyword) {
    case "required":
      return error.params.requiredProperties.map((name) => ({
        path: [...path, name],
        expected: "is required",
      }));
    // The schema `false` forbids the value, which is almost always an unknown property.
    case "boolean":
      return [{ path, expected: "is not known" }];
    case "const":
      return [{ path, expected: `must be ${JSON.stringify(error.params.allowedValue)}` }];
    case "enum":
      return [{ path, expected: oneOf(error.params.allowedValues) }];
    case "anyOf":
    case "oneOf":
      return [{ path, expected: choiceText(error, all, schema) }];
    default:
      return [{ path, expected: error.message }];
  }
}

/** Describes the fields that an alternative requires, or its allowed values. */
function choiceText(
  { keyword, schemaPath }: TLocalizedValidationError,
  all: readonly TLocalizedValidationError[],
  schema: TSchema,
): string {
  const names = neededNames(schemaAt(schema, schemaPath)?.[keyword]);
  if (names !== null) {
    return keyword === "oneOf"
      ? `requires exactly one of ${names.join(", ")}`
      : `requires ${names.join(" or ")}`;
  }
  const inside = all.filter((each) => each.schemaPath.startsWith(`${schemaPath}/${keyword}/`));
  const constants = inside.flatMap((each) => (each.keyword === "const" ? [each.params.allowedValue] : []));
  const values = inside.flatMap((each) => (each.keyword === "enum" ? each.params.allowedValues : []));
  if (constants.length + values.length > 0) return oneOf([...constants, ...values]);
  return nullableText(inside) ?? "does not match any of the allowed formats";
}

/** For a nullable value, describes what a non-null value must look like. */
function nullableText(inside: readonly TLocalizedValidationError[]): string | null {
  const isNull = (each: TLocalizedValidationError) => each.keyword === "type" && each.params.type === "null";
  const [first, ...others] = inside.filter((each) => !isNull(each));
  const hasNull = inside.some(isNull);
  return hasNull && first !== undefined && others.length === 0 ? `${first.message}, or null` : null;
}

function neededNames(choices: unknown): readonly string[] | null {
  if (!Array.isArray(choices)) return null;
  const names = choices.map((each: { readonly required?: readonly string[] }) =>
    Object.keys(each).length === 1 ? each.required?.[0] : undefined,
  );
  return names.every((name) => name !== undefined) ? names : null;
}

function schemaAt(schema: TSchema, schemaPath: string): Readonly<Record<string, unknown>> | null {
  const at = pathOf(schemaPath).reduce<unknown>(
    (inner, part) => (inner as Readonly<Record<string, unknown>> | undefined)?.[part],
    schema,
  );
  return typeof at === "object" ? (at as Readonly<Record<string, unknown>> | null) : null;
}

function oneOf(values: readonly unknown[]): string {
  return `must be one of ${values.map((each) => JSON.stringify(each)).join(", ")}`;
}

/** Splits a JSON pointer into its parts. */
function pathOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}
