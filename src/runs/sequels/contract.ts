import type { AcceptRequest } from "../contract.ts";

/** What the end of a run sets off in another session. The books know who has the key by then. */
export interface SequelStep {
  /** Where it goes: who has the key, else the session of this id, else nobody. */
  readonly to: { readonly key: string; readonly parentSessionId?: string };
  readonly request: Omit<AcceptRequest, "session" | "pair">;
  /** Neither spawned the other: counted against loops. */
  readonly isBetweenStrangers: boolean;
}

export interface SequelFacts {
  readonly endedAt: number;
  /** A run of the asker yielded to wait for this reply. */
  readonly isAskerAsleep?: boolean;
}
