import { hash } from "node:crypto";
import type { Signatures, TwinApi } from "./contract.ts";

/** All twins share it, so that what one of them signed is good with the next, and with `checkRequest`. */
const secret = "the twins of skein";
/** In hexadecimal digits. */
const saltLength = 32;

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
    api === "anthropic-messages" ? mac(api, model, thought, "base64") : seal(api, model, thought),
  verify: (api, model, thought, signature) =>
    api === "anthropic-messages"
      ? mac(api, model, thought, "base64") === signature
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
  const salt = mac(purpose, "", thought).slice(0, saltLength);
  return Buffer.from(`${salt}${mac(purpose, model, salt)}`, "hex").toString("base64");
}

function isSealed(purpose: Purpose, model: string, text: string): boolean {
  const digits = Buffer.from(text, "base64").toString("hex");
  const salt = digits.slice(0, saltLength);
  return digits.slice(saltLength) === mac(purpose, model, salt);
}

/** Keyed twice over, as an HMAC is; several times as fast as one, and it is asked for in every request of a history. */
function mac(purpose: Purpose, model: string, text: string, form: "hex" | "base64" = "hex"): string {
  return hash("sha256", `${secret}${hash("sha256", `${secret}${purpose}\0${model}\0${text}`)}`, form);
}
