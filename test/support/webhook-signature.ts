import { createHmac } from "node:crypto";

/** The signature of a webhook message, as docs/channels.md describes it. */
export function signatureOf(
  secret: string,
  { timestamp, messageId, body }: { timestamp: string; messageId: string; body: string | Uint8Array },
): string {
  const mac = createHmac("sha256", secret).update(`${timestamp}.${messageId}.`).update(body);
  return `sha256=${mac.digest("hex")}`;
}
