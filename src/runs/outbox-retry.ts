import { escapeToLine, thrownText } from "../core/text.ts";
import type { OutboxRow } from "./contract.ts";

/** When a message that a channel did not take is tried again. */

export const firstDelayMs = 1000;
export const longestDelayMs = 5 * 60_000;
export const giveUpAfterMs = 24 * 3_600_000;
/** However old a row is: one that waited for a process that was off, or was asked for again, has its chances too. */
export const leastTries = 10;

const longestError = 500;

/** A failed try: what is known of it. */
export interface Failure {
  readonly text: string;
  /** Trying again would give the same. */
  readonly permanent: boolean;
  /** How long the other side asked us to wait; `null`: it did not. */
  readonly retryAfterMs: number | null;
}

/** What a thrown value says of a delivery. Whoever throws may add `permanent` and `retryAfterMs`. */
export function failureOf(error: unknown): Failure {
  const fields: { permanent?: unknown; retryAfterMs?: unknown } =
    typeof error === "object" && error !== null ? error : {};
  const { permanent, retryAfterMs } = fields;
  const asked = typeof retryAfterMs === "number" && Number.isFinite(retryAfterMs) && retryAfterMs > 0;
  return {
    text: escapeToLine(thrownText(error).slice(0, longestError)),
    permanent: permanent === true,
    retryAfterMs: asked ? retryAfterMs : null,
  };
}

/** When to try again: one second at first, twice as long each time, five minutes at the most, with full jitter. */
export function nextTry(
  row: Pick<OutboxRow, "attempts" | "createdAt">,
  failure: Failure,
  now: number,
  random: () => number,
): { readonly at: number } | "dead" {
  if (failure.permanent) return "dead";
  const ceiling = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(row.attempts, 30));
  const asked = Math.min(failure.retryAfterMs ?? 0, giveUpAfterMs);
  const at = now + Math.max(Math.round(random() * ceiling), asked);
  const isOver = at > row.createdAt + giveUpAfterMs && row.attempts + 1 >= leastTries;
  return isOver ? "dead" : { at };
}
