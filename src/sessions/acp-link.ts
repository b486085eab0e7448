import type { AcpLink } from "../agents/contract.ts";
import { contextMessage } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import { isRecord } from "../core/is-record.ts";
import type { UserMessage } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { Claim, Run } from "../runs/contract.ts";
import type { EntryPage, EntryRange, SessionMeta, SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { modelMessage } from "../transcript/model-message.ts";
import type { App } from "./app.ts";

const pageSize = 200;

/** Returns a session's link to the ACP agent that answers in it, or `null` if there is none. */
export function acpLink(
  app: Pick<App, "store">,
  session: SessionRecord,
  { how }: Pick<Claim, "how">,
): AcpLink | null {
  const scope = scopeOfSession(session);
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
    unanswered: () => readUnansweredMessages(app, session),
    blob: (sha256) => app.store.blobs.get(scope, sha256),
  };
}

/** Returns the messages after the agent's last answer or tool call, oldest first. */
async function readUnansweredMessages(
  { store }: Pick<App, "store">,
  session: SessionRecord,
): Promise<readonly UserMessage[]> {
  const { sessionId } = session;
  const scope = scopeOfSession(session);
  const found: UserMessage[] = [];
  let before: string | null = null;
  for (;;) {
    const range: EntryRange = { along: "branch", limit: pageSize, ...(before === null ? {} : { before }) };
    const page: EntryPage = (await store.sessions.page(scope, sessionId, range)) ?? noSuchSession(sessionId);
    for (const entry of page.entries.toReversed()) {
      if (isFromAgent(entry)) return found.toReversed();
      const message = messageToAgent(entry);
      if (message !== null) found.push(message);
    }
    before = page.entries[0]?.id ?? null;
    if (!page.hasEarlier || before === null) return found.toReversed();
  }
}

function isFromAgent(entry: Entry): boolean {
  return (
    entry.type === "message" && (entry.message.role === "assistant" || entry.message.role === "toolResult")
  );
}

/**
 * Converts an entry to the message that a model would see. Skein's notes are marked as internal so that they are not
 * attributed to the user.
 */
function messageToAgent(entry: Entry): UserMessage | null {
  if (entry.type !== "message" && entry.type !== "custom_message") return null;
  const message = contextMessage(entry, new Map());
  const seen = message === null ? null : modelMessage(message);
  if (seen?.role !== "user") return null;
  return entry.type === "message" ? seen : { ...seen, provenance: { kind: "internal_system" } };
}

/** The metadata fields that describe a session's ACP agent. */
interface AcpMeta {
  readonly agentSessionId: string | null;
  readonly resumeSessionId: string | null;
  readonly model: string | null;
  readonly thinking: string | null;
  /** Identifies the agent's most recent process. */
  readonly processMark: string | null;
}

/**
 * Returns `null` if no ACP agent answers in this session. After a reset, the agent's old session IDs are ignored,
 * because the agent starts a new session too.
 */
function acpMetaOf({ acp }: SessionMeta, sessionId: string): AcpMeta | null {
  if (!isRecord(acp)) return null;
  const text = (name: string) => (typeof acp[name] === "string" ? (acp[name] as string) : null);
  const isFromBeforeReset = acp.linkedFrom !== undefined && acp.linkedFrom !== sessionId;
  return {
    agentSessionId: isFromBeforeReset ? null : text("agentSessionId"),
    resumeSessionId: isFromBeforeReset ? null : text("resumeSessionId"),
    model: text("model"),
    thinking: text("thinking"),
    processMark: text("processMark"),
  };
}

interface LinkWatcher {
  readonly store: Pick<Store, "sessions">;
  readonly watcher: {
    untilEnded(runId: string, signal: AbortSignal): Promise<Run>;
    untilUpdated<T>(sessionId: string, look: () => Promise<T | null>, signal: AbortSignal): Promise<T>;
  };
}

/** Added to the agent's own timeout so that a run that times out ends with its own error first. */
const graceMs = 5000;

/**
 * Resolves to the agent's ID for this run's session as soon as the agent reports it, or to `null` if the run ends or
 * the timeout expires first. Rejects with the signal's reason.
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

/**
 * Returns the agent's own ID for this session, or `null` if the agent has not reported it or the session no longer
 * exists.
 */
export async function agentSessionIdOf(
  { sessions }: Pick<Store, "sessions">,
  { userId, sessionId }: Pick<SessionRef, "userId" | "sessionId">,
): Promise<string | null> {
  const record = await sessions.get(present({ userId }), sessionId);
  return record === null ? null : (acpMetaOf(record.meta, sessionId)?.agentSessionId ?? null);
}
