import { present } from "../../core/present.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { Run } from "../../runs/contract.ts";
import type { Store } from "../../store/contract.ts";
import { acpMetaOf } from "../acp-meta.ts";

interface Deps {
  readonly store: Pick<Store, "sessions">;
  readonly watcher: {
    untilEnded(runId: string, signal: AbortSignal): Promise<Run>;
    untilUpdated<T>(sessionId: string, look: () => Promise<T | null>, signal: AbortSignal): Promise<T>;
  };
}

/** So much longer than an agent may take until its session is open: its run has ended by then, with the reason. */
const graceMs = 5000;

/**
 * What the agent calls the session of this run, once it has told it; `null`: the run ended before, or it took longer than an
 * agent may. Rejects with the signal's reason.
 */
export async function untilAgentSessionId(
  { store, watcher }: Deps,
  { session, runId }: Pick<Run, "session" | "runId">,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | null> {
  const left = new AbortController();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs + graceMs);
  const any = AbortSignal.any([signal, late.signal, left.signal]);
  const look = () => agentSessionIdOf(store, session);
  try {
    await Promise.race([watcher.untilUpdated(session.sessionId, look, any), watcher.untilEnded(runId, any)]);
    return await look();
  } catch (error) {
    if (late.signal.aborted && error === late.signal.reason) return look();
    throw error;
  } finally {
    clearTimeout(timer);
    left.abort();
  }
}

/** What the agent calls this session; `null`: it has not said it, or the session is gone. */
export async function agentSessionIdOf(
  { sessions }: Pick<Store, "sessions">,
  { userId, sessionId }: Pick<SessionRef, "userId" | "sessionId">,
): Promise<string | null> {
  const record = await sessions.get(present({ userId }), sessionId);
  return record === null ? null : (acpMetaOf(record.meta, sessionId)?.agentSessionId ?? null);
}
