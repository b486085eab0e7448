import { isSecret } from "./secrets.ts";
import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";
import type { Node } from "./settings/setting.ts";

/** Every value of a configuration that is never to be shown, for whoever masks texts. */
export function secretValues(config: Config): readonly string[] {
  return [...new Set(secretsIn(sections, config, []))];
}

function secretsIn(node: Node, value: unknown, path: readonly string[]): string[] {
  if (node.node === "setting") {
    return typeof value === "string" && value !== "" && isSecret(node, path) ? [value] : [];
  }
  if (node.node === "list" || value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, each]) => {
    const field = node.node === "group" ? node.fields[key] : node.of;
    return field === undefined ? [] : secretsIn(field, each, [...path, key]);
  });
}
