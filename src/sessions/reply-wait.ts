import { sleep } from "../core/concurrency.ts";
import { codeOf, isDiskFault, SkeinError } from "../core/errors.ts";
import type { Run } from "../runs/contract.ts";
import type { App } from "./app.ts";
import type { Caller } from "./session-access.ts";

/**
 * The result of waiting for a reply. `late` means that the wait timed out and the reply will arrive as a message.
 * `circle` means that waiting would cause a deadlock. `unawaited` means that no wait is registered.
 */
type ReplyAwaited =
  | { readonly how: "ended"; readonly run: Run }
  | { readonly how: "late" | "circle" | "unawaited" };

type WaitApp = Pick<App, "runs" | "clock" | "watcher" | "report" | "closed">;

/**
 * Waits for an accepted run's reply until the registered deadline. A retried call waits for the remaining time. Only
 * the ledger decides whether the reply goes to the waiter or is delivered as a message.
 */
export async function awaitReply(app: WaitApp, caller: Caller, runId: string): Promise<ReplyAwaited> {
  const wait = await onceAnswered(app, caller, () => app.runs.replyWait(runId));
  if (wait === null) return { how: "unawaited" };
  if (wait.state === "late") return { how: gaveUp(app, caller, wait.until) ? "circle" : "late" };
  if (wait.state === "taken") return ended(app, caller, runId);
  try {
    const waited = await caller.whileWaiting([runId], () => endOrTime(app, caller, runId, wait.until));
    if (!waited.entered) return await stopped(app, caller, runId, "circle");
    if (waited.value === null) return await stopped(app, caller, runId, "late");
    const now = await app.runs.replyWait(runId);
    return now?.state === "taken" ? { how: "ended", run: waited.value } : { how: "late" };
  } catch (error) {
    if (!(await hasReply(app, caller, runId, error))) throw error;
    return await ended(app, caller, runId);
  }
}

const shortestRetryMs = 250;
const longestRetryMs = 5000;

/**
 * Repeats a call to the ledger until the database can be used again. A wait whose end is not recorded stays registered,
 * and the ledger would give the reply to a waiter that has gone.
 */
async function onceAnswered<T>(
  { report, closed }: WaitApp,
  { run, signal }: Caller,
  act: () => Promise<T>,
): Promise<T> {
  for (let retryMs = shortestRetryMs; ; retryMs = Math.min(longestRetryMs, 2 * retryMs)) {
    try {
      return await act();
    } catch (error) {
      // The wait of a stopped run stays registered. Any other wait must end, even if its caller has left.
      const stop = run === null ? closed : AbortSignal.any([closed, signal]);
      if (stop.aborted || !(isDiskFault(error) || codeOf(error) === "locked")) throw error;
      if (retryMs === shortestRetryMs) report(error);
      await sleep(retryMs, stop).catch(() => undefined);
    }
  }
}

/**
 * Ends a wait that failed, unless it stays registered. Returns whether the waiter has already received the reply. The
 * reply is then delivered nowhere else, so the caller must return it instead of the error.
 */
async function hasReply(app: WaitApp, caller: Caller, runId: string, error: unknown): Promise<boolean> {
  if (isTakenUpAgain(caller, error)) return false;
  const stopping = onceAnswered(app, caller, () => app.runs.stopAwaiting(runId));
  return (await stopping.catch(app.report)) === "taken";
}

/**
 * Whether an interrupted wait stays registered. It does if the waiting run was stopped or is owned by another process:
 * if that run ends, the ledger also ends the wait, and if it continues, the retried call waits again. After any other
 * error, the run continues without waiting.
 */
function isTakenUpAgain({ run, signal }: Pick<Caller, "run" | "signal">, error: unknown): boolean {
  return run !== null && (signal.aborted || (error instanceof SkeinError && error.code === "fenced"));
}

/**
 * Whether a run stopped waiting before its deadline. If so, it detected a deadlock, which a retried call reports again.
 */
function gaveUp({ clock }: WaitApp, { run }: Caller, until: number): boolean {
  return run !== null && clock.now() < until;
}

/** Returns the run once it has ended, or `null` if the deadline passes first. */
async function endOrTime(
  { clock, watcher }: WaitApp,
  { signal }: Caller,
  runId: string,
  until: number,
): Promise<Run | null> {
  const time = new AbortController();
  const timer = setTimeout(() => time.abort(), Math.max(0, until - clock.now()));
  try {
    return await watcher.untilEnded(runId, AbortSignal.any([signal, time.signal]));
  } catch (error) {
    if (time.signal.aborted && error === time.signal.reason) return null;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Ends the wait. A reply that arrives at the same moment still goes to the waiter. */
async function stopped(
  app: WaitApp,
  caller: Caller,
  runId: string,
  why: "late" | "circle",
): Promise<ReplyAwaited> {
  const state = await onceAnswered(app, caller, () => app.runs.stopAwaiting(runId));
  return state === "taken" ? ended(app, caller, runId) : { how: why };
}

async function ended(app: WaitApp, caller: Caller, runId: string): Promise<ReplyAwaited> {
  const run = await onceAnswered(app, caller, () => app.runs.get(runId));
  return run === null ? { how: "unawaited" } : { how: "ended", run };
}

/**
 * Waits for a child's first run until it ends or `until` resolves. `late` means that the reply is announced instead. If
 * the caller's run continues in another process, the wait stays registered, and the retried call waits there.
 */
export async function awaitChild(
  app: App,
  caller: Caller,
  runId: string,
  until: () => Promise<unknown> = () => app.watcher.untilEnded(runId, caller.signal),
): Promise<Run | "late" | "circle"> {
  const { runs } = app;
  const standing = await onceAnswered(app, caller, () => runs.replyWait(runId));
  if (standing?.state === "late") return "late";
  if (standing?.state !== "taken") {
    const entered = await untilOver(app, caller, runId, until);
    const state = await onceAnswered(app, caller, () => runs.stopAwaiting(runId));
    if (state === "late") return entered ? "late" : "circle";
  }
  return (await onceAnswered(app, caller, () => runs.get(runId, caller.userId))) ?? "late";
}

/** Returns `false` if waiting would cause a deadlock. */
async function untilOver(
  app: App,
  caller: Caller,
  runId: string,
  until: () => Promise<unknown>,
): Promise<boolean> {
  const { run, signal, whileWaiting } = caller;
  try {
    return (await whileWaiting([runId], until)).entered;
  } catch (error) {
    if (run === null && signal.aborted) return true;
    if (!(await hasReply(app, caller, runId, error))) throw error;
    return true;
  }
}
