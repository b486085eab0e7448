import type { Redactor } from "../access/redaction/redactor.ts";
import { HookStop, messageWithoutPaths, SkeinError } from "../core/errors.ts";
import type { Claim, Outcome, Run, RunStore } from "../runs/contract.ts";
import { timeoutText } from "../runs/states.ts";
import { isFenced, RunStopped } from "../runs/worker.ts";

/**
 * Returns the outcome of a failed run, or `null` if this process must not end it. Errors from stores, hooks and tools
 * might contain secrets, so all text is redacted.
 */
export function outcomeOf(error: unknown, run: Run, redactor: Pick<Redactor, "redact">): Outcome | null {
  if (error instanceof RunStopped) return stoppedOutcome(error, run);
  if (error instanceof SkeinError && error.code === "fenced") return null;
  const code =
    error instanceof SkeinError ? error.code : error instanceof HookStop ? "hook_stopped" : "internal";
  const text = error instanceof HookStop ? error.message : messageWithoutPaths(error);
  return { state: "error", code, error: redactor.redact(text).text };
}

/** Returns the outcome of a stopped run, or `null` if another process owns the run or will claim it. */
function stoppedOutcome({ why }: RunStopped, run: Run): Outcome | null {
  switch (why) {
    case "aborted":
      return { state: "aborted", code: "aborted", error: "The run was aborted." };
    case "timeout":
      return { state: "timeout", code: "timeout", error: timeoutText(run) };
    case "lost":
    case "closing":
      return null;
  }
}

type Execute = (claim: Claim, signal: AbortSignal) => Promise<void>;

/** How long a stopped run can take to return. A user's hook or state module might hang. */
const defaultPatienceMs = 5000;

/**
 * Ends a stopped run even if its code does not respond to the signal. The fence rejects anything that the code writes
 * later.
 */
export function stopInTime(
  execute: Execute,
  runs: Pick<RunStore, "end" | "release">,
  report: (error: unknown) => void,
  patienceMs = defaultPatienceMs,
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
