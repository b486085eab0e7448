import { readFileSync } from "node:fs";
import type { Content } from "../../src/core/messages.ts";
import { textOf } from "./text.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export interface Seed {
  readonly case: string;
  readonly arguments?: Readonly<Record<string, Json>>;
  readonly result: Readonly<Record<string, Json>>;
  readonly names?: readonly string[];
}

export interface SeedTool {
  readonly name: string;
  readonly label?: string;
  readonly description?: string;
  readonly names: readonly string[];
}

function golden(file: string): unknown {
  return JSON.parse(readFileSync(new URL(`../golden/seeds/${file}.json`, import.meta.url), "utf8"));
}

export function seedOf(tool: string, name: string): Seed {
  const found = (golden(tool) as readonly Seed[]).find((seed) => seed.case === name);
  if (found === undefined) throw new Error(`${tool} has no example "${name}"`);
  return found;
}

/** Returns an example's text with its placeholder replaced by a name. */
export function filled(text: unknown, name: string): string {
  return String(text).replace(/\$\{\w+\}/, name);
}

export function seedTools(): readonly SeedTool[] {
  return golden("tools") as readonly SeedTool[];
}

export function denied(): readonly string[] {
  return golden("deny-list") as readonly string[];
}

/** Values that differ between installations. Only their types are compared. */
const examples = new Set([
  ...["runId", "sessionId", "updatedAt", "startedAt", "runtimeMs", "timestamp", "model"],
  ...["contextTokens", "totalTokens", "estimatedCostUsd", "totalBytes", "bytes"],
]);

/**
 * Returns the paths of the fields in a seed that the result lacks or has with other values. Every item in a list must
 * be found in ours. An answer stays in its blocks, as in the documents' code, although their examples show its text.
 */
export function lacking(ours: unknown, seed: Json, path = ""): string[] {
  const name = path.slice(path.lastIndexOf(".") + 1);
  const differs = () => [`${path}: ${JSON.stringify(ours)} and not ${JSON.stringify(seed)}`];
  if (Array.isArray(seed)) {
    if (!Array.isArray(ours)) return differs();
    return seed.flatMap((item, at) => {
      const tries = ours.map((own) => lacking(own, item, `${path}[${at}]`));
      return tries.toSorted((a, b) => a.length - b.length)[0] ?? [`${path}[${at}]: there is none`];
    });
  }
  if (typeof seed === "object" && seed !== null) {
    if (typeof ours !== "object" || ours === null) return differs();
    return Object.entries(seed).flatMap(([key, value]) =>
      lacking((ours as Record<string, unknown>)[key], value, path === "" ? key : `${path}.${key}`),
    );
  }
  if (examples.has(name)) return typeof ours === typeof seed ? [] : differs();
  if (name === "childSessionKey") return /^subagent:[0-9a-f-]+$/.test(String(ours)) ? [] : differs();
  return (name === "content" ? textOf(ours as Content) : ours) === seed ? [] : differs();
}

/**
 * Returns the paths, without list positions, of the fields that a result has in addition to a seed. A list is compared
 * with the seed's first item.
 */
export function added(ours: unknown, seed: Json | undefined, path = ""): string[] {
  if (Array.isArray(ours)) {
    const first = Array.isArray(seed) ? seed[0] : undefined;
    return first === undefined ? [] : ours.flatMap((item) => added(item, first, path));
  }
  if (typeof ours !== "object" || ours === null || typeof seed !== "object" || seed === null) return [];
  const known = seed as Readonly<Record<string, Json>>;
  return Object.entries(ours).flatMap(([key, value]) => {
    const at = path === "" ? key : `${path}.${key}`;
    return key in known ? added(value, known[key], at) : [at];
  });
}

/** The fields that docs/seeds.md lists as ours, by tool. */
export function ownFields(tool: string): ReadonlySet<string> {
  const page = readFileSync(new URL("../../docs/seeds.md", import.meta.url), "utf8");
  const row = page.split("\n").find((line) => line.startsWith(`| \`${tool}\` |`));
  return new Set([...(row ?? "").matchAll(/`([^`]+)`/g)].slice(1).map(([, name = ""]) => name));
}
