import { createHash } from "node:crypto";
import { stringifyJson } from "../../core/json.ts";
import type { Refusal, ScriptedBlock, ScriptedReply, ScriptedUsage } from "./contract.ts";

/** Shared code for the twins: reading JSON, rejecting requests, counting tokens, and splitting text into events. */

/** Thrown by a check and caught by `catchRefusal` so that checks can be read from top to bottom. */
export class RefusedRequest extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.rule);
    this.refusal = refusal;
  }
}

/** Returns `null` if the check passed. */
export function catchRefusal(check: () => void): Refusal | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof RefusedRequest) return error.refusal;
    throw error;
  }
}

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the value if it is an object, otherwise an empty object. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** Returns the value if it is a list, otherwise an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Creates a set from space-separated names. */
export function nameSet(names: string): ReadonlySet<string> {
  return new Set(names.split(/\s+/));
}

/** Returns the first field that is not in `known`. */
export function findUnknownField(fields: Fields, known: ReadonlySet<string>): string | undefined {
  return Object.keys(fields).find((name) => !known.has(name) && fields[name] !== undefined);
}

export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Whether the text is a JSON object, as required for a call's arguments. */
export function isJsonObject(text: string): boolean {
  try {
    return isFields(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Returns a request's path without its query. */
export function pathOf(path: string): string {
  return path.split("?", 1)[0] ?? "";
}

export interface RequestSize {
  /** The approximate size of its JSON, in bytes. */
  readonly bytes: number;
  /** The size of only its strings and field names, in bytes. */
  readonly text: number;
  /** `false` if a string contains half a surrogate pair, which no server accepts in JSON. */
  readonly isWellFormed: boolean;
}

/** Not recursive, because a request can be nested more deeply than the stack allows. */
export function measureRequest(value: unknown): RequestSize {
  let bytes = 0;
  let text = 0;
  let isWellFormed = true;
  const addText = (part: string) => {
    text += Buffer.byteLength(part);
    bytes += 2;
    isWellFormed &&= part.isWellFormed();
  };
  const queue: unknown[] = [value];
  while (queue.length > 0) {
    const next = queue.pop();
    if (typeof next === "string") addText(next);
    else if (typeof next !== "object" || next === null) bytes += String(next).length;
    else {
      if (!Array.isArray(next)) for (const name of Object.keys(next)) addText(name);
      const values: readonly unknown[] = Object.values(next);
      bytes += 2 + 2 * values.length;
      for (const each of values) queue.push(each);
    }
  }
  return { bytes: bytes + text, text, isWellFormed };
}

/** Assumes four bytes per token, which is right for English and close enough for other languages. */
export function countTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

export function countTextTokens(text: string): number {
  return countTokens(Buffer.byteLength(text));
}

/** The number of tokens for an image of 1,024 by 1,024 pixels. Used for OpenAI and Mistral. */
const tokensPerImage = 765;

/**
 * Counts the tokens in a prompt for OpenAI and Mistral. An image in a data URL is counted as an image of typical size.
 */
export function countPromptTokens(content: readonly unknown[], tools: unknown): number {
  // Tool schemas are counted with their punctuation.
  let tokens = tools === undefined ? 0 : countTextTokens(stringifyJson(tools));
  const queue = [...content];
  while (queue.length > 0) {
    const value = queue.pop();
    if (typeof value === "string")
      tokens += value.startsWith("data:image/") ? tokensPerImage : countTextTokens(value);
    else if (typeof value === "object" && value !== null)
      for (const each of Object.values(value)) queue.push(each);
  }
  return tokens;
}

/** Returns the usage from the script if there is one, otherwise a rough count. `input` excludes cached tokens. */
export function countUsage(reply: ScriptedReply, promptTokens: number): Required<ScriptedUsage> {
  if (reply.usage !== undefined) return { cacheRead: 0, cacheWrite: 0, reasoning: 0, ...reply.usage };
  let output = 0;
  let reasoning = 0;
  for (const block of reply.content) {
    if (block.type === "thinking") reasoning += countTextTokens(block.thinking);
    else if (block.type === "text") output += countTextTokens(block.text);
    else output += countTextTokens(`${block.name}${JSON.stringify(block.arguments)}`);
  }
  return {
    input: promptTokens,
    output: Math.max(1, output + reasoning),
    cacheRead: 0,
    cacheWrite: 0,
    reasoning,
  };
}

export type ScriptedCall = Extract<ScriptedBlock, { type: "toolCall" }>;

export function callsOf(reply: ScriptedReply): ScriptedCall[] {
  return reply.content.filter((block) => block.type === "toolCall");
}

export function stopReasonOf(reply: ScriptedReply): "stop" | "length" | "toolUse" {
  return reply.stopReason ?? (callsOf(reply).length > 0 ? "toolUse" : "stop");
}

/** Returns the finish reason in OpenAI's and Mistral's chat completions. */
export function finishReasonOf(reply: ScriptedReply): string {
  const reason = stopReasonOf(reply);
  return reason === "toolUse" ? "tool_calls" : reason;
}

/** Twins have no clock, so every answer has this time, in seconds. */
export const createdAt = 1_700_000_000;

/** Returns letters and digits derived from the next ID. The same ID always gives the same result. */
export function alphanumericId(newId: () => string, length: number): string {
  return createHash("sha512").update(newId()).digest("hex").slice(0, length);
}

/** Formats one server-sent event. The name is omitted if the provider does not send one. */
export function sseEvent(
  data: unknown,
  options: { readonly name?: string; readonly end?: string } = {},
): string {
  const { name, end = "\n" } = options;
  return `${name === undefined ? "" : `event: ${name}${end}`}data: ${JSON.stringify(data)}${end}${end}`;
}

export const sseDone = "data: [DONE]\n\n";

/**
 * For Anthropic and Google. Pieces have at most 16 characters, and text of two or more characters is split into at
 * least two pieces.
 */
export function splitInShortPieces(text: string): string[] {
  return splitText(text, Math.max(1, Math.min(16, Math.floor(text.length / 2))));
}

/** For OpenAI and Mistral. There are at most eight pieces, each with at least four characters if possible. */
export function splitInFewPieces(text: string): string[] {
  return splitText(text, Math.max(4, Math.ceil(text.length / 8)));
}

/** A piece is one unit longer if it would otherwise split a surrogate pair. */
function splitText(text: string, length: number): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = start + length;
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1)) && /[\uDC00-\uDFFF]/.test(text.charAt(end))) end++;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}
