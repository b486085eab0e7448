import { SkeinError } from "../core/errors.ts";

/** A channel did not take a message. What tries again reads `permanent` and `retryAfterMs`. */
export class DeliveryError extends SkeinError<"delivery_failed"> {
  /** Trying again would give the same. */
  readonly permanent: boolean;
  /** How long the other side asked us to wait; `null`: it did not. */
  readonly retryAfterMs: number | null;

  constructor(
    channel: string,
    problem: string,
    { permanent = false, retryAfterMs = null }: { permanent?: boolean; retryAfterMs?: number | null } = {},
  ) {
    const advice = permanent
      ? 'Correct what is wrong there, then ask for it again with "skein outbox retry"'
      : "It is tried again for a day";
    super("delivery_failed", { channel, problem, advice });
    this.permanent = permanent;
    this.retryAfterMs = retryAfterMs;
  }
}
