import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { Signatures, TwinApi } from "./contract.ts";

/** Shared by all twins so that each twin and `checkRequest` accept the signatures of every other twin. */
const secret = "the twins of skein";
/** In hexadecimal digits. */
const saltLength = 32;

/**
 * Signs thinking as the provider's twin does, and verifies that a signature comes from a twin. An Anthropic signature
 * is valid for one model and one text. Other signatures are valid for one model.
 *
 * @example
 * ```ts
 * import { signatures } from "skein/testing";
 * const thinking = "Two trains, one bridge.";
 * const signature = signatures.sign("anthropic-messages", "claude-sonnet-4-5", thinking);
 * const block = { type: "thinking", thinking, signature };
 * ```
 */
export const signatures: Signatures = {
  sign: (api, model, thought) =>
    api === "anthropic-messages" ? mac(api, model, thought, "base64") : seal(api, model, thought),
  verify: (api, model, thought, signature) =>
    api === "anthropic-messages"
      ? mac(api, model, thought, "base64") === signature
      : isSealed(api, model, signature),
};

/**
 * Returns the `data` for Anthropic's `redacted_thinking`, which represents thinking that the client cannot read.
 *
 * @example
 * ```ts
 * import { redactThinking } from "skein/testing";
 * const block = { type: "redacted_thinking", data: redactThinking("claude-sonnet-4-5", "hidden") };
 * ```
 */
export function redactThinking(model: string, thought: string): string {
  return seal("redacted", model, thought);
}

export function isRedactedThinking(model: string, data: string): boolean {
  return isSealed("redacted", model, data);
}

type Purpose = TwinApi | "redacted";

function seal(purpose: Purpose, model: string, thought: string): string {
  const salt = mac(purpose, "", thought).slice(0, saltLength);
  return Buffer.from(`${salt}${mac(purpose, model, salt)}`, "hex").toString("base64");
}

function isSealed(purpose: Purpose, model: string, text: string): boolean {
  const digits = Buffer.from(text, "base64").toString("hex");
  const salt = digits.slice(0, saltLength);
  return digits.slice(saltLength) === mac(purpose, model, salt);
}

/**
 * Keyed twice, like an HMAC, but several times faster. Speed matters because every request verifies the signatures in
 * its whole history.
 */
function mac(purpose: Purpose, model: string, text: string, form: "hex" | "base64" = "hex"): string {
  return hash("sha256", `${secret}${hash("sha256", `${secret}${purpose}\0${model}\0${text}`)}`, form);
}

const reasoningHead = Buffer.from([0x80, 0, 0, 0, 0]);
const macLength = 32;

/**
 * Returns OpenAI's encrypted reasoning: an opaque string that the twin accepts only from the same model and for the same
 * item (Reasoning guide, "Encrypted reasoning items"). Its first bytes match those of the real format.
 */
export function sealReasoning(model: string, itemId: string): string {
  const id = Buffer.from(itemId);
  return Buffer.concat([reasoningHead, reasoningMac(model, id), id]).toString("base64url");
}

/** Returns the ID of the item that the text was sealed for, or `null` if it is forged, damaged or another model's. */
export function openReasoning(model: string, encrypted: string): string | null {
  const bytes = Buffer.from(encrypted, "base64url");
  const idAt = reasoningHead.length + macLength;
  if (bytes.length < idAt || bytes.toString("base64url") !== encrypted) return null;
  const id = bytes.subarray(idAt);
  return timingSafeEqual(bytes.subarray(reasoningHead.length, idAt), reasoningMac(model, id))
    ? id.toString()
    : null;
}

function reasoningMac(model: string, id: Buffer): Buffer {
  return createHmac("sha256", secret).update(`${model.length}:${model}:`).update(id).digest();
}
