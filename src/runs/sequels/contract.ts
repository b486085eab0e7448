import type { AcceptRequest, Outcome, Run } from "../contract.ts";

/** What the end of a run sets off: input for one session. */
export interface SequelStep {
  /** Who gets it. `parentSessionId`: who has it instead, where nobody has the key any more. */
  readonly to: { readonly key: string; readonly parentSessionId?: string };
  readonly request: Omit<AcceptRequest, "session" | "pair">;
  /** Neither spawned the other: counted against loops. */
  readonly isBetweenStrangers: boolean;
}

/**
 * What follows from a run that has ended; `null`: nothing does. It is called inside the transaction that ends the run: pure,
 * and told all of it. Of input that was merged, what was used and when it began are those of the turn that took it.
 */
export type SequelOf = (run: Run, outcome: Outcome) => SequelStep | null;
