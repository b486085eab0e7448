/** What a target is: which of our metrics is compared with which other metric, and the required ratio. */

export interface Place {
  readonly row: string;
  readonly case: string;
  readonly side: string;
  readonly figure: string;
}

export type Goal =
  /** The other side takes at least this many times as long. */
  | { readonly kind: "faster"; readonly times: number }
  /** Our throughput is at least this many times the other's. */
  | { readonly kind: "more"; readonly times: number }
  /** We take at most this many times as long as the other side. */
  | { readonly kind: "within"; readonly times: number }
  /** Our value exceeds the other's by at least this, or is at most this much smaller if it is negative. */
  | { readonly kind: "above"; readonly by: number }
  | { readonly kind: "at most"; readonly value: number }
  | { readonly kind: "at least"; readonly value: number }
  /**
   * Only a comparison, not a target: how many times as long the other side takes, or how many times its throughput ours
   * is.
   */
  | { readonly kind: "shown"; readonly as: "faster" | "more" };

export interface Target {
  readonly what: string;
  /** The line of the first page that shows this target. It shows the peer with the smallest ratio. */
  readonly headline?: string;
  readonly us: Place;
  readonly against?: Place;
  readonly goal: Goal;
}

export const full = "skein (full)";
export const os = "skein (os)";

export function at(row: string, name: string, side: string, figure = "ms"): Place {
  return { row, case: name, side, figure };
}

export function atMost(what: string, us: Place, value: number): Target {
  return { what, us, goal: { kind: "at most", value } };
}

/** An absolute limit, followed by a comparison with each peer. */
export function limitBesidePeers(
  headline: string,
  us: Place,
  limit: number,
  peers: readonly string[],
): Target[] {
  return [
    { ...atMost(headline, us, limit), headline },
    ...peers.map(
      (side): Target => ({
        what: headline,
        headline,
        us,
        against: { ...us, side },
        goal: { kind: "shown", as: "faster" },
      }),
    ),
  ];
}

/**
 * The state of a target: the ratio to print and the factor by which it is missed. A factor of 1 or less means that it
 * is reached, and `null` that there is no target.
 */
export function judge(
  goal: Goal,
  us: number,
  other: number | null,
): { ratio: number | null; missedBy: number | null } {
  if (goal.kind === "at most")
    return { ratio: other === null ? null : other / us, missedBy: us <= goal.value ? 0 : us / goal.value };
  if (goal.kind === "at least")
    return { ratio: other === null ? null : us / other, missedBy: us >= goal.value ? 0 : goal.value / us };
  if (other === null) return { ratio: null, missedBy: null };
  switch (goal.kind) {
    case "faster":
      return { ratio: other / us, missedBy: (goal.times * us) / other };
    case "more":
      return { ratio: us / other, missedBy: (goal.times * other) / us };
    case "within":
      return { ratio: us / other, missedBy: us / (goal.times * other) };
    case "above":
      return { ratio: us / other, missedBy: (other + goal.by) / us };
    case "shown":
      return { ratio: goal.as === "faster" ? other / us : us / other, missedBy: null };
  }
}
