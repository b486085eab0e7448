import { SkeinError } from "../core/errors.ts";
import type { Run } from "../runs/contract.ts";
import type { App } from "./app.ts";
import type { Caller } from "./session-access.ts";

/**
 * What a wait for a reply came to. `late`: the wait timed out; the reply goes as a message of its own. `circle`: to wait would
 * close a circle of waits. `unawaited`: nobody waits, and nobody did.
 */
export type ReplyAwaited =
  | { readonly how: "ended"; readonly run: Run }
  | { readonly how: "late" | "circle" | "unawaited" };

type WaitApp = Pick<App, "runs" | "clock" | "watcher" | "report">;

/**
 * Waits for the reply of an accepted run for as long as was registered with it: a second time, for what is left. Whether
 * the reply is the waiter's or goes as a message is decided by the books, never here.
 */
export async function awaitReply(app: WaitApp, caller: Caller, runId: string): Promise<ReplyAwaited> {
  const wait = await app.runs.replyWait(runId);
  if (wait === null) return { how: "unawaited" };
  if (wait.state === "late") return { how: gaveUp(app, caller, wait.until) ? "circle" : "late" };
  if (wait.state === "taken") return ended(app, runId);
  try {
    const waited = await caller.whileWaiting([runId], () => endOrTime(app, caller, runId, wait.until));
    if (!waited.entered) return await stopped(app, runId, "circle");
    if (waited.value === null) return await stopped(app, runId, "late");
    const now = await app.runs.replyWait(runId);
    return now?.state === "taken" ? { how: "ended", run: waited.value } : { how: "late" };
  } catch (error) {
    if (!isTakenUpAgain(caller, error)) await app.runs.stopAwaiting(runId).catch(app.report);
    throw error;
  }
}

/**
 * Whether a wait that was broken off is to stay open: of a run that is stopped, or that another has, the books see to it
 * when it ends, and a replayed call goes on waiting. Whatever else went wrong, the run goes on and waits no more.
 */
export function isTakenUpAgain({ run, signal }: Pick<Caller, "run" | "signal">, error: unknown): boolean {
  return run !== null && (signal.aborted || (error instanceof SkeinError && error.code === "fenced"));
}

/** A run that stopped waiting before its time was over has found a circle; it says so again. */
function gaveUp({ clock }: WaitApp, { run }: Caller, until: number): boolean {
  return run !== null && clock.now() < until;
}

/** The run, once it has ended; `null`: the time was over first. */
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

/** The waiter goes; a reply that came in that very moment is still theirs. */
async function stopped(app: WaitApp, runId: string, why: "late" | "circle"): Promise<ReplyAwaited> {
  return (await app.runs.stopAwaiting(runId)) === "taken" ? ended(app, runId) : { how: why };
}

async function ended({ runs }: WaitApp, runId: string): Promise<ReplyAwaited> {
  const run = await runs.get(runId);
  return run === null ? { how: "unawaited" } : { how: "ended", run };
}

/**
 * The child's first run, if it has ended and its reply is ours: once it has, or once `until` says that nobody need wait any
 * longer. `late`: it is announced instead. A caller whose run continues in another process leaves the wait as it is, and the
 * same call waits again there.
 */
export async function awaitChild(
  app: App,
  caller: Caller,
  runId: string,
  until: () => Promise<unknown> = () => app.watcher.untilEnded(runId, caller.signal),
): Promise<Run | "late" | "circle"> {
  const { runs } = app;
  const standing = await runs.replyWait(runId);
  if (standing?.state === "late") return "late";
  if (standing?.state !== "taken") {
    const entered = await untilOver(app, caller, runId, until);
    if ((await runs.stopAwaiting(runId)) === "late") return entered ? "late" : "circle";
  }
  return (await runs.get(runId, caller.userId)) ?? "late";
}

/** `false`: the wait would have closed a circle. */
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
    if (!isTakenUpAgain(caller, error)) await app.runs.stopAwaiting(runId).catch(app.report);
    throw error;
  }
}
