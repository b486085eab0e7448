import { createHmac } from "node:crypto";
import type { Signatures, TwinApi } from "./contract.ts";

/** All twins share it, so that what one of them signed is good with the next, and with `checkRequest`. */
const secret = "the twins of skein";
const saltLength = 16;

/**
 * Signs what a model thought as the twin of its provider does, and tells whether a signature is the twin's own.
 * Anthropic's holds for one model and one text; the others carry their thought with them and hold for one model.
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
    api === "anthropic-messages" ? mac(api, model, thought).toString("base64") : seal(api, model, thought),
  verify: (api, model, thought, signature) =>
    api === "anthropic-messages"
      ? mac(api, model, thought).toString("base64") === signature
      : isSealed(api, model, signature),
};

/**
 * What a twin sends in place of thinking that nobody may read: the `data` of Anthropic's `redacted_thinking`.
 *
 * @example
 * ```ts
 * import { redactThinking } from "skein/testing";
 * const block = { type: "redacted_thinking", data: redactThinking("claude-sonnet-4-5", "not for your eyes") };
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
  const salt = mac(purpose, "", thought).subarray(0, saltLength);
  return Buffer.concat([salt, mac(purpose, model, salt.toString("hex"))]).toString("base64");
}

function isSealed(purpose: Purpose, model: string, text: string): boolean {
  const bytes = Buffer.from(text, "base64");
  const salt = bytes.subarray(0, saltLength);
  return bytes.subarray(saltLength).equals(mac(purpose, model, salt.toString("hex")));
}

function mac(purpose: Purpose, model: string, text: string): Buffer {
  return createHmac("sha256", secret).update(`${purpose}\0${model}\0${text}`).digest();
}
