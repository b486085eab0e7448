import type { Static, TSchema } from "typebox";
import { mistakesIn } from "./check-value.ts";
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
  const long = longLists(schema, given);
  if (long.length > 0) return { problems: long };
  const params = withDefaults(schema, given ?? {});
  if (fitsOf(schema)(params)) return { params: params as Static<P> };
  const byPath = new Map<string, FieldProblem>();
  for (const { path, expected } of mistakesIn(schema, params)) {
    const text = pathText(path);
    // The first says what it is not; the others follow.
    if (byPath.size < mostProblems && !byPath.has(text)) byPath.set(text, { path: text, problem: expected });
  }
  return { problems: byPath.size === 0 ? [{ path: "", problem: "does not fit" }] : [...byPath.values()] };
}

function fitsOf(schema: TSchema): Fits {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const fits = compiledCheck(schema);
  compiled.set(schema, fits);
  return fits;
}

/** Lists with more items than they may have: to look at millions of them, one by one, takes minutes. */
function longLists(schema: TSchema, given: unknown): readonly FieldProblem[] {
  if (typeof given !== "object" || given === null) return [];
  const { properties = {} } = schema as {
    readonly properties?: Readonly<Record<string, { readonly maxItems?: number }>>;
  };
  return Object.entries(properties).flatMap(([path, { maxItems = Number.POSITIVE_INFINITY }]) => {
    const value: unknown = Object.hasOwn(given, path) ? Reflect.get(given, path) : null;
    if (!Array.isArray(value) || value.length <= maxItems) return [];
    return [{ path, problem: `must not have more than ${maxItems} items` }];
  });
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
