import { sections } from "./sections/all.ts";
import type { Group, List, Node, Place, Rows, Setting, Table } from "./settings/setting.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** The placeholder folders shown in defaults that depend on the machine. */
const shownPlace: Place = { folder: ".", home: "~", root: "~/.skein" };

/** Returns the configuration file's JSON Schema for editors. It is published as `schema/skein.schema.json`. */
export function configJsonSchema(root: Group = sections): JsonSchema {
  const { properties, ...rest } = keysSchema(root);
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "skein.yaml",
    ...rest,
    properties: { $schema: { type: "string" }, ...(properties as object) },
    definitions: {
      variable: {
        description: "A value that contains environment variables.",
        type: "string",
        pattern: "\\$\\{[A-Za-z_]\\w*\\}",
      },
    },
  };
}

/** Returns a setting's default as it would be written in a file, or `undefined` if the setting is required. */
export function writtenDefault({ kind, fallback }: Setting<unknown>) {
  return fallback === undefined ? undefined : kind.write(fallback(shownPlace));
}

function schemaOf(node: Node): JsonSchema {
  switch (node.node) {
    case "setting":
      return settingSchema(node);
    case "list":
      return listSchema(node);
    case "rows":
      return rowsSchema(node);
    case "group":
      return groupSchema(node);
    case "table":
      return tableSchema(node);
  }
}

function settingSchema(setting: Setting<unknown>): JsonSchema {
  const fallback = writtenDefault(setting);
  return {
    description: setting.about,
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [setting.kind.schema, { $ref: "#/definitions/variable" }],
  };
}

function listSchema({ about, of }: List): JsonSchema {
  const variable = { $ref: "#/definitions/variable" };
  const items = { anyOf: [of.schema, variable] };
  return { description: about, default: [], anyOf: [{ type: ["array", "null"], items }, variable] };
}

function rowsSchema({ about, of }: Rows): JsonSchema {
  const items = { ...keysSchema(of), type: "object" };
  return { description: about, default: [], type: ["array", "null"], items };
}

function groupSchema(group: Group): JsonSchema {
  const { description, ...keys } = keysSchema(group);
  if (group.forAll === undefined) return { description, ...keys };
  return { description, anyOf: [group.forAll.schema, { $ref: "#/definitions/variable" }, keys] };
}

function keysSchema({ about, fields }: Group): JsonSchema {
  const required = Object.entries(fields)
    .filter(([, field]) => field.node === "setting" && field.fallback === undefined)
    .map(([key]) => key);
  return {
    description: about,
    type: required.length === 0 ? ["object", "null"] : "object",
    additionalProperties: false,
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, schemaOf(field)])),
  };
}

function tableSchema({ about, keySchema, of }: Table): JsonSchema {
  return {
    description: about,
    type: ["object", "null"],
    propertyNames: keySchema,
    additionalProperties: schemaOf(of),
  };
}
