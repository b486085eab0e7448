import { SkeinError } from "../../core/errors.ts";
import type { Claim } from "../../runs/contract.ts";
import { decideReset } from "../decide-reset.ts";
import type { RunningDeps, RunPlace } from "./contract.ts";

type Deps = Pick<RunningDeps, "store" | "runs" | "hooks" | "settings" | "clock">;

const fromPeople: readonly string[] = ["user", "channel"];

/**
 * Whether the key moves on to a new session before this input is taken. The run goes back into the queue, and with it to
 * the new session, where it is claimed again.
 */
export async function resetIfDue(
  { store, runs, hooks, settings, clock }: Deps,
  { scope, session, ctx }: RunPlace,
  { run, how }: Claim,
): Promise<boolean> {
  if (how !== "new" || (settings.reset.mode === "none" && isEmpty(settings.reset))) return false;
  if (!fromPeople.includes(run.kind)) return false;
  const { key, sessionId, kind, meta } = session;
  const page = await store.sessions.list(scope, {
    text: sessionId,
    limit: 10,
    archived: meta.archived === true,
  });
  const listed = page.sessions.find((each) => each.sessionId === sessionId);
  const { reset, why } = decideReset({
    rules: settings.reset,
    kind,
    channel: meta.channel ?? null,
    lastInputAt: listed?.digest.lastInputAt ?? null,
    now: clock.now(),
  });
  if (!reset) return false;
  const { cancel } = await hooks.ask("before_reset", { key, sessionId, why, ctx });
  if (cancel !== null) return false;
  await runs.release({ runId: run.runId, fence: run.fence });
  try {
    await store.sessions.reset(scope, sessionId);
  } catch (error) {
    // Somebody has claimed it meanwhile: whoever claims next decides anew.
    if (!(error instanceof SkeinError && error.code === "conflict")) throw error;
    return true;
  }
  await hooks.notify("session_end", { key, sessionId, reason: "reset", ctx });
  return true;
}

function isEmpty({ byKind, byChannel }: RunningDeps["settings"]["reset"]): boolean {
  return Object.keys(byKind).length === 0 && Object.keys(byChannel).length === 0;
}
