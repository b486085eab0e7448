import type { ReceivedEvent, Result } from "skein/client";
import type { LiveAnswer } from "./live-answers.ts";
import { isBehindHole, withLiveEvent } from "./live-answers.ts";

export type EntriesPage = Result<"sessions.entries">;
export type TranscriptEntry = EntriesPage["entries"][number];
export type LiveReading = Result<"chat.live">;
export type PendingInput = LiveReading["pending"][number];

/** What must be read again: only the live answers, the last page as well, or everything that is loaded. */
type Staleness = "live" | "end" | "all";

export interface TranscriptState {
  /**
   * `missing` means that the session does not exist or no longer exists. `refused` means that the URL names a user or
   * an entry that cannot be read. `failed` means that the session was never read, and a retry might succeed.
   */
  readonly status: "loading" | "ready" | "missing" | "refused" | "failed";
  /** Why the last read failed. The displayed data might be outdated. */
  readonly error: string | null;
  /** Why the page before or after the loaded ones could not be read. */
  readonly loadError: string | null;
  readonly sessionKey: string | null;
  readonly sessionId: string | null;
  /** The entries on the displayed branch, oldest first. */
  readonly entries: readonly TranscriptEntry[];
  readonly hasEarlier: boolean;
  /** `true` if the page was opened at an earlier entry and the end of the branch is not loaded yet. */
  readonly hasLater: boolean;
  /** The last entry of the active branch. */
  readonly leafId: string | null;
  /** The last entry of the displayed branch if it is not the active one. */
  readonly branchLeafId: string | null;
  readonly live: readonly LiveAnswer[];
  /** Events up to this number are already included in `live`, which the gateway that sends the events returned. */
  readonly liveSeq: number;
  readonly pending: readonly PendingInput[];
  readonly stale: Staleness | null;
  /**
   * `true` if an entry was appended after the loaded pages. A page that was read earlier does not contain the end of
   * the branch.
   */
  readonly hasMissed: boolean;
}

export const emptyTranscript: TranscriptState = {
  status: "loading",
  error: null,
  loadError: null,
  sessionKey: null,
  sessionId: null,
  entries: [],
  hasEarlier: false,
  hasLater: false,
  leafId: null,
  branchLeafId: null,
  live: [],
  liveSeq: 0,
  pending: [],
  stale: null,
  hasMissed: false,
};

const order: readonly (Staleness | null)[] = [null, "live", "end", "all"];

export function markStale(state: TranscriptState, stale: Staleness): TranscriptState {
  return order.indexOf(stale) > order.indexOf(state.stale) ? { ...state, stale } : state;
}

/** Returns the transcript after an event. Events can repeat what a read returned. */
export function withEvent(state: TranscriptState, event: ReceivedEvent): TranscriptState {
  switch (event.event) {
    case "gap":
      // The lost events might include a redaction. Another process, with its own numbers, might send the next ones.
      return markStale({ ...state, liveSeq: 0 }, "all");
    case "entry.appended":
      return withEntry(withLive(state, event), event.payload.entry as TranscriptEntry);
    case "run.ended":
      return {
        ...withLive(state, event),
        pending: state.pending.filter(({ runId }) => runId !== event.payload.runId),
      };
    case "run.queued":
    case "run.started":
    case "run.steered":
      return markStale(withLive(state, event), "live");
    case "session.updated":
      return markStale(state, event.payload.isRedacted === true ? "all" : "end");
    case "session.reset":
      // The key now belongs to another session, which has none of these branches.
      return markStale({ ...state, branchLeafId: null, hasLater: false }, "end");
    case "session.created":
    case "session.restored":
      return markStale(state, "end");
    case "session.deleted":
      // Its key might belong to another session by now.
      if (event.payload.sessionId !== state.sessionId) return state;
      return { ...state, status: "missing", live: [], pending: [] };
    default:
      return withLive(state, event);
  }
}

function withLive(state: TranscriptState, event: ReceivedEvent): TranscriptState {
  if (event.seq <= state.liveSeq) return state;
  if (event.event === "run.delta" && isBehindHole(state.live, event.payload)) return markStale(state, "live");
  const live = withLiveEvent(state.live, event);
  return live === state.live ? state : { ...state, live };
}

/**
 * Appends an entry that continues the displayed branch. Any other entry means that the branch has moved, so the page
 * must be read again.
 */
function withEntry(state: TranscriptState, entry: TranscriptEntry): TranscriptState {
  const { entries, leafId, branchLeafId, hasLater } = state;
  if (entries.some(({ id }) => id === entry.id)) return state;
  if (branchLeafId !== null) return entry.parentId === branchLeafId ? markStale(state, "end") : state;
  if (hasLater) return { ...state, hasMissed: true };
  // Bookkeeping entries can follow the leaf. The next entry continues them.
  if (entry.parentId !== leafId && entry.parentId !== entries.at(-1)?.id) return markStale(state, "end");
  return { ...state, entries: [...entries, entry], leafId: entry.id };
}

/**
 * Returns the transcript after a successful read. `page` was read before `live` and is `null` if only the live answers
 * were read.
 */
export function withReading(
  state: TranscriptState,
  live: LiveReading,
  page: EntriesPage | null,
  join: (state: TranscriptState, page: EntriesPage) => TranscriptState,
): TranscriptState {
  return {
    ...(page === null ? state : join(state, page)),
    status: "ready",
    error: null,
    live: live.runs,
    liveSeq: live.seq ?? 0,
    pending: live.pending,
  };
}

/** Replaces all entries with this page. */
export function replacedBy(state: TranscriptState, page: EntriesPage): TranscriptState {
  const { entries, hasEarlier, hasLater } = page;
  const next = { ...withFacts(state, page), entries, hasEarlier, hasLater, loadError: null };
  return withMissed(next);
}

/** Returns the last page, appended to the previously loaded entries if the two connect. */
export function withLastPage(state: TranscriptState, page: EntriesPage): TranscriptState {
  const first = page.entries[0];
  const meet = first === undefined ? -1 : state.entries.findIndex(({ id }) => id === first.id);
  if (meet <= 0 || page.sessionId !== state.sessionId) return replacedBy(state, page);
  const entries = [...state.entries.slice(0, meet), ...page.entries];
  return { ...withFacts(state, page), entries, hasLater: page.hasLater };
}

/** Returns what a page contains about the session, without its entries. */
export function withFacts(state: TranscriptState, page: EntriesPage): TranscriptState {
  const { key, sessionId, leafId, branchLeafId = null } = page;
  return { ...state, sessionKey: key, sessionId, leafId, branchLeafId };
}

/** Adds the page before the entry `edgeId`. The page is dropped if the first entry has changed since. */
export function withEarlierPage(state: TranscriptState, page: EntriesPage, edgeId: string): TranscriptState {
  if (state.entries[0]?.id !== edgeId) return state;
  const { hasEarlier } = page;
  return { ...state, entries: [...unknown(state, page), ...state.entries], hasEarlier, loadError: null };
}

/** Adds the page after the entry `edgeId`. The page is dropped if the last entry has changed since. */
export function withLaterPage(state: TranscriptState, page: EntriesPage, edgeId: string): TranscriptState {
  if (state.entries.at(-1)?.id !== edgeId) return state;
  const { hasLater } = page;
  const entries = [...state.entries, ...unknown(state, page)];
  return withMissed({ ...withFacts(state, page), entries, hasLater, loadError: null });
}

function unknown({ entries }: TranscriptState, page: EntriesPage): readonly TranscriptEntry[] {
  const known = new Set(entries.map(({ id }) => id));
  return page.entries.filter(({ id }) => !known.has(id));
}

function withMissed(state: TranscriptState): TranscriptState {
  if (state.hasLater || !state.hasMissed) return state;
  return markStale({ ...state, hasMissed: false }, "end");
}
