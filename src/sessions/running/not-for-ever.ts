import type { Claim, RunStore } from "../../runs/contract.ts";
import { isFenced, RunStopped } from "../../runs/worker.ts";
import { stoppedOutcome } from "./outcome.ts";

type Execute = (claim: Claim, signal: AbortSignal) => Promise<void>;

/** So long is waited for whoever was told to stop: a hook or a state module of the user's may hang. */
const usualPatienceMs = 5000;

/**
 * Runs are stopped even where something does not listen: it is left behind, and the run ended without it. What it writes
 * later is refused by the fence.
 */
export function notForEver(
  execute: Execute,
  runs: Pick<RunStore, "end" | "release">,
  report: (error: unknown) => void,
  patienceMs = usualPatienceMs,
): Execute {
  return async (claim, signal) => {
    const late = Promise.withResolvers<"late">();
    let timer: NodeJS.Timeout | undefined;
    const onAbort = () => {
      timer = setTimeout(() => late.resolve("late"), patienceMs);
    };
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const work = execute(claim, signal);
    const first = await Promise.race([work, late.promise]).finally(() => {
      signal.removeEventListener("abort", onAbort);
      clearTimeout(timer);
    });
    if (first !== "late") return;
    work.catch(report);
    await leave(claim, signal, runs);
  };
}

async function leave(
  { run, held }: Claim,
  { reason }: AbortSignal,
  runs: Pick<RunStore, "end" | "release">,
): Promise<void> {
  const outcome = reason instanceof RunStopped ? stoppedOutcome(reason, run) : null;
  try {
    if (outcome !== null) await runs.end(held, outcome);
    else if (reason instanceof RunStopped && reason.why === "closing") await runs.release(held);
  } catch (error) {
    if (!isFenced(error)) throw error;
  }
}
