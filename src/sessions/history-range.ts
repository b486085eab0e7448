import type { Entry } from "../core/entries.ts";
import { retryAdvice, SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { Slices } from "../core/slices.ts";
import type { HistoryPayload } from "../protocol/chat.ts";
import type { Run } from "../runs/contract.ts";
import type { EntryPage, EntryRange, Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import type { HistoryRange, ShownEntry, ViewAs } from "./history.ts";
import {
  defaultLimit,
  isShown,
  maxBytes,
  shownContent,
  tooLargeToShow,
  unchanged,
  withinBytes,
} from "./history.ts";

/** Entries per page. Pages grow while few of the entries are wanted. */
const [minChunk, firstChunk, maxChunk] = [50, 250, 1000];
const chunkBytes = 8 * 1024 * 1024;

/** The requested part of the active branch. */
interface HistorySlice {
  /** Oldest first: the newest before a place, or with `after` the oldest after one. */
  readonly entries: readonly ShownEntry[];
  readonly leafId: string | null;
  /** Whether the branch has a wanted entry before this one, which must be part of the slice. */
  hasBefore(id: string): Promise<boolean>;
  /** Whether the branch has a wanted entry after this one and before `upTo`. */
  hasAfter(id: string, upTo?: string): Promise<boolean>;
}

/**
 * Reads the entries that history shows, page by page, until the limit or the end of the branch is reached. Throws `not_found`
 * for an ID that is not on the branch.
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
    // A part that was read up to an end of the branch is not read again.
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
  /** Whether the first or last entry of the branch was read. */
  readonly isFromBeginning: boolean;
  readonly isToEnd: boolean;
}

/** Wanted entries before a place, newest last: at least `count` of them, if that many exist. */
async function gatherBack(
  read: ReadPage,
  before: string | undefined,
  count: number,
  isWanted: IsWanted,
): Promise<Gathered> {
  let chunk = chunkFor(count);
  let page = await read(before === undefined ? {} : { before }, chunk);
  const { leafId, hasLater } = page;
  const pages = [page.entries.filter(isWanted)];
  let gathered = pages[0]?.length ?? 0;
  for (let first = page.entries[0]; gathered < count && page.hasEarlier && first !== undefined; ) {
    chunk = Math.min(maxChunk, chunk * 2);
    page = await read({ before: first.id }, chunk).catch(throwBranchMoved);
    first = page.entries[0];
    const found = page.entries.filter(isWanted);
    pages.push(found);
    gathered += found.length;
  }
  const ends = { isFromBeginning: !page.hasEarlier, isToEnd: !hasLater };
  return { found: pages.toReversed().flat(), leafId, ...ends };
}

/** Wanted entries after a place and before another. */
async function gatherForward(
  read: ReadPage,
  { before, after }: { before?: string | undefined; after: string },
  count: number,
  isWanted: IsWanted,
): Promise<Gathered> {
  const upTo = before === undefined ? {} : { before };
  let chunk = chunkFor(count);
  let page = await read({ ...upTo, after }, chunk);
  const { leafId, hasEarlier } = page;
  const found: ShownEntry[] = page.entries.filter(isWanted);
  for (let last = page.entries.at(-1); found.length < count && last !== undefined; ) {
    chunk = Math.min(maxChunk, chunk * 2);
    page = await read({ ...upTo, after: last.id }, chunk).catch(throwBranchMoved);
    last = page.entries.at(-1);
    found.push(...page.entries.filter(isWanted));
  }
  return { found, leafId, isFromBeginning: !hasEarlier, isToEnd: before === undefined && !page.hasLater };
}

function chunkFor(count: number): number {
  return Math.min(firstChunk, Math.max(minChunk, count * 2));
}

/** An entry that was just read is gone because the branch moved, not because of a mistake by the caller. */
function throwBranchMoved(error: unknown): never {
  const isGone = error instanceof SkeinError && error.code === "not_found" && error.details.what === "Entry";
  if (!isGone) throw error;
  const problem = "The branch was moved while it was read";
  throw new SkeinError("conflict", { problem, advice: retryAdvice }, { cause: error });
}

/** The page that `historyOf` makes of a tree, read from a store page by page. */
export async function readHistory(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: Pick<SessionRecord, "key" | "sessionId">,
  range: HistoryRange = {},
  pending: readonly Run[] = [],
  viewAs: ViewAs = unchanged,
): Promise<HistoryPayload> {
  const limit = range.limit ?? defaultLimit;
  const slice = await readHistoryRange(sessions, scope, sessionId, { ...range, limit });
  const { page, cut } = await new Slices().run(withinBytes(slice.entries, range.after !== undefined, viewAs));
  const waiting = pendingMessages(pending, viewAs);
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

/** Accepted input that is not in the log yet, in the form of history messages. */
export function pendingMessages(
  runs: readonly Run[],
  viewAs: ViewAs,
): { readonly messages: HistoryPayload["pending"]; readonly cut: boolean } {
  const messages: HistoryPayload["pending"] = [];
  let [bytes, cut] = [0, false];
  for (const { runId, message, createdAt, state } of runs) {
    const { role } = message;
    const shown = shownContent(role, "content" in message ? message.content : "", viewAs);
    const hasRoom = bytes + shown.bytes <= maxBytes;
    const content = hasRoom ? shown.content : tooLargeToShow(shown.bytes);
    if (hasRoom) bytes += shown.bytes;
    cut ||= shown.cut || !hasRoom;
    messages.push({ runId, role, content, timestamp: createdAt, state });
  }
  return { messages, cut };
}
