import type { JSONObject, JSONValue } from "@ai-sdk/provider";
import { fitSchema } from "./fit-schema.ts";
import { isJsonObject, parsedJson } from "./json.ts";

/**
 * The arguments that a person wrote behind the name of a tool: a JSON object, `key=value` pairs, or the one text that the
 * tool asks for. What the tool requires beside is filled in. `null`: not to be read.
 */
export function argumentsIn(text: string, schema: unknown): JSONObject | null {
  const asked = fitSchema(schema);
  const required = isJsonObject(asked) ? asked : {};
  if (text === "") return required;
  if (text.startsWith("{")) {
    const given = objectIn(text);
    return given === null ? null : { ...required, ...given };
  }
  const pairs = pairsIn(text);
  if (pairs !== null) return { ...required, ...pairs };
  const only = onlyText(schema);
  return only === null ? null : { ...required, [only]: text };
}

function objectIn(text: string): JSONObject | null {
  const value = parsedJson(text);
  return isJsonObject(value) ? value : null;
}

const pair = /([\w.-]{1,64})=("(?:[^"\\]|\\.){0,4000}"|[^\s"，,]{1,4000})[\s,，]{0,9}/uy;

/** The whole text, pair by pair. */
function pairsIn(text: string): JSONObject | null {
  const pairs: [string, JSONValue][] = [];
  let at = 0;
  while (at < text.length) {
    pair.lastIndex = at;
    const [whole, name, value] = pair.exec(text) ?? [];
    if (whole === undefined || name === undefined || value === undefined) return null;
    pairs.push([name, parsedJson(value) ?? value]);
    at += whole.length;
  }
  return Object.fromEntries(pairs);
}

/** The one field that a text can only be meant for. */
function onlyText(schema: unknown): string | null {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
    readonly required?: readonly string[];
  };
  const names = required.length > 0 ? required : Object.keys(properties);
  const [name] = names;
  return names.length === 1 && name !== undefined && properties[name]?.type === "string" ? name : null;
}
