/**
 * Schemas for entries, configuration, tool arguments and the wire protocol. A schema is a plain JSON Schema object with
 * an associated TypeScript type, so it is published unchanged. `check-schema.ts` checks values. Import it as a
 * namespace: `import * as s from "../core/schema.ts"`.
 */

/** The subset of JSON Schema that Skein's schemas use. */
export interface JsonSchema {
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean" | "null";
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  /** Text is passed to a tool without being trimmed. Not published. */
  readonly keep?: boolean;
  /** The property whose value selects the `anyOf` alternative, as in OpenAPI. */
  readonly discriminator?: { readonly propertyName: string };
}

declare const valueType: unique symbol;
declare const optionalMark: unique symbol;

/** A JSON Schema for values of type `T`. */
export interface Schema<T = unknown> extends JsonSchema {
  readonly [valueType]?: T;
}

export interface OptionalSchema<T = unknown> extends Schema<T> {
  readonly [optionalMark]: true;
}

export interface Fields {
  readonly [name: string]: Schema;
}

export interface ObjectSchema<F extends Fields> extends Schema<ObjectOf<F>> {
  readonly properties: F;
}

/** The type of the values that a schema describes. */
export type Static<S> = S extends { readonly [valueType]?: infer T } ? T : never;

type OptionalNames<F> = { [N in keyof F]: F[N] extends OptionalSchema ? N : never }[keyof F];
type ObjectOf<F> = Simplify<
  { -readonly [N in Exclude<keyof F, OptionalNames<F>>]: Static<F[N]> } & {
    -readonly [N in OptionalNames<F>]?: Static<F[N]>;
  }
>;
type Simplify<T> = { [N in keyof T]: T[N] };

/** Additional keywords for a schema. */
export type Options = Omit<JsonSchema, "type" | "properties">;

const optionalSchemas = new WeakSet<object>();

/** Marks a field in {@link object} as optional. */
export function optional<T>(schema: Schema<T>): OptionalSchema<T> {
  const copy = { ...schema } as OptionalSchema<T>;
  optionalSchemas.add(copy);
  return copy;
}

/** An object. Unknown properties are allowed unless `options` forbids them. */
export function object<F extends Fields>(properties: F, options: Options = {}): ObjectSchema<F> {
  const required = Object.keys(properties).filter((name) => !optionalSchemas.has(properties[name] as object));
  return { type: "object", ...(required.length > 0 ? { required } : {}), properties, ...options };
}

/** An object without unknown properties. */
export function closed<F extends Fields>(properties: F, options: Options = {}): ObjectSchema<F> {
  return object(properties, { additionalProperties: false, ...options });
}

/** An object with any property names and one value type. */
export function record<T>(values: Schema<T>, options: Options = {}): Schema<Record<string, T>> {
  return { type: "object", patternProperties: { "^.*$": values }, ...options };
}

export function array<T>(items: Schema<T>, options: Options = {}): Schema<T[]> {
  return { type: "array", items, ...options };
}

export function string(options: Options = {}): Schema<string> {
  return { type: "string", ...options };
}

export function number(options: Options = {}): Schema<number> {
  return { type: "number", ...options };
}

export function integer(options: Options = {}): Schema<number> {
  return { type: "integer", ...options };
}

export function boolean(options: Options = {}): Schema<boolean> {
  return { type: "boolean", ...options };
}

export function unknown(): Schema<unknown> {
  return {};
}

export function literal<const T extends string | boolean>(value: T, options: Options = {}): Schema<T> {
  return { type: typeof value as "string" | "boolean", const: value, ...options };
}

/** One of several words. */
export function choice<const T extends string>(words: readonly T[], options: Options = {}): Schema<T> {
  return { enum: words, ...options };
}

export function union<const S extends readonly Schema[]>(
  anyOf: S,
  options: Options = {},
): Schema<Static<S[number]>> {
  return { anyOf, ...options };
}

export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  return { anyOf: [schema, { type: "null" }] };
}

/**
 * Objects distinguished by a tag. Objects with an unknown tag are also valid, because other programs write types that
 * this version does not support. They are not part of the TypeScript type.
 */
export function openUnion<const S extends readonly Schema[]>(
  tag: string,
  variants: S,
): Schema<Static<S[number]>> {
  const words = variants.map((each) => each.properties?.[tag]?.const);
  const other = object({ [tag]: string({ pattern: `^(?!(?:${words.join("|")})$)` }) });
  return { discriminator: { propertyName: tag }, anyOf: [...variants, other] };
}
