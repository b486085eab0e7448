import type { Runs } from "./runs.ts";

/** A text that is looked at, as far as it has come. */
export interface Page {
  readonly text: string;
  /** Nothing comes behind it. */
  readonly isWhole: boolean;
  readonly runs: Runs;
  /** Where the last secret ended: what stands before is not looked back at. */
  lastEnd: number;
}

/** A secret at a place, or part of one: what to put there, unless it is its mask. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly instead?: string;
}

/** Whether there is a secret cannot be told before more has come. */
export const more = "more";

/** What a rule finds at a place; it looks back and ahead only so far, and asks for more where the text ends too early. */
export type Found = Span | null | typeof more;
