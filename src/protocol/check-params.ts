import type { Static, TSchema } from "typebox";
import type { Mistake } from "./check-value.ts";
import { explainMistakes, unknownCrowd } from "./check-value.ts";
import type { FieldProblem } from "./errors.ts";
import { compiledCheck } from "./typebox-checks.ts";

export type CheckedParams<P> = { readonly params: P } | { readonly problems: readonly FieldProblem[] };

const mostProblems = 20;

type Fits = (value: unknown) => boolean;

/** Compiled with the first call of a method. */
const compiled = new WeakMap<TSchema, Fits>();

/**
 * Params as their method takes them, with the defaults of its schema, or each field that is wrong. Nothing is converted, what was
 * given stays as it is, and no depth of nesting is a danger: what a schema leaves open is not walked.
 */
export function checkParams<P extends TSchema>(schema: P, given: unknown): CheckedParams<Static<P>> {
  const tooLarge = oversized(schema, given);
  if (tooLarge.length > 0) return { problems: tooLarge };
  const crowd = unknownCrowd(schema, given);
  if (crowd.length > 0) return { problems: problemsOf(crowd) };
  const params = withDefaults(schema, given ?? {});
  if (fitsOf(schema)(params)) return { params: params as Static<P> };
  return { problems: problemsOf(explainMistakes(schema, params)) };
}

function problemsOf(mistakes: readonly Mistake[]): readonly FieldProblem[] {
  const byPath = new Map<string, FieldProblem>();
  for (const { path, expected } of mistakes) {
    const text = pathText(path);
    // The first says what it is not; the others follow.
    if (byPath.size < mostProblems && !byPath.has(text)) byPath.set(text, { path: text, problem: expected });
  }
  return byPath.size === 0 ? [{ path: "", problem: "does not fit" }] : [...byPath.values()];
}

function fitsOf(schema: TSchema): Fits {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const fits = compiledCheck(schema);
  compiled.set(schema, fits);
  return fits;
}

interface Limits {
  readonly maxItems?: number;
  readonly maxProperties?: number;
}

/** Lists and objects with more in them than they may have: to look at millions of items, one by one, takes minutes. */
function oversized(schema: TSchema, given: unknown): readonly FieldProblem[] {
  if (typeof given !== "object" || given === null) return [];
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, Limits>> };
  return Object.entries(properties).flatMap(([path, limits]) => {
    const problem = oversize(Object.hasOwn(given, path) ? Reflect.get(given, path) : null, limits);
    return problem === null ? [] : [{ path, problem }];
  });
}

function oversize(value: unknown, { maxItems, maxProperties }: Limits): string | null {
  if (typeof value !== "object" || value === null) return null;
  if (Array.isArray(value))
    return maxItems === undefined || value.length <= maxItems
      ? null
      : `must not have more than ${maxItems} items`;
  return maxProperties === undefined || Object.keys(value).length <= maxProperties
    ? null
    : `must not have more than ${maxProperties} properties`;
}

/** Params have defaults at the top alone. */
function withDefaults(schema: TSchema, given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  const params: Record<string, unknown> = { ...given };
  for (const [name, value] of defaultsOf(schema)) if (!Object.hasOwn(given, name)) params[name] = value;
  return params;
}

const defaults = new WeakMap<TSchema, readonly (readonly [string, unknown])[]>();

function defaultsOf(schema: TSchema): readonly (readonly [string, unknown])[] {
  const known = defaults.get(schema);
  if (known !== undefined) return known;
  const { properties = {} } = schema as {
    readonly properties?: Readonly<Record<string, { readonly default?: unknown }>>;
  };
  const found = Object.entries(properties).flatMap(([name, field]) =>
    field.default === undefined ? [] : [[name, field.default] as const],
  );
  defaults.set(schema, found);
  return found;
}

/** For example `files[0].name`. */
function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    const name = String(part);
    if (/^\d+$/.test(name)) return `${text}[${name}]`;
    return text === "" ? name : `${text}.${name}`;
  }, "");
}
