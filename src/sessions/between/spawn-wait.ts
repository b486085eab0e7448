import type { Run } from "../../runs/contract.ts";
import type { BetweenDeps, Caller } from "./contract.ts";
import { isTakenUpAgain } from "./send-wait.ts";

/**
 * The child's first run, if it has ended and its reply is ours: once it has, or once `until` says that nobody need wait any
 * longer. `late`: it is announced instead. Whoever waits in a run that goes on elsewhere leaves the wait as it is, and the
 * same call waits again there.
 */
export async function awaitChild(
  deps: BetweenDeps,
  caller: Caller,
  runId: string,
  until: () => Promise<unknown> = () => deps.untilEnded(runId, caller.signal),
): Promise<Run | "late" | "circle"> {
  const { runs } = deps;
  const standing = await runs.replyWait(runId);
  if (standing?.state === "late") return "late";
  if (standing?.state !== "taken") {
    const entered = await untilOver(deps, caller, runId, until);
    if ((await runs.stopAwaiting(runId)) === "late") return entered ? "late" : "circle";
  }
  return (await runs.get(runId, caller.userId)) ?? "late";
}

/** `false`: the wait would have closed a circle. */
async function untilOver(
  deps: BetweenDeps,
  caller: Caller,
  runId: string,
  until: () => Promise<unknown>,
): Promise<boolean> {
  const { run, signal, whileWaiting } = caller;
  try {
    return (await whileWaiting([runId], until)).entered;
  } catch (error) {
    if (run === null && signal.aborted) return true;
    if (!isTakenUpAgain(caller, error)) await deps.runs.stopAwaiting(runId).catch(deps.report);
    throw error;
  }
}
