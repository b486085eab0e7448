import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../steps.ts";

/** The parts of JSON Schema that `schema/skein.schema.json` uses. */
interface Schema {
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly $ref?: string;
}

interface Setting {
  readonly path: string;
  readonly schema: Schema;
}

/** Returns the page that describes every setting, from the schema that editors use. */
export function writeSettingsReference(): string {
  const schema = JSON.parse(readFileSync(join(root, "schema/skein.schema.json"), "utf8")) as Schema;
  const sections = Object.entries(schema.properties ?? {}).filter(([name]) => name !== "$schema");
  return [
    "# Settings and their values",
    "",
    "Every setting of `skein.yaml` with the values that it accepts, generated from `schema/skein.schema.json`. Any value can also name an environment variable. [Configuration](configuration.md) explains the file.",
    ...sections.flatMap(([name, each]) => [
      "",
      `## ${name}`,
      ...(each.properties === undefined && each.description !== undefined
        ? []
        : ["", each.description ?? ""]),
      "",
      "| setting | value | default | description |",
      "|---|---|---|---|",
      ...settingsOf(name, each).map(rowOf),
    ]),
    "",
  ].join("\n");
}

/** The settings at or below a path. A name that the user chooses is shown as `<name>`. */
function settingsOf(path: string, schema: Schema): Setting[] {
  const named = Object.entries(schema.properties ?? {}).flatMap(([name, each]) =>
    settingsOf(`${path}.${name}`, each),
  );
  const free = [schema.additionalProperties, ...Object.values(schema.patternProperties ?? {})]
    .filter((each) => typeof each === "object")
    .flatMap((each) => settingsOf(`${path}.<name>`, each));
  const below = [...named, ...free];
  const choices = (schema.anyOf ?? []).flatMap((each) => settingsOf(path, each));
  const deeper = choices.filter((each) => each.path !== path);
  if (below.length > 0) return below;
  return deeper.length > 0 && choices.length === deeper.length ? deeper : [{ path, schema }, ...deeper];
}

function rowOf({ path, schema }: Setting): string {
  const value = [...new Set(valuesOf(schema))].join(", ");
  const standard = schema.default === undefined ? "" : `\`${JSON.stringify(schema.default)}\``;
  const cells = [`\`${path}\``, value, standard, (schema.description ?? "").replaceAll("<", "&lt;")];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

/** Describes the values that a schema accepts. */
function valuesOf(schema: Schema): string[] {
  if (schema.$ref !== undefined) return [];
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(valuesOf);
  // The other members of `allOf` only restrict the type of the first.
  if (schema.allOf !== undefined) return schema.allOf.slice(0, 1).flatMap(valuesOf);
  if (schema.enum !== undefined) return schema.enum.map((each) => `\`${each}\``);
  if (schema.const !== undefined) return [`\`${schema.const}\``];
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  return types.map((type) => describeType(type, schema));
}

function describeType(type: string, schema: Schema): string {
  if (type === "null") return "`null`";
  if (type === "array") return `list of ${valuesOf(schema.items ?? {}).join(", ") || "values"}`;
  if (type !== "integer" && type !== "number") return type;
  const name = type === "integer" ? "whole number" : "number";
  const { minimum, maximum } = schema;
  if (minimum !== undefined && maximum !== undefined) return `${name} from ${minimum} to ${maximum}`;
  return minimum === undefined ? name : `${name}, at least ${minimum}`;
}
