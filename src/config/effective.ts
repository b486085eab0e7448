import type { Scalar } from "yaml";
import { Document, YAMLMap, YAMLSeq } from "yaml";
import type { LoadedConfig } from "./load.ts";
import { withoutPassword } from "./problems.ts";
import { isSecret } from "./secrets.ts";
import { sections } from "./sections/all.ts";
import type { Group, List, Node, Setting, Table, Written } from "./settings/setting.ts";
import type { Source } from "./tree.ts";
import { originText, pathText } from "./tree.ts";

const mask = "***";

/** Returns the whole configuration as YAML without secrets. A comment after each value gives its source. */
export function effectiveConfigText({ config, sources }: Pick<LoadedConfig, "config" | "sources">): string {
  return effectiveText(sections, config, sources);
}

/**
 * Like `effectiveConfigText`, but includes only values that a file, the environment or an option sets. Empty if there
 * are none.
 */
export function setConfigText({ config, sources }: Pick<LoadedConfig, "config" | "sources">): string {
  const root = nodeOf(sections, config, [], { sources, isWhole: false });
  return root === null ? "" : textOf(root);
}

/** Returns the YAML for one part of the configuration. */
export function effectiveText(node: Node, value: unknown, sources: ReadonlyMap<string, Source>): string {
  return textOf(nodeOf(node, value, [], { sources, isWhole: true }) ?? emptyMap());
}

function textOf(root: YAMLMap | YAMLSeq | Scalar): string {
  return new Document(root).toString({ lineWidth: 0, flowCollectionPadding: true });
}

interface Wanted {
  readonly sources: ReadonlyMap<string, Source>;
  /** Whether defaults are included. */
  readonly isWhole: boolean;
}

/** Returns `null` if the node contains nothing to show. */
function nodeOf(
  node: Node,
  value: unknown,
  path: readonly string[],
  wanted: Wanted,
): YAMLMap | YAMLSeq | Scalar | null {
  if (node.node === "group" || node.node === "table") return mapOf(node, value, path, wanted);
  const source = wanted.sources.get(pathText(path)) ?? { from: "default" };
  if (!wanted.isWhole && source.from === "default") return null;
  if (node.node === "rows") {
    const seq = new YAMLSeq();
    for (const [index, row] of (value as readonly unknown[]).entries()) {
      seq.items.push(nodeOf(node.of, row, [...path, String(index)], wanted) ?? emptyMap());
    }
    seq.flow = seq.items.length === 0;
    if (seq.flow) seq.comment = ` ${sourceText(source)}`;
    return seq;
  }
  const shown = shownOf(node, value, path, source);
  const leaf = new Document().createNode(shown, { flow: true }) as YAMLSeq | Scalar;
  leaf.comment = ` ${sourceText(source)}`;
  return leaf;
}

function mapOf(node: Group | Table, value: unknown, path: readonly string[], wanted: Wanted): YAMLMap | null {
  const map = emptyMap();
  const values = value as Readonly<Record<string, unknown>>;
  const unused = node.node === "group" ? (node.unused?.(values) ?? []) : [];
  for (const [key, each] of Object.entries(values)) {
    const field = node.node === "table" ? node.of : node.fields[key];
    if (field === undefined || unused.some((one) => one.field === key)) continue;
    // A table row in the file can consist of only its name.
    const isNamed = node.node === "table" && !node.fallbackKeys.includes(key);
    const at = [...path, key];
    const shown = nodeOf(field, each, at, wanted) ?? (isNamed ? bareRow(field, each, at, wanted) : null);
    if (shown !== null) map.set(new Document().createNode(key), shown);
  }
  map.flow = map.items.length === 0;
  return map.flow && !wanted.isWhole ? null : map;
}

function bareRow(field: Node, value: unknown, path: readonly string[], wanted: Wanted) {
  const hasFields = field.node === "group" || field.node === "table";
  return hasFields ? emptyMap() : nodeOf(field, value, path, { ...wanted, isWhole: true });
}

function emptyMap(): YAMLMap {
  const map = new YAMLMap();
  map.flow = true;
  return map;
}

function shownOf(node: Setting<unknown> | List, value: unknown, path: readonly string[], source: Source) {
  const shown = (written: Written, isHidden: boolean) => (isHidden ? mask : withoutPassword(written));
  if (node.node === "list") {
    return (value as readonly unknown[]).map((each) => shown(node.of.write(each), isSecretSource(source)));
  }
  const written = node.kind.write(value);
  return shown(written, isSecretSource(source) || (written !== null && isSecret(node, path)));
}

/** Describes a value's source for display. */
export function sourceText(source: Source): string {
  switch (source.from) {
    case "default":
      return "default";
    case "option":
      return source.option;
    case "file":
      return `${source.file}:${source.line}`;
    case "code":
    case "environment":
      return originText(source);
  }
}

function isSecretSource(source: Source): boolean {
  return "secret" in source && source.secret;
}
