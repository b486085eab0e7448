import type { Scalar } from "yaml";
import { Document, YAMLMap } from "yaml";
import type { LoadedConfig } from "./load.ts";
import { withoutPassword } from "./problems.ts";
import { sections } from "./sections/all.ts";
import type { Node } from "./settings/setting.ts";
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
): YAMLMap | Scalar {
  const document = new Document();
  if (node.node === "setting") {
    const source = sources.get(pathText(path)) ?? { from: "default" };
    const written = node.kind.write(value);
    const isSecret = isSecretSource(source) || (written !== null && isSecretKey(path.at(-1) ?? ""));
    const scalar = document.createNode(isSecret ? mask : withoutPassword(written)) as Scalar;
    scalar.comment = ` ${sourceText(source)}`;
    return scalar;
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

/** Names such as apiKey, token, clientSecret. */
export function isSecretKey(key: string): boolean {
  return /(?:api_?key|private_?key|secret|token|password|passphrase|credentials?|authorization)$/i.test(key);
}
