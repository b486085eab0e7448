import { scalarOf } from "./parse-yaml.ts";
import type { ConfigProblem } from "./problems.ts";
import { nearest, shownValue } from "./problems.ts";
import { isSecretKey } from "./secrets.ts";
import type { Group, Node, Table } from "./settings/setting.ts";
import type { Origin, WrittenLeaf, WrittenMap, WrittenNode } from "./tree.ts";
import { pathText } from "./tree.ts";

/** A variable that is set. `file` is the `.env` file that sets it, or `null` for the real environment. */
export interface Variable {
  readonly name: string;
  readonly value: string;
  readonly file: string | null;
}

export interface EnvironmentLayer {
  readonly root: WrittenMap;
  readonly problems: readonly ConfigProblem[];
}

/** The variable that sets the root folder. */
export const rootVariable = "SKEIN_DIR";
/** Variables that start with Skein's prefix but are not settings. */
const otherVariables = [rootVariable];
const prefix = "SKEIN_";

/** Returns the variable that overrides a setting: `SKEIN_SESSION__MAINTENANCE__PRUNE_AFTER`. */
export function variableOf(path: readonly string[]): string {
  const upper = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  return prefix + path.map(upper).join("__");
}

/**
 * Returns the settings that the environment overrides. `__` separates levels. For known keys, case and single
 * underscores are ignored. A user-defined key is looked up in the file first, where it can contain capitals and
 * hyphens.
 */
export function environmentLayer(
  variables: readonly Variable[],
  sections: Group,
  file: WrittenNode | null,
): EnvironmentLayer {
  const problems: ConfigProblem[] = [];
  const leaves = new Map<string, PlacedLeaf>();
  for (const variable of variables.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name, value, file: from } = variable;
    // An empty variable is treated as unset, so the environment can unset a variable from `.env`.
    if (!name.startsWith(prefix) || otherVariables.includes(name) || value === "") continue;
    const at: Origin = { from: "environment", variable: name, file: from };
    const found = findSetting(name.slice(prefix.length).split("__"), sections, file);
    if (found === "unrelated") continue;
    const before = "path" in found ? leaves.get(JSON.stringify(found.path)) : undefined;
    const shown = name.split("__").some(isSecretKey) ? "a hidden value" : shownValue(value);
    if (!("path" in found)) problems.push({ at, found: shown, ...found, path: [] });
    else if (before !== undefined) {
      const expected = `only one variable for this setting (${(before.leaf.at as { variable: string }).variable} is also set)`;
      problems.push({ at, path: found.path, found: shown, expected, suggestion: null });
    } else leaves.set(JSON.stringify(found.path), { path: found.path, leaf: leafOf(value, at) });
  }
  const at: Origin = { from: "environment", variable: prefix, file: null };
  return { root: mapOf([...leaves.values()], at), problems };
}

interface PlacedLeaf {
  readonly path: readonly string[];
  readonly leaf: WrittenLeaf;
}

type Found =
  | { readonly path: readonly string[] }
  | Pick<ConfigProblem, "expected" | "suggestion">
  | "unrelated";

function findSetting(segments: readonly string[], sections: Group, file: WrittenNode | null): Found {
  const path: string[] = [];
  let node: Node = sections;
  let written = file;
  for (const segment of segments) {
    if (node.node === "rows") break;
    if (node.node === "setting" || node.node === "list")
      return { expected: `${variableOf(path)}, without a suffix`, suggestion: null };
    const key: string | null =
      node.node === "group" ? knownKey(segment, node) : ownKey(segment, node, written);
    if (node.node === "group" && key === null) return unknownKey(segment, node, path);
    node = node.node === "group" ? (node.fields[key ?? ""] as Node) : node.of;
    path.push(key ?? "");
    written = childOf(written, key ?? "");
  }
  if (node.node === "rows")
    return { expected: `${pathText(path)} in the configuration file`, suggestion: null };
  if (node.node === "setting" || node.node === "list") return { path };
  if (node.node === "group" && node.forAll !== undefined) return { path };
  const next = node.node === "group" ? Object.keys(node.fields) : [node.keyName];
  return { expected: next.map((key) => variableOf([...path, key])).join(", "), suggestion: null };
}

/** A variable whose top level does not resemble any known key is assumed to belong to another program. */
function unknownKey(segment: string, group: Group, path: readonly string[]): Found {
  const known = Object.keys(group.fields);
  const suggestion = nearest(folded(segment), known);
  if (path.length === 0 && suggestion === null) return "unrelated";
  const expected = `one of ${known.map((key) => variableOf([...path, key])).join(", ")}`;
  return { expected, suggestion: suggestion === null ? null : variableOf([...path, suggestion]) };
}

function knownKey(segment: string, { fields }: Group): string | null {
  return Object.keys(fields).find((key) => folded(key) === folded(segment)) ?? null;
}

function ownKey(segment: string, table: Table, written: WrittenNode | null): string {
  const keys = [
    ...(written?.is === "map" ? written.entries.map(({ key }) => key) : []),
    ...table.fallbackKeys,
  ];
  const lowered = segment.toLowerCase();
  return (
    keys.find((key) => key === segment) ??
    keys.find((key) => key.toLowerCase() === lowered) ??
    keys.find((key) => key.toLowerCase().replaceAll("-", "_") === lowered) ??
    (table.keepsCase === true ? segment : lowered)
  );
}

function childOf(node: WrittenNode | null, key: string): WrittenNode | null {
  return node?.is === "map" ? (node.entries.find((entry) => entry.key === key)?.value ?? null) : null;
}

function folded(key: string): string {
  return key.replaceAll("_", "").toLowerCase();
}

function leafOf(value: string, at: Origin): WrittenLeaf {
  const scalar = scalarOf(value);
  return { is: "leaf", at, readings: scalar === undefined ? [value] : [value, scalar], variables: [] };
}

function mapOf(leaves: readonly PlacedLeaf[], at: Origin): WrittenMap {
  const byKey = Map.groupBy(leaves, ({ path }) => path[0] ?? "");
  const entries = [...byKey].flatMap(([key, within]) => {
    const [lone, deeper] = [
      within.filter(({ path }) => path.length === 1),
      within.filter(({ path }) => path.length > 1),
    ];
    const below = deeper.map(({ path, leaf }) => ({ path: path.slice(1), leaf }));
    const keyAt = below[0]?.leaf.at ?? at;
    // A value that sets all keys of a group comes first so that a value for a single key overrides it.
    return [
      ...lone.map(({ leaf }) => ({ key, keyAt: leaf.at, value: leaf })),
      ...(below.length === 0 ? [] : [{ key, keyAt, value: mapOf(below, keyAt) }]),
    ];
  });
  return { is: "map", at, entries };
}
