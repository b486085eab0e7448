import { createHmac, timingSafeEqual } from "node:crypto";

/** How messages of a webhook are signed, both ways: HMAC-SHA256 over `timestamp.messageId.rawBody`. */

export const timestampHeader = "x-skein-timestamp";
export const messageIdHeader = "x-skein-message-id";
export const signatureHeader = "x-skein-signature";

/** How far the clocks of both sides may be apart. */
export const mostSkewMs = 5 * 60_000;

/**
 * Ids of messages: printable ASCII without quotes, braces and backslashes. With them a signature of one message would
 * fit another, whose id goes on into what was the body.
 */
export const messageIdPattern = /^[!#-[\]-z|~]{1,200}$/;

export interface Signed {
  /** Seconds since 1970, in digits. */
  readonly timestamp: string;
  /** Empty: it stands in the body. */
  readonly messageId: string;
  readonly body: Uint8Array | string;
}

/** For example `sha256=5f1c…`. */
export function signatureOf(secret: string, signed: Signed): string {
  return `sha256=${macOf(secret, signed).toString("hex")}`;
}

const signaturePattern = /^sha256=([0-9a-fA-F]{64})$/;

/** Whether a header can be a signature at all, which is known before there is a body. */
export function isSignature(header: string): boolean {
  return signaturePattern.test(header);
}

/** Compares in constant time. */
export function isSignedBy(secret: string, signed: Signed, signature: string): boolean {
  const [, hex] = signaturePattern.exec(signature) ?? [];
  return hex !== undefined && timingSafeEqual(macOf(secret, signed), Buffer.from(hex, "hex"));
}

/** Whether a timestamp is one, and near enough to now. */
export function isTimely(timestamp: string, now: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(Number(timestamp) * 1000 - now) <= mostSkewMs;
}

function macOf(secret: string, { timestamp, messageId, body }: Signed): Buffer {
  return createHmac("sha256", secret).update(`${timestamp}.${messageId}.`).update(body).digest();
}
