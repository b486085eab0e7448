import type { Scalar } from "yaml";
import { Document, YAMLMap, YAMLSeq } from "yaml";
import type { LoadedConfig } from "./load.ts";
import { withoutPassword } from "./problems.ts";
import { isSecret } from "./secrets.ts";
import { sections } from "./sections/all.ts";
import type { List, Node, Setting, Written } from "./settings/setting.ts";
import type { Source } from "./tree.ts";
import { pathText } from "./tree.ts";

const mask = "***";

/** The whole configuration as YAML, with where each value comes from behind it, and without secrets. */
export function effectiveConfigText({ config, sources }: Pick<LoadedConfig, "config" | "sources">): string {
  return effectiveText(sections, config, sources);
}

/** The same for any part of a description. */
export function effectiveText(node: Node, value: unknown, sources: ReadonlyMap<string, Source>): string {
  const document = new Document(nodeOf(node, value, [], sources));
  return document.toString({ lineWidth: 0, flowCollectionPadding: true });
}

function nodeOf(
  node: Node,
  value: unknown,
  path: readonly string[],
  sources: ReadonlyMap<string, Source>,
): YAMLMap | YAMLSeq | Scalar {
  const document = new Document();
  if (node.node === "setting" || node.node === "list") {
    const source = sources.get(pathText(path)) ?? { from: "default" };
    const leaf = document.createNode(shownOf(node, value, path, source), { flow: true }) as YAMLSeq | Scalar;
    leaf.comment = ` ${sourceText(source)}`;
    return leaf;
  }
  if (node.node === "rows") {
    const seq = new YAMLSeq();
    for (const [index, row] of (value as readonly unknown[]).entries()) {
      seq.items.push(nodeOf(node.of, row, [...path, String(index)], sources));
    }
    seq.flow = seq.items.length === 0;
    if (seq.flow) seq.comment = ` ${sourceText(sources.get(pathText(path)) ?? { from: "default" })}`;
    return seq;
  }
  const map = new YAMLMap();
  const values = value as Readonly<Record<string, unknown>>;
  const unused = node.node === "group" ? (node.unused?.(values) ?? []) : [];
  for (const [key, each] of Object.entries(values)) {
    const field = node.node === "table" ? node.of : node.fields[key];
    if (field === undefined || unused.some((one) => one.field === key)) continue;
    map.set(document.createNode(key), nodeOf(field, each, [...path, key], sources));
  }
  map.flow = map.items.length === 0;
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

/** Where a value comes from, for people. */
export function sourceText(source: Source): string {
  switch (source.from) {
    case "default":
      return "default";
    case "option":
      return source.option;
    case "file":
      return `${source.file}:${source.line}`;
    case "environment":
      return source.file === null ? source.variable : `${source.variable} in ${source.file}`;
  }
}

function isSecretSource(source: Source): boolean {
  return "secret" in source && source.secret;
}
