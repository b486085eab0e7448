import { decideAnew, SkeinError } from "../core/errors.ts";
import type { SessionRecord } from "./contract.ts";

/** What every store says in the same words. */

export function noSuchSession(sessionId: string): never {
  const advice = "Check its name, or create the session first; `sessions.list` shows those that exist";
  throw new SkeinError("not_found", { what: "Session", name: sessionId, advice });
}

/** What only one session of a user can have, and another one has. */
export function taken(
  what: "session key" | "session id" | "label" | "uid",
  name: string,
  cause?: unknown,
): never {
  throw new SkeinError(
    "conflict",
    { problem: `The ${what} "${name}" is taken`, advice: "Choose another, or use the session that has it" },
    { cause },
  );
}

/** Refuses what was decided for a session that nobody had used since. */
export function checkUnused({ sessionId, updatedAt }: SessionRecord, expected: number | undefined): void {
  if (expected === undefined || expected === updatedAt) return;
  throw new SkeinError("conflict", {
    problem: `Session ${sessionId} was used meanwhile`,
    advice: decideAnew,
  });
}

export function checkStillRemoved(removedAt: number, expected: number | undefined): void {
  if (expected === undefined || expected === removedAt) return;
  throw new SkeinError("conflict", {
    problem: "The session was taken out of the trash meanwhile",
    advice: decideAnew,
  });
}

/** Refuses a change that was decided by a version that is no longer. */
export function checkVersion(actual: number, expected: number | undefined): void {
  if (expected === undefined || expected === actual) return;
  throw new SkeinError("conflict", {
    problem: `The session has version ${actual}, not ${expected}`,
    advice: decideAnew,
  });
}
