import { present } from "../../core/present.ts";
import type { App } from "../../sessions/app.ts";
import { listedSession, listRow, modelOf } from "../../sessions/list.ts";
import type { Asker, Caller } from "../../sessions/session-access.ts";
import type { ListedSession, SessionRecord } from "../../store/contract.ts";

/** What is read of a session for its status. Nothing is written, and no entry is opened. */

/** With what its entries come to; `null`: it is gone meanwhile. */
export function listed(session: SessionRecord, app: App): Promise<ListedSession | null> {
  return listedSession(app.store.sessions, session);
}

/** A session as an asker of its own: what holds for it, and what it would be offered. */
export function speakingFrom(session: SessionRecord, call: Caller, app: App): Caller {
  if (session.uid === call.session?.uid) return call;
  const { userId, agentId, meta } = session;
  const sandboxed = meta.sandboxed ?? app.agents.find(agentId)?.sandboxed ?? false;
  return { ...call, userId, agentId, session, sandboxed, run: null, entryId: null };
}

/** The model that it has, else its agent's. */
export function modelFor(session: ListedSession, app: App): string | null {
  return modelOf(session) ?? app.agents.find(session.agentId)?.model ?? null;
}

export function channelFor(session: ListedSession): string {
  return listRow(session).channel;
}

/** The run that is under way or next, with what it waits for; `null`: nothing is open. */
export async function openRun(runId: string | null, app: App): Promise<object | null> {
  const run = runId === null ? null : await app.runs.get(runId);
  if (run === null) return null;
  const waits = await app.runs.waits(run.runId);
  const waitsFor = waits === null || waits.runIds.length === 0 ? null : [...waits.runIds];
  return present({ runId: run.runId, state: run.state, startedAt: run.startedAt, waitsFor });
}

/** More than this no status shows; the newest are shown. */
const mostChildren = 50;

/** The newest children that the asker may see, with how their work stands. */
export async function childrenSeen(session: SessionRecord, asker: Asker, app: App): Promise<object[]> {
  const all = await app.runs.children(session.userId, session.key);
  const newest = all.slice(0, mostChildren);
  const seen = await Promise.all(
    newest.map(async (child) => {
      const found = await app.access.find(asker, child.run.session.key, "status");
      return "session" in found ? [{ child, session: found.session }] : [];
    }),
  );
  const work = await app.runs.work(seen.flat().map(({ session: { uid } }) => uid));
  return seen.flat().map(({ child: { run, label }, session: { uid, key } }) => {
    const sessionKey = app.access.display(asker, key);
    return present({ sessionKey, label, runId: run.runId, status: work.get(uid)?.status ?? "idle" });
  });
}
