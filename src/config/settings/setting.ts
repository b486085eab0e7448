import type { JsonSchema } from "../../core/schema.ts";

/**
 * The nodes that describe the configuration. The file parser, environment variables, the JSON Schema and the docs are
 * all derived from them.
 */

/** A leaf value in a configuration file. */
export type Written = null | boolean | number | string;

/** The folders that paths are resolved against. */
export interface Place {
  /** The base for relative paths. */
  readonly folder: string;
  /** The home folder, for `~`. */
  readonly home: string;
  /** The root folder, which contains the store unless `store` names a different folder. */
  readonly root: string;
}

/** A kind of value, and how it is read and written. */
export interface ValueKind<T> {
  /** A noun phrase that completes the message "expected …". */
  readonly expected: string;
  /** The allowed words, if the value must be one of several words. */
  readonly words?: readonly string[];
  readonly schema: JsonSchema;
  /** Returns `null` if the value is not of this kind. */
  read(written: Written, place: Place): { readonly value: T } | null;
  /**
   * Explains what an invalid value lacks, without quoting the value. Returns `null` if `expected` is explanation
   * enough.
   */
  explain?(written: Written): string | null;
  /** Returns the shortest form that reads back as the same value. */
  write(value: T): Written;
}

/** A value in the configuration. If it has no `fallback`, it is required wherever its group is set. */
export interface Setting<T> {
  readonly node: "setting";
  readonly about: string;
  readonly kind: ValueKind<T>;
  /** If `true`, the value is never shown, regardless of the setting's name. */
  readonly secret?: true;
  fallback?(place: Place): T;
}

/** An ordered list of values of one kind. It can be empty. */
export interface List<T = unknown> {
  readonly node: "list";
  readonly about: string;
  readonly of: ValueKind<T>;
}

/** An ordered list of groups of one kind. It can be empty, and environment variables cannot set it. */
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
  /** Returns the values that contradict each other. Called only if each value is valid on its own. */
  conflicts?(values: Readonly<Record<string, unknown>>): readonly Conflict[];
  /** Settings that default to `null`. One of them must be set. */
  readonly oneOf?: readonly string[];
  /** The kind of all fields. A single value of this kind in place of the keys sets every field. */
  readonly forAll?: ValueKind<unknown>;
}

/** Setting an unused field is an error, unless the environment overrides the field that makes it unused. */
export interface Unused {
  readonly field: string;
  /** The field whose value makes this one unused. */
  readonly because: string;
  readonly expected: string;
}

/** A valid value that contradicts others in its group. */
export interface Conflict {
  /** The keys that lead from the group to the value. */
  readonly at: readonly string[];
  /** Describes the invalid value. Defaults to the value as written. */
  readonly found?: string;
  readonly expected: string;
  /** The allowed words. The word closest to the value is suggested or, with `found`, the word closest to the key. */
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
  /** Returns the normalized key, or `null` if it is invalid. */
  readKey(text: string): string | null;
  readonly of: N;
  /** The keys that exist if none are set. */
  readonly fallbackKeys: readonly string[];
  /** If `true`, a key from a variable's name keeps its case. Otherwise, it is lowercased. */
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

/** `keys` defines how keys are documented and validated. See `sections/tables.ts`. */
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

/**
 * The configuration as written. Everything is optional, and durations and sizes are strings such as "30m" and "10GB".
 */
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

/** The configuration as read. */
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
