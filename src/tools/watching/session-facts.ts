import { present } from "../../core/present.ts";
import type { BetweenDeps, Caller } from "../../sessions/between.ts";
import { listedSession, listRow, modelOf } from "../../sessions/list.ts";
import type { Asker } from "../../sessions/session-access.ts";
import type { ListedSession, SessionRecord } from "../../store/contract.ts";

/** What is read of a session for its status. Nothing is written, and no entry is opened. */

/** With what its entries come to; `null`: it is gone meanwhile. */
export function listed(session: SessionRecord, deps: BetweenDeps): Promise<ListedSession | null> {
  return listedSession(deps.store.sessions, session);
}

/** A session as an asker of its own: what holds for it, and what it would be offered. */
export function speakingFrom(session: SessionRecord, call: Caller, deps: BetweenDeps): Caller {
  if (session.uid === call.session?.uid) return call;
  const { userId, agentId, meta } = session;
  const sandboxed = meta.sandboxed ?? deps.agents.find(agentId)?.sandboxed ?? false;
  return { ...call, userId, agentId, session, sandboxed, run: null, entryId: null };
}

/** The model that it has, else its agent's. */
export function modelFor(session: ListedSession, deps: BetweenDeps): string | null {
  return modelOf(session) ?? deps.agents.find(session.agentId)?.model ?? null;
}

export function channelFor(session: ListedSession): string {
  return listRow(session).channel;
}

/** The run that is under way or next, with what it waits for; `null`: nothing is open. */
export async function openRun(runId: string | null, deps: BetweenDeps): Promise<object | null> {
  const run = runId === null ? null : await deps.runs.get(runId);
  if (run === null) return null;
  const waits = await deps.runs.waits(run.runId);
  const waitsFor = waits === null || waits.runIds.length === 0 ? null : [...waits.runIds];
  return present({ runId: run.runId, state: run.state, startedAt: run.startedAt, waitsFor });
}

/** More than this no status shows; the newest are shown. */
const mostChildren = 50;

/** The newest children that the asker may see, with how their work stands. */
export async function childrenSeen(
  session: SessionRecord,
  asker: Asker,
  deps: BetweenDeps,
): Promise<object[]> {
  const all = await deps.runs.children(session.userId, session.key);
  const newest = all.slice(0, mostChildren);
  const seen = await Promise.all(
    newest.map(async (child) => {
      const found = await deps.access.find(asker, child.run.session.key, "status");
      return "session" in found ? [{ child, session: found.session }] : [];
    }),
  );
  const work = await deps.runs.work(seen.flat().map(({ session: { uid } }) => uid));
  return seen.flat().map(({ child: { run, label }, session: { uid, key } }) => {
    const sessionKey = deps.access.display(asker, key);
    return present({ sessionKey, label, runId: run.runId, status: work.get(uid)?.status ?? "idle" });
  });
}
