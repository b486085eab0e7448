import { SkeinError } from "../core/errors.ts";

/** What tries again has to know of a message that a channel did not take. */
export interface Refusal {
  /** Trying again would give the same. */
  readonly permanent: boolean;
  /** How long the other side asked us to wait; `null`: it did not. */
  readonly retryAfterMs: number | null;
}

export type DeliveryError = SkeinError<"delivery_failed"> & Refusal;

/** A channel did not take a message. */
export function deliveryError(
  channel: string,
  problem: string,
  { permanent = false, retryAfterMs = null }: Partial<Refusal> = {},
): DeliveryError {
  const advice = permanent
    ? 'Correct what is wrong there, then ask for it again with "skein outbox retry"'
    : "It is tried again for a day";
  const error = new SkeinError("delivery_failed", { channel, problem, advice });
  return Object.assign(error, { permanent, retryAfterMs });
}
