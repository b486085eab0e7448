import type { Principal } from "../auth/principal.ts";
import { isAdmin, isForAll } from "../auth/principal.ts";

/** What makes readers alike: all of one kind get the same frame. */
export interface ReaderKind {
  readonly isAdmin: boolean;
  readonly allUsers: boolean;
  /** Its place among the kinds. */
  readonly index: number;
}

export const readerKinds: readonly ReaderKind[] = [
  { isAdmin: false, allUsers: false, index: 0 },
  { isAdmin: true, allUsers: false, index: 1 },
  { isAdmin: false, allUsers: true, index: 2 },
  { isAdmin: true, allUsers: true, index: 3 },
];

export function readerKindOf(principal: Principal): ReaderKind {
  const index = (isAdmin(principal) ? 1 : 0) + (isForAll(principal) ? 2 : 0);
  return readerKinds[index] as ReaderKind;
}
