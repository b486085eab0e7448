import { decideAnew, SkeinError } from "../core/errors.ts";
import { sessionIdProblem } from "../core/names.ts";

/** The rules for state values, the same in every store. */

/** State keys become file names, and follow the rules of session ids. */
export function checkStateKey(key: string): void {
  const problem = sessionIdProblem(key);
  if (problem === null) return;
  throw new SkeinError("invalid_arguments", {
    problem: `The state key "${key}" is not valid: ${problem}`,
    advice: "Use letters, digits, dot, underscore and hyphen",
  });
}

/** The version that a set makes; `conflict` where it was decided by one that is no longer. `null` is absent. */
export function nextVersion(
  key: string,
  actual: number | null,
  { ifVersion }: { readonly ifVersion?: number | null },
): number {
  if (ifVersion === undefined || ifVersion === actual) return (actual ?? 0) + 1;
  const say = (version: number | null) => (version === null ? "absent" : `version ${version}`);
  throw new SkeinError("conflict", {
    problem: `State "${key}" is ${say(actual)}, not ${say(ifVersion)}`,
    advice: decideAnew,
  });
}
