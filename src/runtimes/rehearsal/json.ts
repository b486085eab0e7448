import type { JSONObject, JSONValue } from "@ai-sdk/provider";

export function isJsonObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `undefined`: it is no JSON. */
export function parsedJson(text: string): JSONValue | undefined {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
