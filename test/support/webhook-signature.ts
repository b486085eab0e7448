import { createHmac } from "node:crypto";

/** Returns the signature of a webhook message, as described in docs/channels.md. */
export function signatureOf(
  secret: string,
  { timestamp, messageId, body }: { timestamp: string; messageId: string; body: string | Uint8Array },
): string {
  const mac = createHmac("sha256", secret).update(`${timestamp}.${messageId}.`).update(body);
  return `sha256=${mac.digest("hex")}`;
}
