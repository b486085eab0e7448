import type { JsonSchema } from "../../core/schema.ts";

/**
 * The nodes that describe the configuration. File parsing, environment variables, the JSON Schema and the docs are all
 * derived from them.
 */

/** A leaf value in a configuration file. */
export type Written = null | boolean | number | string;

/** The folders that paths are resolved against. */
export interface Place {
  /** The base for relative paths. */
  readonly folder: string;
  /** The home folder, for `~`. */
  readonly home: string;
  /** The root folder, which contains the store unless `store` is set to another. */
  readonly root: string;
}

/** A kind of value, with its written form and how to read it. */
export interface ValueKind<T> {
  /** Completes the message "expected …". */
  readonly expected: string;
  /** The allowed words, if the value is one of several words. */
  readonly words?: readonly string[];
  readonly schema: JsonSchema;
  /** Returns `null` if the value is not of this kind. */
  read(written: Written, place: Place): { readonly value: T } | null;
  /** The shortest form that reads back as the same value. */
  write(value: T): Written;
}

/** A value in the configuration. Without `fallback` it is required wherever its group is set. */
export interface Setting<T> {
  readonly node: "setting";
  readonly about: string;
  readonly kind: ValueKind<T>;
  /** Never shown, regardless of its name. */
  readonly secret?: true;
  fallback?(place: Place): T;
}

/** Values of one kind, in order. None is required. */
export interface List<T = unknown> {
  readonly node: "list";
  readonly about: string;
  readonly of: ValueKind<T>;
}

/** Groups of one kind, in order. None is required; the environment cannot set them. */
export interface Rows<G extends Group = Group> {
  readonly node: "rows";
  readonly about: string;
  readonly of: G;
}

/** Known keys, each with its own node. */
export interface Group<F extends Fields = Fields> {
  readonly node: "group";
  readonly about: string;
  readonly fields: F;
  /** Returns the fields that have no effect, given the values of the others. */
  unused?(values: Readonly<Record<string, unknown>>): readonly Unused[];
  /** Returns values that contradict each other. Called only if each is valid by itself. */
  conflicts?(values: Readonly<Record<string, unknown>>): readonly Conflict[];
  /** Settings that are `null` unless set, one of which is required. */
  readonly oneOf?: readonly string[];
  /** All fields have this kind, and a single value in place of the keys sets each of them. */
  readonly forAll?: ValueKind<unknown>;
}

/** Setting such a field is a problem, unless the environment overrides the field that makes it unused. */
export interface Unused {
  readonly field: string;
  /** The field whose value makes it unused. */
  readonly because: string;
  readonly expected: string;
}

/** A valid value that contradicts others in its group. */
export interface Conflict {
  /** The keys that lead to it from the group. */
  readonly at: readonly string[];
  /** The value that was found; defaults to the written value. */
  readonly found?: string;
  readonly expected: string;
  /** The allowed words. The nearest one is suggested instead of the value or, with `found`, instead of the key. */
  readonly words: readonly string[];
}

/** User-defined keys that all have the same meaning. */
export interface Table<N = Node> {
  readonly node: "table";
  readonly about: string;
  /** The placeholder for a key in the docs: `<agentId>`. */
  readonly keyName: string;
  readonly keyExpected: string;
  readonly keySchema: Readonly<Record<string, unknown>>;
  /** Returns the normalized key; `null` if it is invalid. */
  readKey(text: string): string | null;
  readonly of: N;
  /** The keys that exist if none is set. */
  readonly fallbackKeys: readonly string[];
  /** If `true`, a key from a variable's name keeps its case; otherwise it is lowercased. */
  readonly keepsCase?: true;
}

export interface Fields {
  readonly [key: string]: Node;
}
export interface AnyTable extends Table<Node> {}
export interface AnyRows extends Rows<Group> {}
export type Node = Setting<unknown> | List | AnyRows | Group | AnyTable;

export function setting<T>(about: string, kind: ValueKind<T>, fallback?: NoInfer<T>): Setting<T> {
  return { node: "setting", about, kind, ...(fallback === undefined ? {} : { fallback: () => fallback }) };
}

export function list<T>(about: string, of: ValueKind<T>): List<T> {
  return { node: "list", about, of };
}

export function rows<G extends Group>(about: string, of: G): Rows<G> {
  return { node: "rows", about, of };
}

/** `keys` defines how keys are named and read; see `sections/tables.ts`. */
export function table<N extends Node>(
  about: string,
  keys: Omit<Table, "node" | "about" | "of" | "keepsCase">,
  of: N,
): Table<N> {
  return { node: "table", about, ...keys, of };
}

type GroupRules = Pick<Group, "unused" | "conflicts" | "oneOf" | "forAll">;

export function group<F extends Fields, R extends GroupRules = GroupRules>(
  about: string,
  fields: F,
  rules?: R,
): Group<F> & R {
  return { node: "group", about, fields, ...rules } as Group<F> & R;
}

/** The written form: everything is optional, and durations and sizes are texts such as "30m" and "10GB". */
export type Writable<N> =
  N extends Setting<infer T>
    ? WritableValue<T>
    : N extends List<infer T>
      ? readonly WritableValue<T>[]
      : N extends Rows<infer G>
        ? readonly Writable<G>[]
        : N extends Group<infer F>
          ? { readonly [Key in keyof F]?: Writable<F[Key]> } | WritableForAll<N>
          : N extends Table<infer Entry>
            ? { readonly [key: string]: Writable<Entry> }
            : never;

type WritableForAll<N> = N extends { readonly forAll: ValueKind<infer T> } ? WritableValue<T> : never;
type WritableValue<T> = T extends number ? number | string : T extends Written ? T : string;

/** The type that reading returns. */
export type Read<N> =
  N extends Setting<infer T>
    ? T
    : N extends List<infer T>
      ? readonly T[]
      : N extends Rows<infer G>
        ? readonly Read<G>[]
        : N extends Group<infer F>
          ? { readonly [Key in keyof F]: Read<F[Key]> }
          : N extends Table<infer Entry>
            ? { readonly [key: string]: Read<Entry> }
            : never;
