import type { ConfigProblem } from "./problems.ts";
import { nearest, shownValue } from "./problems.ts";
import { isSecret } from "./secrets.ts";
import type { Group, List, Node, Place, Rows, Setting, Table, ValueKind } from "./settings/setting.ts";
import type {
  Origin,
  Source,
  WrittenEntry,
  WrittenItem,
  WrittenLeaf,
  WrittenMap,
  WrittenNode,
} from "./tree.ts";
import { pathText } from "./tree.ts";

export interface ReadResult {
  /**
   * Complete and frozen. Invalid values are replaced by their defaults. A group that lacks a required value is
   * `undefined`.
   */
  readonly value: unknown;
  readonly problems: readonly ConfigProblem[];
  /** The source of each setting's value, by path. */
  readonly sources: ReadonlyMap<string, Source>;
}

/** Returns the folders that paths from this origin are resolved against. */
export type PlaceOf = (origin: Origin) => Place;

/** Reads a configuration from its layers. If several layers set a value, the last one wins. */
export function readTree(
  node: Node,
  layers: readonly WrittenNode[],
  placeOf: PlaceOf,
  fallbackPlace: Place,
): ReadResult {
  const reader = new TreeReader(placeOf, fallbackPlace);
  const value = reader.read(node, layers, []);
  return { value, problems: reader.problems, sources: reader.sources };
}

class TreeReader {
  readonly problems: ConfigProblem[] = [];
  readonly sources = new Map<string, Source>();
  readonly #placeOf: PlaceOf;
  readonly #fallbackPlace: Place;

  constructor(placeOf: PlaceOf, fallbackPlace: Place) {
    this.#placeOf = placeOf;
    this.#fallbackPlace = fallbackPlace;
  }

  read(node: Node, layers: readonly WrittenNode[], path: readonly string[]): unknown {
    switch (node.node) {
      case "setting":
        return this.#setting(node, layers, path);
      case "list":
        return this.#list(node, layers, path);
      case "rows":
        return this.#rows(node, layers, path);
      case "group":
        return this.#group(node, layers, path);
      case "table":
        return this.#table(node, layers, path);
    }
  }

  #setting(setting: Setting<unknown>, layers: readonly WrittenNode[], path: readonly string[]): unknown {
    let read: { readonly value: unknown; readonly source: Source } | null = null;
    for (const layer of layers) {
      if (layer.is === "reported") continue;
      const value =
        layer.is === "leaf" ? this.#leaf(setting, layer, path) : this.#reportMisplaced(setting, layer, path);
      if (value !== null) read = value;
    }
    if (read === null && setting.fallback !== undefined) {
      read = { value: setting.fallback(this.#fallbackPlace), source: { from: "default" } };
    }
    if (read !== null) this.sources.set(pathText(path), read.source);
    return deepFrozen(read?.value);
  }

  #leaf(setting: Setting<unknown>, leaf: WrittenLeaf, path: readonly string[]) {
    const { kind } = setting;
    const isVariable = leaf.variables.length > 0;
    const read = this.#firstReading(kind, leaf);
    if (read !== null) return { value: read.value, source: { ...leaf.at, secret: isVariable } };
    const isHidden = isSecret(setting, path) && !isVariable;
    const word = isVariable || isHidden ? null : nearest(String(leaf.readings[0]), kind.words ?? []);
    const found = isHidden ? "a hidden value" : foundIn(leaf);
    const expected = kind.explain?.(leaf.readings[0] ?? null) ?? kind.expected;
    this.#report(leaf.at, path, found, expected, word === null ? null : `"${word}"`);
    return null;
  }

  #firstReading<T>(kind: ValueKind<T>, leaf: WrittenLeaf): { readonly value: T } | null {
    for (const reading of leaf.readings) {
      const read = kind.read(reading, this.#placeOf(leaf.at));
      if (read !== null) return read;
    }
    return null;
  }

  #list(list: List, layers: readonly WrittenNode[], path: readonly string[]): unknown {
    let values: readonly unknown[] = [];
    let source: Source = { from: "default" };
    for (const layer of layers) {
      if (layer.is === "reported" || (layer.is === "leaf" && layer.readings[0] === null)) continue;
      const items = layer.is === "leaf" ? partsOf(layer) : layer.is === "list" ? layer.items : null;
      if (items === null) {
        const found = layer.is === "leaf" ? foundIn(layer) : "keys";
        this.#report(layer.at, path, found, `a list; each item must be ${list.of.expected}`);
      } else {
        const secret = items.some((item) => item.is === "leaf" && item.variables.length > 0);
        [values, source] = [this.#items(list, items, path), { ...layer.at, secret }];
      }
    }
    this.sources.set(pathText(path), source);
    return deepFrozen(values);
  }

  #items({ of: kind }: List, items: readonly WrittenItem[], path: readonly string[]): unknown[] {
    return items.flatMap((item, index) => {
      if (item.is === "reported") return [];
      const read = item.is === "leaf" ? this.#firstReading(kind, item) : null;
      if (read !== null) return [read.value];
      this.#report(item.at, [...path, String(index)], foundAt(item), kind.expected);
      return [];
    });
  }

  /** Takes all rows from the last layer that has any. Rows are not merged across layers. */
  #rows({ of: group }: Rows, layers: readonly WrittenNode[], path: readonly string[]): unknown {
    let values: readonly unknown[] = [];
    let source: Source = { from: "default" };
    const expected = `keys (${Object.keys(group.fields).join(", ")})`;
    for (const layer of layers) {
      if (layer.is === "reported" || (layer.is === "leaf" && layer.readings[0] === null)) continue;
      if (layer.is !== "list") {
        const found = layer.is === "leaf" ? foundIn(layer) : "keys";
        this.#report(layer.at, path, found, `a list; each item must be ${expected}`);
        continue;
      }
      source = { ...layer.at, secret: false };
      values = layer.items.flatMap((item, index) => {
        const at = [...path, String(index)];
        if (item.is === "map") return [this.#group(group, [item], at)];
        if (item.is !== "reported") this.#report(item.at, at, foundAt(item), expected);
        return [];
      });
    }
    this.sources.set(pathText(path), source);
    return Object.freeze(values);
  }

  #reportMisplaced({ kind }: Setting<unknown>, { is, at }: WrittenNode, path: readonly string[]): null {
    this.#report(at, path, is === "map" ? "keys" : "a list", kind.expected);
    return null;
  }

  #group(group: Group, layers: readonly WrittenNode[], path: readonly string[]): unknown {
    const problemCount = this.problems.length;
    const known = Object.keys(group.fields);
    const expected = `keys (${known.join(", ")})`;
    const maps =
      group.forAll === undefined
        ? this.#maps(layers, path, expected)
        : this.#maps(
            this.#spread(group, layers),
            path,
            `${group.forAll.expected}, or ${expected}`,
            group.forAll.words,
          );
    for (const { key, keyAt } of maps.flatMap(({ entries }) => entries)) {
      const isNote = path.length === 0 && key === "$schema";
      if (known.includes(key) || isNote) continue;
      const suggestion = nearest(key, known);
      this.#report(keyAt, path, `the key ${shownValue(key)}`, `one of ${known.join(", ")}`, suggestion);
    }
    const entriesOf = (key: string) =>
      maps.flatMap(({ entries }) => entries.filter((each) => each.key === key));
    const values = Object.fromEntries(
      known.map((key) => {
        const field = group.fields[key] as Node;
        const written = entriesOf(key).map(({ value }) => value);
        if (field.node === "setting" && field.fallback === undefined && written.length === 0) {
          this.#reportMissing(maps, path, key);
        }
        return [key, this.read(field, written, [...path, key])];
      }),
    );
    if (this.problems.length === problemCount) this.#reportUnused(group, values, entriesOf, path);
    const given = (key: string) =>
      values[key] !== null || entriesOf(key).some(({ value }) => value.is === "reported");
    if (this.problems.length === problemCount && group.oneOf?.some(given) === false) {
      this.#reportNoneOf(group.oneOf, layers, path);
    }
    if (this.problems.length === problemCount && !layers.some(holdsReported))
      this.#reportConflicts(group, values, layers, path);
    return Object.freeze(values);
  }

  /** Expands a single value for a group to all of its keys. Other values are left unchanged and reported later. */
  #spread({ fields, forAll }: Group, layers: readonly WrittenNode[]): readonly WrittenNode[] {
    return layers.map((layer) => {
      if (layer.is !== "leaf" || forAll === undefined || this.#firstReading(forAll, layer) === null)
        return layer;
      const entries = Object.keys(fields).map((key) => ({ key, keyAt: layer.at, value: layer }));
      return { is: "map", at: layer.at, entries };
    });
  }

  #reportNoneOf(keys: readonly string[], layers: readonly WrittenNode[], path: readonly string[]): void {
    const last = layers.at(-1);
    const needed = keys.join(" or ");
    if (last !== undefined && last.is !== "reported") this.#report(last.at, path, `no ${needed}`, needed);
  }

  #reportMissing(maps: readonly WrittenMap[], path: readonly string[], key: string): void {
    const at = maps.at(-1)?.at;
    const article = /^[aeiou]/.test(key) ? "an" : "a";
    if (at !== undefined) this.#report(at, path, `no ${key}`, `${article} ${key}`);
  }

  #reportUnused(
    group: Group,
    values: Readonly<Record<string, unknown>>,
    entriesOf: (key: string) => readonly WrittenEntry[],
    path: readonly string[],
  ): void {
    for (const { field, because, expected } of group.unused?.(values) ?? []) {
      const given = entriesOf(field).at(-1);
      const reason = entriesOf(because).at(-1)?.value;
      const isExcused = reason?.is === "reported" || reason?.at.from === "environment";
      if (given !== undefined && !isExcused) this.#report(given.keyAt, path, field, expected);
    }
  }

  #reportConflicts(
    group: Group,
    values: Readonly<Record<string, unknown>>,
    layers: readonly WrittenNode[],
    path: readonly string[],
  ): void {
    for (const { at, found, expected, words } of group.conflicts?.(values) ?? []) {
      const item = layers.flatMap((layer) => itemAt(layer, at) ?? []).at(-1);
      if (item === undefined || item.is === "reported") continue;
      const isVariable = item.is === "leaf" && item.variables.length > 0;
      const written =
        item.is === "leaf" && found === undefined ? String(item.readings[0]) : (at.at(-1) ?? "");
      const word = isVariable ? null : nearest(written, words);
      this.#report(item.at, [...path, ...at], found ?? foundAt(item), expected, word);
    }
  }

  #table(table: Table, layers: readonly WrittenNode[], path: readonly string[]): unknown {
    const byKey = new Map<string, WrittenNode[]>();
    for (const map of this.#maps(layers, path, `keys; each must be ${table.keyExpected}`)) {
      for (const [key, { value }] of this.#keys(table, map, path)) {
        byKey.set(key, [...(byKey.get(key) ?? []), value]);
      }
    }
    const keys = byKey.size === 0 ? table.fallbackKeys : [...byKey.keys()];
    // The object has no prototype, because "constructor" is a legal key and must not be inherited.
    const values: Record<string, unknown> = Object.create(null);
    for (const key of keys) values[key] = this.read(table.of, byKey.get(key) ?? [], [...path, key]);
    return Object.freeze(values);
  }

  /** Returns a map's entries by normalized key. If two keys are equal, the first is kept. */
  #keys(table: Table, { entries }: WrittenMap, path: readonly string[]): ReadonlyMap<string, WrittenEntry> {
    const byKey = new Map<string, WrittenEntry>();
    for (const entry of entries) {
      const key = table.readKey(entry.key);
      const before = key === null ? undefined : byKey.get(key);
      const found = `the key ${shownValue(entry.key)}`;
      if (key === null) this.#report(entry.keyAt, path, found, table.keyExpected);
      else if (before === undefined) byKey.set(key, entry);
      else this.#report(entry.keyAt, path, found, `a unique key ("${before.key}" is the same key)`);
    }
    return byKey;
  }

  /** An empty section is allowed. */
  #maps(
    layers: readonly WrittenNode[],
    path: readonly string[],
    expected: string,
    words: readonly string[] = [],
  ): WrittenMap[] {
    return layers.flatMap((layer) => {
      if (layer.is === "map") return [layer];
      const isEmpty = layer.is === "leaf" && layer.readings[0] === null;
      if (!isEmpty && layer.is !== "reported") {
        const isShown = layer.is === "leaf" && layer.variables.length === 0;
        const word = isShown ? nearest(String(layer.readings[0]), words) : null;
        const found = layer.is === "leaf" ? foundIn(layer) : "a list";
        this.#report(layer.at, path, found, expected, word === null ? null : `"${word}"`);
      }
      return [];
    });
  }

  #report(
    at: Origin,
    path: readonly string[],
    found: string,
    expected: string,
    suggestion: string | null = null,
  ): void {
    this.problems.push({ at, path, found, expected, suggestion });
  }
}

type Written = WrittenNode | WrittenItem;

/** Returns the value as written at a path. For a list item that comes from a variable, returns the whole list. */
function itemAt(node: Written, [key, ...rest]: readonly string[]): Written | null {
  if (key === undefined || node.is === "leaf") return node;
  if (node.is === "list") return node.items.filter(({ is }) => is !== "reported")[Number(key)] ?? null;
  if (node.is !== "map") return null;
  const entry = node.entries.find((each) => each.key === key);
  return entry === undefined ? null : itemAt(entry.value, rest);
}

/** Whether a problem inside this node has already been reported. */
function holdsReported(node: Written): boolean {
  if (node.is === "map") return node.entries.some(({ value }) => holdsReported(value));
  return node.is === "reported" || (node.is === "list" && node.items.some(holdsReported));
}

/**
 * Splits a variable's text at commas. Text that does not come from a variable is not a list, so `null` is returned for
 * it.
 */
function partsOf(leaf: WrittenLeaf): readonly WrittenLeaf[] | null {
  const [text] = leaf.readings;
  const isVariable = leaf.at.from === "environment" || leaf.variables.length > 0;
  if (!isVariable || typeof text !== "string") return null;
  const parts = text.split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "").map((part) => ({ ...leaf, readings: [part] }));
}

/** A value from a variable might be a secret, so the message names the variable instead. */
function foundIn({ readings, variables }: WrittenLeaf): string {
  if (variables.length === 0) return shownValue(readings[0]);
  return `the value of ${variables.map((name) => `\${${name}}`).join(" and ")}`;
}

function foundAt(item: Exclude<Written, { is: "reported" }>): string {
  if (item.is === "leaf") return foundIn(item);
  if (item.is === "list") return "a list";
  return item.is === "map" ? "keys" : item.found;
}

function deepFrozen(value: unknown): unknown {
  if (typeof value === "object" && value !== null) {
    for (const each of Object.values(value)) deepFrozen(each);
    Object.freeze(value);
  }
  return value;
}
