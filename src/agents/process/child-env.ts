import type { Environment } from "./contract.ts";

const inherited = ["PATH", "HOME", "LANG"];

/** By it a process is known as ours when it has left its group. */
export const markName = "SKEIN_CHILD";

/** PATH, HOME and LANG of ours, what was given, and nothing else. */
export function childEnv(
  own: Environment,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const ours = inherited.flatMap((name) => {
    const value = own[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(ours), ...given };
}
