import type { WireError, WireErrorCode } from "../protocol/errors.ts";

/**
 * What a gateway refused, or why nobody knows what it did. `retryable`: the same again may do better; `reason`: the code
 * of `docs/errors.md` behind this one, where that says more.
 *
 * @example
 * ```ts
 * import { CallError, type SkeinClient } from "skein/client";
 * async function nameOf(client: SkeinClient, key: string): Promise<string | null> {
 *   try {
 *     return (await client.call("sessions.get", { key })).displayName ?? null;
 *   } catch (error) {
 *     if (error instanceof CallError && error.code === "not_found") return null;
 *     throw error;
 *   }
 * }
 * ```
 */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly code: WireErrorCode;
  readonly details: NonNullable<WireError["details"]>;
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;
  readonly reason: string | null;

  constructor(
    { code, message, details = {}, retryable = false, retryAfterMs }: WireError,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.details = details;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs ?? null;
    this.reason = details.reason ?? null;
  }
}

/** The same later may do better, whoever asks: the gateway is starting, stopping or has too much to do. */
export function isPassing(error: unknown): error is CallError {
  if (!(error instanceof CallError)) return false;
  return error.retryable || ["rate_limited", "unavailable", "internal"].includes(error.code);
}

export function unavailable(message: string, retryable = true): CallError {
  return new CallError({ code: "unavailable", message, retryable });
}
