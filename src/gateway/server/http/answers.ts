import type { ServerResponse } from "node:http";
import type { WireError } from "../../../protocol/errors.ts";
import type { FixedHeaders } from "../../auth/headers.ts";
import { apiHeaders } from "../../auth/headers.ts";
import { errorHeaders, statusOf } from "../door/refusals.ts";

/** How answers are written. A text is made once, and goes out with its length. */

export const jsonType = "application/json; charset=utf-8";

export interface AnswerText {
  readonly status?: number;
  readonly contentType?: string;
  readonly headers?: FixedHeaders;
  readonly text: string;
}

const apiList = listOf(apiHeaders);
const fewBytes = 64 * 1024;

export interface AnswerRules {
  /** The connection is not to be used again. */
  readonly isLast: boolean;
  readonly stalledMs: number;
}

export function sendText(response: ServerResponse, answer: AnswerText, rules: AnswerRules): void {
  if (response.headersSent || response.destroyed) return;
  const { status = 200, contentType = jsonType, headers, text } = answer;
  const length = Buffer.byteLength(text);
  const fixed = headers === undefined ? apiList : listOf(headers);
  const last = rules.isLast ? ["connection", "close"] : [];
  response.writeHead(status, [
    ...fixed,
    "content-type",
    contentType,
    "content-length",
    String(length),
    ...last,
  ]);
  if (length > fewBytes) giveUpOnStall(response, rules.stalledMs);
  // What has a byte for each character is written without being encoded.
  response.end(text, length === text.length ? "latin1" : "utf8");
}

export function sendError(response: ServerResponse, error: WireError, rules: AnswerRules): void {
  const headers = { ...apiHeaders, ...errorHeaders(error) };
  sendText(response, { status: statusOf(error), headers, text: JSON.stringify({ error }) }, rules);
}

/** A client that reads nothing of a long answer would have it held for good. */
export function giveUpOnStall(response: ServerResponse, stalledMs: number): void {
  response.setTimeout(stalledMs, () => response.destroy());
}

function listOf(headers: FixedHeaders): string[] {
  return Object.entries(headers).flat();
}
