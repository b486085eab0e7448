import { createHash } from "node:crypto";
import type { ScriptedBlock, ScriptedReply } from "./contract.ts";
import { textTokens } from "./openai-shared-values.ts";

/** What a script says, in the terms of OpenAI and Mistral. */

/** A time that every answer has: twins have no clock. */
export const createdAt = 1_700_000_000;

/** Letters and digits, as many as asked for, made from the next id; the same id gives the same ones. */
export function alphanumericId(newId: () => string, length: number): string {
  return createHash("sha512").update(newId()).digest("hex").slice(0, length);
}

/** A text as it would come in: up to eight pieces of four characters or more, no character cut in two. */
export function piecesOf(text: string): string[] {
  const size = Math.max(4, Math.ceil(text.length / 8));
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + size, text.length);
    if (/[\uDC00-\uDFFF]/.test(text.charAt(end)) && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end++;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

export type ScriptedCall = Extract<ScriptedBlock, { type: "toolCall" }>;

export function callsOf(reply: ScriptedReply): ScriptedCall[] {
  return reply.content.filter((block) => block.type === "toolCall");
}

export function stopReasonOf(reply: ScriptedReply): "stop" | "length" | "toolUse" {
  return reply.stopReason ?? (callsOf(reply).length > 0 ? "toolUse" : "stop");
}

/** The finish reason of both kinds of chat completions. */
export function finishReasonOf(reply: ScriptedReply): string {
  const reason = stopReasonOf(reply);
  return reason === "toolUse" ? "tool_calls" : reason;
}

export interface CountedUsage {
  /** With what was read from the cache and written to it, as OpenAI and Mistral count. */
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** With the reasoning. */
  readonly output: number;
  readonly reasoning: number;
}

/** The script's own count; `input` in it is what no cache had. Else a rough one. */
export function usageOf(reply: ScriptedReply, requestTokens: number): CountedUsage {
  const reasoning = sum(
    reply.content.map((block) => (block.type === "thinking" ? textTokens(block.thinking) : 0)),
  );
  const output = reasoning + sum(reply.content.map(visibleTokens));
  const { usage } = reply;
  if (usage === undefined) return { input: requestTokens, cacheRead: 0, cacheWrite: 0, output, reasoning };
  const { cacheRead = 0, cacheWrite = 0 } = usage;
  const input = usage.input + cacheRead + cacheWrite;
  return { input, cacheRead, cacheWrite, output: usage.output, reasoning: usage.reasoning ?? 0 };
}

function visibleTokens(block: ScriptedBlock): number {
  if (block.type === "text") return textTokens(block.text);
  return block.type === "toolCall" ? textTokens(`${block.name}${JSON.stringify(block.arguments)}`) : 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
