import type { Entry } from "../core/entries.ts";
import { decideAnew, SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { Slices } from "../core/slices.ts";
import type { HistoryPayload } from "../protocol/chat.ts";
import type { Run } from "../runs/contract.ts";
import type { EntryPage, EntryRange, Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import type { HistoryRange, Seen, ShownEntry } from "./history.ts";
import {
  defaultLimit,
  isShown,
  mostBytes,
  shownContent,
  tooLargeToShow,
  whole,
  withinBytes,
} from "./history.ts";

/** Entries asked for at a time: few where few are wanted, more where they are rare. */
const [leastChunk, firstChunk, mostChunk] = [50, 250, 1000];
const chunkBytes = 8 * 1024 * 1024;

/** What of the active branch a reader asked for. */
export interface HistorySlice {
  /** Oldest first: the newest before a place, or with `after` the oldest behind one. */
  readonly entries: readonly ShownEntry[];
  readonly leafId: string | null;
  /** Whether there is anything of the kind on the branch before an entry of the slice. */
  hasBefore(id: string): Promise<boolean>;
  /** The same behind it; `upTo`: before that entry. */
  hasAfter(id: string, upTo?: string): Promise<boolean>;
}

/**
 * Entries that history shows, as many as asked for, read from a store page by page: what is not wanted is passed over,
 * and the search goes on to the end of the branch. `not_found` for an id that is not on it.
 */
export async function readHistoryRange(
  sessions: SessionStore,
  scope: Scope,
  sessionId: string,
  range: HistoryRange & { readonly limit: number },
  isWanted: (entry: ShownEntry) => boolean = () => true,
): Promise<HistorySlice> {
  const read: ReadPage = async (bounds, limit) =>
    (await sessions.page(scope, sessionId, { along: "branch", ...bounds, limit, bytes: chunkBytes })) ??
    noSuchSession(sessionId);
  const wanted = (entry: Entry): entry is ShownEntry => isShown(entry) && isWanted(entry);
  const { limit, before, after } = range;
  const forward = after !== undefined;
  const { found, leafId, isFromBeginning, isToEnd } = await (forward
    ? gatherForward(read, { before, after }, limit, wanted)
    : gatherBack(read, before, limit, wanted));
  const [oldest, newest] = [found[0]?.id, found.at(-1)?.id];
  return {
    entries: forward ? found.slice(0, limit) : found.slice(Math.max(0, found.length - limit)),
    leafId,
    // What was read up to an end of the branch need not be read again.
    hasBefore: async (id) =>
      id !== oldest || (!isFromBeginning && (await gatherBack(read, id, 1, wanted)).found.length > 0),
    hasAfter: async (id, upTo) =>
      id !== newest ||
      (!isToEnd && (await gatherForward(read, { after: id, before: upTo }, 1, wanted)).found.length > 0),
  };
}

type Bounds = Pick<EntryRange, "before" | "after">;
type ReadPage = (bounds: Bounds, limit: number) => Promise<EntryPage>;
type IsWanted = (entry: Entry) => entry is ShownEntry;
interface Gathered {
  readonly found: readonly ShownEntry[];
  readonly leafId: string | null;
  /** Nothing is on the branch before what was read, or behind it. */
  readonly isFromBeginning: boolean;
  readonly isToEnd: boolean;
}

/** What is wanted before a place, newest last, at least as many as wanted if there are. */
async function gatherBack(
  read: ReadPage,
  before: string | undefined,
  most: number,
  isWanted: IsWanted,
): Promise<Gathered> {
  let chunk = chunkFor(most);
  let page = await read(before === undefined ? {} : { before }, chunk);
  const { leafId, hasLater } = page;
  const pages = [page.entries.filter(isWanted)];
  let count = pages[0]?.length ?? 0;
  for (let first = page.entries[0]; count < most && page.hasEarlier && first !== undefined; ) {
    chunk = Math.min(mostChunk, chunk * 2);
    page = await read({ before: first.id }, chunk).catch(movedAway);
    first = page.entries[0];
    const found = page.entries.filter(isWanted);
    pages.push(found);
    count += found.length;
  }
  const ends = { isFromBeginning: !page.hasEarlier, isToEnd: !hasLater };
  return { found: pages.toReversed().flat(), leafId, ...ends };
}

/** What is wanted behind a place, up to another. */
async function gatherForward(
  read: ReadPage,
  { before, after }: { before?: string | undefined; after: string },
  most: number,
  isWanted: IsWanted,
): Promise<Gathered> {
  const upTo = before === undefined ? {} : { before };
  let chunk = chunkFor(most);
  let page = await read({ ...upTo, after }, chunk);
  const { leafId, hasEarlier } = page;
  const found: ShownEntry[] = page.entries.filter(isWanted);
  for (let last = page.entries.at(-1); found.length < most && last !== undefined; ) {
    chunk = Math.min(mostChunk, chunk * 2);
    page = await read({ ...upTo, after: last.id }, chunk).catch(movedAway);
    last = page.entries.at(-1);
    found.push(...page.entries.filter(isWanted));
  }
  return { found, leafId, isFromBeginning: !hasEarlier, isToEnd: before === undefined && !page.hasLater };
}

function chunkFor(most: number): number {
  return Math.min(firstChunk, Math.max(leastChunk, most * 2));
}

/** An id that we have just read ourselves is not there: not the asker's mistake. */
function movedAway(error: unknown): never {
  const isGone = error instanceof SkeinError && error.code === "not_found" && error.details.what === "Entry";
  if (!isGone) throw error;
  const problem = "The branch was moved while it was read";
  throw new SkeinError("conflict", { problem, advice: decideAnew }, { cause: error });
}

/** The same page as `historyOf` gives of a tree, read from a store page by page: what is not shown is not read. */
export async function readHistory(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: Pick<SessionRecord, "key" | "sessionId">,
  range: HistoryRange = {},
  pending: readonly Run[] = [],
  seen: Seen = whole,
): Promise<HistoryPayload> {
  const limit = range.limit ?? defaultLimit;
  const slice = await readHistoryRange(sessions, scope, sessionId, { ...range, limit });
  const { page, cut } = await new Slices().run(withinBytes(slice.entries, range.after !== undefined, seen));
  const waiting = pendingMessages(pending, seen);
  const [first, last] = [page[0]?.id, page.at(-1)?.id];
  return {
    sessionKey: key,
    sessionId,
    leafId: slice.leafId,
    messages: page,
    ...present({
      nextBefore: first !== undefined && (await slice.hasBefore(first)) ? first : null,
      nextAfter: last !== undefined && (await slice.hasAfter(last)) ? last : null,
    }),
    pending: waiting.messages,
    truncated: cut || waiting.cut,
  };
}

/** Input that is accepted and waits for its turn, as messages of the history would be. */
function pendingMessages(
  runs: readonly Run[],
  seen: Seen,
): { readonly messages: HistoryPayload["pending"]; readonly cut: boolean } {
  const messages: HistoryPayload["pending"] = [];
  let [bytes, cut] = [0, false];
  for (const { runId, message, createdAt, state } of runs) {
    const { role } = message;
    const shown = shownContent(role, "content" in message ? message.content : "", seen);
    const hasRoom = bytes + shown.bytes <= mostBytes;
    const content = hasRoom ? shown.content : tooLargeToShow(shown.bytes);
    if (hasRoom) bytes += shown.bytes;
    cut ||= shown.cut || !hasRoom;
    messages.push({ runId, role, content, timestamp: createdAt, state });
  }
  return { messages, cut };
}
