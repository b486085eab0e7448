import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { gatherStream } from "../../core/gather-bytes.ts";
import type { DeliveryTarget } from "../../runs/contract.ts";
import type { OutboundMessage, Receipt } from "../contract.ts";
import { deliveryError } from "../delivery-error.ts";
import {
  messageIdHeader,
  messageIdPattern,
  signatureHeader,
  signatureOf,
  timestampHeader,
} from "./signature.ts";

export interface OutboundOptions {
  readonly id: string;
  readonly secret: string;
  readonly url: string;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
}

const mostAnswerBytes = 64 * 1024;
const longestQuote = 200;
/** Refusals that pass: the other side may take the same message later. */
const passing = new Set([408, 425, 429]);

/** Sends a message to the url of a webhook. {@link deliveryError} for everything but a 2xx. */
export async function deliverByPost(
  message: OutboundMessage,
  target: DeliveryTarget,
  options: OutboundOptions,
): Promise<Receipt> {
  const response = await post(message, target, options);
  const { status } = response;
  const text = await answerText(response);
  if (response.ok) return { status, ...messageIdIn(text) };
  const said = text === null || text.trim() === "" ? "" : `: ${text.trim().slice(0, longestQuote)}`;
  const isRedirect = status >= 300 && status < 400;
  throw deliveryError(
    options.id,
    isRedirect
      ? `it answered ${status}, a redirect, and those are not followed`
      : `it answered ${status}${said}`,
    {
      permanent: isRedirect || (status >= 400 && status < 500 && !passing.has(status)),
      retryAfterMs: retryAfter(response.headers.get("retry-after"), options.clock.now()),
    },
  );
}

async function post(
  message: OutboundMessage,
  target: DeliveryTarget,
  { id, secret, url, clock, fetch }: OutboundOptions,
): Promise<Response> {
  const { text, sessionKey, agentId, runId, userId, idempotencyKey, signal } = message;
  const { to = null, accountId = null, threadId = null } = target;
  const body = JSON.stringify({ sessionKey, agentId, userId, runId, text, to, accountId, threadId });
  const timestamp = String(Math.floor(clock.now() / 1000));
  const messageId = headerId(idempotencyKey);
  const headers = {
    "content-type": "application/json",
    "idempotency-key": messageId,
    [timestampHeader]: timestamp,
    [messageIdHeader]: messageId,
    [signatureHeader]: signatureOf(secret, { timestamp, messageId, body }),
  };
  try {
    return await fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
  } catch (error) {
    throw deliveryError(
      id,
      signal.aborted ? "it did not answer in time" : `it was not reached (${reasonOf(error)})`,
    );
  }
}

/** What an idempotency key is called in a header, which takes no other characters. */
function headerId(idempotencyKey: string): string {
  if (messageIdPattern.test(idempotencyKey)) return idempotencyKey;
  return `sha256:${createHash("sha256").update(idempotencyKey).digest("hex")}`;
}

/** `null`: too long, or cut off. The status has been said by then, and counts. */
async function answerText(response: Response): Promise<string | null> {
  try {
    const bytes = await gatherStream(response.body, mostAnswerBytes);
    return bytes === null ? null : new TextDecoder().decode(bytes);
  } catch {
    return null;
  }
}

function messageIdIn(text: string | null): { messageId?: string } {
  try {
    const answer: unknown = JSON.parse(text ?? "");
    const messageId = typeof answer === "object" && answer !== null ? Reflect.get(answer, "messageId") : null;
    return typeof messageId === "string" && messageId.length <= longestQuote ? { messageId } : {};
  } catch {
    return {};
  }
}

/** In milliseconds, from seconds or a date. */
function retryAfter(header: string | null, now: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

/** The system's word for it (ECONNREFUSED), never the message: that may hold the url, and the url a secret. */
function reasonOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : null;
  const code: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "code") : null;
  return typeof code === "string" ? code : "the connection failed";
}
