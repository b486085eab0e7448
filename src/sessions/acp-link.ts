import type { AcpLink } from "../agents/contract.ts";
import { contextMessage } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { UserMessage } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { isRecord } from "../core/shape.ts";
import type { Claim, Run } from "../runs/contract.ts";
import type { EntryPage, EntryRange, SessionMeta, Store } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import { visibleMessage } from "../transcript/visible-message.ts";
import type { App } from "./app.ts";
import type { RunPlace } from "./run-place.ts";

const pageSize = 200;

/** What a session knows of the ACP agent that it stands for; `null`: it stands for none. */
export function acpLink(
  app: Pick<App, "store">,
  place: RunPlace,
  { how }: Pick<Claim, "how">,
): AcpLink | null {
  const { scope, session } = place;
  const known = acpMetaOf(session.meta, session.sessionId);
  if (known === null) return null;
  return {
    agent: session.agentId,
    ...known,
    mode: session.meta.spawnMode === "session" ? "session" : "run",
    wasBegun: how === "recovered",
    remember: async (agentSessionId, processMark) => {
      const { sessions } = app.store;
      const acp = {
        ...(session.meta.acp as object),
        agentSessionId,
        processMark,
        linkedFrom: session.sessionId,
      };
      await sessions.patch(scope, session.sessionId, { acp });
    },
    unanswered: () => unanswered(app, place),
    blob: (sha256) => app.store.blobs.get(scope, sha256),
  };
}

/** From the end of the branch back to the last that the agent said or did. */
async function unanswered({ store }: Pick<App, "store">, place: RunPlace): Promise<readonly UserMessage[]> {
  const { scope, session } = place;
  const { sessionId } = session;
  const found: UserMessage[] = [];
  let before: string | null = null;
  for (;;) {
    const range: EntryRange = { along: "branch", limit: pageSize, ...(before === null ? {} : { before }) };
    const page: EntryPage = (await store.sessions.page(scope, sessionId, range)) ?? noSuchSession(sessionId);
    for (const entry of page.entries.toReversed()) {
      if (isAgents(entry)) return found.toReversed();
      const said = saidTo(entry);
      if (said !== null) found.push(said);
    }
    before = page.entries[0]?.id ?? null;
    if (!page.hasEarlier || before === null) return found.toReversed();
  }
}

function isAgents(entry: Entry): boolean {
  return (
    entry.type === "message" && (entry.message.role === "assistant" || entry.message.role === "toolResult")
  );
}

/** As a model of ours would see it; notes of ours say that they are. */
function saidTo(entry: Entry): UserMessage | null {
  if (entry.type !== "message" && entry.type !== "custom_message") return null;
  const message = contextMessage(entry, new Map());
  const seen = message === null ? null : visibleMessage(message);
  if (seen?.role !== "user") return null;
  return entry.type === "message" ? seen : { ...seen, provenance: { kind: "internal_system" } };
}

/** What a session stores about the session of the ACP agent that it stands for. */
export interface AcpMeta {
  readonly agentSessionId: string | null;
  readonly resumeSessionId: string | null;
  readonly model: string | null;
  readonly thinking: string | null;
  /** The mark of its last process. */
  readonly processMark: string | null;
}

/** `null`: the session was not spawned as such a one. After a reset the agent starts a new session too. */
export function acpMetaOf({ acp }: SessionMeta, sessionId: string): AcpMeta | null {
  if (!isRecord(acp)) return null;
  const word = (name: string) => (typeof acp[name] === "string" ? (acp[name] as string) : null);
  const isBefore = acp.linkedFrom !== undefined && acp.linkedFrom !== sessionId;
  return {
    agentSessionId: isBefore ? null : word("agentSessionId"),
    resumeSessionId: isBefore ? null : word("resumeSessionId"),
    model: word("model"),
    thinking: word("thinking"),
    processMark: word("processMark"),
  };
}

interface LinkWatcher {
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
  { store, watcher }: LinkWatcher,
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
