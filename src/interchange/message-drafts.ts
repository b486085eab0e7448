import type { MessageDraft } from "../core/seal.ts";
import { isRecord } from "../core/shape.ts";
import { cutText, escapeToLine } from "../core/text.ts";

/** What readers of other programs' messages share. */

export type AnswerDraft = { type: "message"; message: Extract<MessageDraft, { role: "assistant" }> };
export type ResultDraft = { type: "message"; message: Extract<MessageDraft, { role: "toolResult" }> };

/** What the source does not know, a cost, is zero as the format has it. */
export const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

/** Arguments are an object with us; anything else is put into one. */
export function argumentsOf(input: unknown): Record<string, unknown> {
  if (isRecord(input)) return input;
  return input === undefined || input === null ? {} : { input };
}

/** A word from outside as it may stand in a sentence. */
export function shortType(type: string): string {
  return cutText(escapeToLine(type), 60);
}
