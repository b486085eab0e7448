import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * What stands for a model's reasoning where nothing is stored: an opaque text that only the same model of the twin
 * accepts, and only for the same item (Reasoning guide, "Encrypted reasoning items"). It begins as the real one does.
 */

const secret = "the twin's own";
const head = Buffer.from([0x80, 0, 0, 0, 0]);
const macLength = 32;

export function sealReasoning(model: string, itemId: string): string {
  const id = Buffer.from(itemId);
  return Buffer.concat([head, macOf(model, id), id]).toString("base64url");
}

/** Whether this model of the twin made it. */
export function isSealed(model: string, encrypted: string): boolean {
  return sealedItem(model, encrypted) !== null;
}

/** The item that it was made for; `null`: forged, damaged, or of another model. */
export function sealedItem(model: string, encrypted: string): string | null {
  const bytes = Buffer.from(encrypted, "base64url");
  if (bytes.length < head.length + macLength || bytes.toString("base64url") !== encrypted) return null;
  const id = bytes.subarray(head.length + macLength);
  const mac = bytes.subarray(head.length, head.length + macLength);
  return timingSafeEqual(mac, macOf(model, id)) ? id.toString() : null;
}

function macOf(model: string, id: Buffer): Buffer {
  return createHmac("sha256", secret).update(`${model.length}:${model}:`).update(id).digest();
}
