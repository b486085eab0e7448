import { stringifyJson } from "../../core/json.ts";

/** Readers of JSON for the twins that speak OpenAI's manner: Chat Completions, Responses and Mistral. */

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The list, or an empty one where there is none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isBlank(text: string): boolean {
  return !/\S/.test(text);
}

/** Whether a text is a JSON object, as arguments of a call are. */
export function isJsonObject(text: string): boolean {
  try {
    return isFields(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** A type as OpenAI names it in its complaints. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Names in quotation marks, as OpenAI lists them: `'a', 'b', and 'c'`. */
export function quotedList(names: readonly string[]): string {
  const quoted = names.map((name) => `'${name}'`);
  if (quoted.length < 3) return quoted.join(" and ");
  return `${quoted.slice(0, -1).join(", ")}, and ${quoted.at(-1)}`;
}

const bytesPerToken = 4;
/** One of 1,024 by 1,024 pixels. */
const tokensPerImage = 765;

/** Roughly; four bytes a token. */
export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** What every text inside comes to, an image in a data URL counted as one of usual size. Without recursion. */
export function tokensOf(...values: readonly unknown[]): number {
  let tokens = 0;
  const waiting = [...values];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string")
      tokens += value.startsWith("data:image/") ? tokensPerImage : textTokens(value);
    else if (typeof value === "object" && value !== null) {
      for (const each of Object.values(value)) waiting.push(each);
    }
  }
  return tokens;
}

/** What the definitions of tools come to: their schemas count with all their signs. */
export function toolTokens(tools: unknown): number {
  return tools === undefined ? 0 : textTokens(stringifyJson(tools));
}
