import { createHash } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import { codeOf, SkeinError } from "../core/errors.ts";
import { gatherStream } from "../core/gather-bytes.ts";
import type { DeliveryTarget } from "../runs/contract.ts";
import type { Channel, OutboundMessage, Receipt } from "./contract.ts";
import { deliveryError } from "./contract.ts";
import type { InboundOptions } from "./webhook-inbound.ts";
import {
  handleInbound,
  messageIdHeader,
  messageIdPattern,
  signatureHeader,
  signatureOf,
  timestampHeader,
} from "./webhook-inbound.ts";

export interface WebhookOptions
  extends Omit<InboundOptions, "clock" | "report">,
    Partial<Pick<InboundOptions, "clock" | "report">> {
  /** The URL that messages are sent to, or `null` for a channel that only receives. */
  readonly url: string | null;
  readonly fetch?: typeof globalThis.fetch;
}

interface OutboundOptions {
  readonly id: string;
  readonly secret: string;
  readonly url: string;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
}

export interface Webhook extends Channel {
  /** Receives a signed message. */
  handler(request: Request): Promise<Response>;
  /** `true` if the channel has no URL to send to. */
  readonly isInboundOnly: boolean;
}

/** Creates a channel that sends and receives signed messages over HTTP. */
export function createWebhook(given: WebhookOptions): Webhook {
  const options = { clock: systemClock, fetch: globalThis.fetch, report: () => undefined, ...given };
  const { id, secret } = options;
  if (secret === "") throw invalidChannel(id, "has an empty secret", `Set channels.${id}.secret`);
  const url = options.url === null ? null : checkUrl(id, options.url);
  return {
    id,
    handler: (request) => handleInbound(request, options),
    isInboundOnly: url === null,
    deliver: async (message, target) => {
      if (url !== null) return deliverByPost(message, target, { ...options, url });
      throw deliveryError(id, `it has no URL (channels.${id}.url)`, { permanent: true });
    },
  };
}

/** Error messages do not contain the URL, because it might contain a secret. */
function checkUrl(id: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    throw invalidChannel(id, "has a url that is not http or https", `Correct channels.${id}.url`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalidChannel(id, "has a url with a user or password", "Remove both; messages are signed instead");
  }
  return url.href;
}

function invalidChannel(id: string, problem: string, advice: string): SkeinError {
  return new SkeinError("invalid_arguments", { problem: `Channel "${id}" ${problem}`, advice });
}

const maxResponseBytes = 64 * 1024;
const maxQuotedChars = 200;
/** Client errors after which a retry might succeed. */
const retryableStatuses = new Set([408, 425, 429]);

/** Throws a {@link deliveryError} for every status except 2xx. */
async function deliverByPost(
  message: OutboundMessage,
  target: DeliveryTarget,
  options: OutboundOptions,
): Promise<Receipt> {
  const response = await post(message, target, options);
  const { status } = response;
  const text = await readText(response);
  if (response.ok) return { status, ...messageIdIn(text) };
  const quote = text.trim() === "" ? "" : `: ${text.trim().slice(0, maxQuotedChars)}`;
  const isRedirect = status >= 300 && status < 400;
  throw deliveryError(
    options.id,
    isRedirect
      ? `it responded with ${status}, and redirects are not followed`
      : `it responded with ${status}${quote}`,
    {
      permanent: isRedirect || (status >= 400 && status < 500 && !retryableStatuses.has(status)),
      retryAfterMs: parseRetryAfter(response.headers.get("retry-after"), options.clock.now()),
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
    // Includes only the system's error code, such as ECONNREFUSED, because the message might contain the URL and
    // therefore a secret.
    const reason = codeOf((error as Error | null)?.cause) || "the connection failed";
    throw deliveryError(
      id,
      signal.aborted ? "it did not respond in time" : `it could not be reached (${reason})`,
    );
  }
}

/** Returns the idempotency key, or its hash if it contains characters that are not allowed in a header. */
function headerId(idempotencyKey: string): string {
  if (messageIdPattern.test(idempotencyKey)) return idempotencyKey;
  return `sha256:${createHash("sha256").update(idempotencyKey).digest("hex")}`;
}

/**
 * Returns a response's body. If it is too long or incomplete, returns an empty string instead of failing, because the
 * status has already arrived.
 */
async function readText(response: Response): Promise<string> {
  try {
    const bytes = await gatherStream(response.body, maxResponseBytes);
    return bytes === null ? "" : new TextDecoder().decode(bytes);
  } catch {
    return "";
  }
}

function messageIdIn(text: string): { messageId?: string } {
  try {
    const body = JSON.parse(text) as { readonly messageId?: unknown } | null;
    const messageId = body?.messageId;
    return typeof messageId === "string" && messageId.length <= maxQuotedChars ? { messageId } : {};
  } catch {
    return {};
  }
}

/** Parses a `Retry-After` header, which contains seconds or a date. */
function parseRetryAfter(header: string | null, now: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
