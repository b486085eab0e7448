import { SkeinError } from "../core/errors.ts";

/** What every store says in the same words. */

export function noSuchSession(sessionId: string): never {
  const advice = "`find` and `list` show what is there";
  throw new SkeinError("not_found", { what: "Session", name: sessionId, advice });
}

/** What only one session of a user can have, and another one has. */
export function taken(
  what: "session key" | "session id" | "label" | "uid",
  name: string,
  cause?: unknown,
): never {
  throw new SkeinError("conflict", { problem: `The ${what} "${name}" is taken` }, { cause });
}

/** Refuses a change that was decided by a version that is no longer. */
export function checkVersion(actual: number, expected: number | undefined): void {
  if (expected === undefined || expected === actual) return;
  throw new SkeinError("conflict", { problem: `The session has version ${actual}, not ${expected}` });
}
