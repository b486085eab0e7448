import type { Entry } from "../core/entries.ts";
import { retryAdvice, SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { Slices } from "../core/slices.ts";
import type { HistoryPayload } from "../protocol/chat.ts";
import type { Run } from "../runs/contract.ts";
import type { Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import type { BranchChoice, BranchStore, ReadPage } from "./branch-pages.ts";
import { activeBranch, branchFields, checkBranchRange, openBranch, readCenter } from "./branch-pages.ts";
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

/** Entries per page. The page size grows when few entries match. */
const [minChunk, firstChunk, maxChunk] = [50, 250, 1000];

/** The requested part of a branch. */
interface HistorySlice {
  /** In oldest-first order. The newest entries before a position or, with `after`, the oldest entries after one. */
  readonly entries: readonly ShownEntry[];
  readonly leafId: string | null;
  /** Whether the branch has a matching entry before this one. This entry must be part of the range. */
  hasBefore(id: string): Promise<boolean>;
  /** Whether the branch has a matching entry after this one and before `upTo`. */
  hasAfter(id: string, upTo?: string): Promise<boolean>;
}

/**
 * Reads the entries shown in history, page by page, until the limit or the end of the branch is reached. Throws
 * `not_found` for an ID that is not on the branch.
 */
export async function readHistoryRange(
  sessions: SessionStore,
  scope: Scope,
  sessionId: string,
  range: HistoryRange & { readonly limit: number },
  isWanted: (entry: ShownEntry) => boolean = () => true,
): Promise<HistorySlice> {
  return sliceBranch(activeBranch(sessions, scope, sessionId), range, isWanted);
}

/** Like `readHistoryRange`, but for a branch that is already open. */
async function sliceBranch(
  read: ReadPage,
  { limit, before, after }: HistoryRange & { readonly limit: number },
  isWanted: (entry: ShownEntry) => boolean = () => true,
): Promise<HistorySlice> {
  const wanted = (entry: Entry): entry is ShownEntry => isShown(entry) && isWanted(entry);
  const forward = after !== undefined;
  const gathered = await (forward
    ? gatherForward(read, { before, after }, limit, wanted)
    : gatherBack(read, before, limit, wanted));
  const { found } = gathered;
  const entries = forward ? found.slice(0, limit) : found.slice(Math.max(0, found.length - limit));
  return describeSlice(read, gathered, entries, wanted);
}

/** Returns matching entries on both sides of an entry. Includes the entry itself if it is shown. */
async function sliceAround(
  read: ReadPage,
  center: Entry,
  limit: number,
): Promise<HistorySlice & { readonly earlierCount: number }> {
  const half = Math.floor((limit - 1) / 2);
  const before = await gatherBack(read, center.id, Math.max(1, half), isShown);
  const earlier = half === 0 ? [] : before.found.slice(-half);
  const left = limit - 1 - earlier.length;
  const after = await gatherForward(read, { after: center.id }, Math.max(1, left), isShown);
  const middle = isShown(center) ? [center] : [];
  const { leafId, isToEnd } = after;
  const { isFromBeginning } = before;
  const found = [...before.found, ...middle, ...after.found];
  const entries = [...earlier, ...middle, ...after.found.slice(0, left)];
  const slice = describeSlice(read, { found, leafId, isFromBeginning, isToEnd }, entries, isShown);
  return { ...slice, earlierCount: earlier.length };
}

function describeSlice(
  read: ReadPage,
  { found, leafId, isFromBeginning, isToEnd }: Gathered,
  entries: readonly ShownEntry[],
  wanted: IsWanted,
): HistorySlice {
  const [oldest, newest] = [found[0]?.id, found.at(-1)?.id];
  return {
    entries,
    leafId,
    // A side that has already been read to the end of the branch is not read again.
    hasBefore: async (id) =>
      id !== oldest || (!isFromBeginning && (await gatherBack(read, id, 1, wanted)).found.length > 0),
    hasAfter: async (id, upTo) =>
      id !== newest ||
      (!isToEnd && (await gatherForward(read, { after: id, before: upTo }, 1, wanted)).found.length > 0),
  };
}

type IsWanted = (entry: Entry) => entry is ShownEntry;
interface Gathered {
  readonly found: readonly ShownEntry[];
  readonly leafId: string | null;
  /** Whether the branch's first entry (or, for `isToEnd`, its last entry) was read. */
  readonly isFromBeginning: boolean;
  readonly isToEnd: boolean;
}

/** Returns matching entries before a position, newest last. Returns at least `count` of them if that many exist. */
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

/** Returns matching entries after one position and before another. */
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

/**
 * Replaces `not_found` with `conflict` for an entry that was just read: the branch has moved, and the caller is not at
 * fault.
 */
function throwBranchMoved(error: unknown): never {
  const isGone = error instanceof SkeinError && error.code === "not_found" && error.details.what === "Entry";
  if (!isGone) throw error;
  const problem = "The branch moved while it was being read";
  throw new SkeinError("conflict", { problem, advice: retryAdvice }, { cause: error });
}

/** A page of history on any branch. */
export type BranchHistoryRange = HistoryRange & BranchChoice;

/** Returns the same page as `historyOf` but reads it from a store page by page. */
export async function readHistory(
  store: BranchStore,
  scope: Scope,
  session: Pick<SessionRecord, "key" | "sessionId" | "userId">,
  range: BranchHistoryRange = {},
  pending: readonly Run[] = [],
  viewAs: ViewAs = unchanged,
): Promise<HistoryPayload> {
  checkBranchRange(range);
  const { key, sessionId } = session;
  const limit = range.limit ?? defaultLimit;
  const branch = await openBranch(store, scope, session, range);
  const { slice, page, cut } = await (range.around === undefined
    ? pageFromEnd(branch.read, { ...range, limit }, viewAs)
    : pageAround(branch.read, await readCenter(store, scope, sessionId, range.around), limit, viewAs));
  const waiting = pendingMessages(pending, viewAs);
  const [first, last] = [page[0]?.id, page.at(-1)?.id];
  return {
    sessionKey: key,
    sessionId,
    leafId: slice.leafId,
    ...branchFields(branch),
    messages: page,
    ...present({
      nextBefore: first !== undefined && (await slice.hasBefore(first)) ? first : null,
      nextAfter: last !== undefined && (await slice.hasAfter(last)) ? last : null,
    }),
    pending: waiting.messages,
    truncated: cut || waiting.cut,
  };
}

interface CutPage {
  readonly slice: HistorySlice;
  readonly page: HistoryPayload["messages"];
  readonly cut: boolean;
}

async function pageFromEnd(
  read: ReadPage,
  range: HistoryRange & { readonly limit: number },
  viewAs: ViewAs,
): Promise<CutPage> {
  const slice = await sliceBranch(read, range);
  const shown = await new Slices().run(withinBytes(slice.entries, range.after !== undefined, viewAs));
  return { slice, ...shown };
}

/** Limits each side of the entry to half the page size so that the entry is always on the page. */
async function pageAround(read: ReadPage, center: Entry, limit: number, viewAs: ViewAs): Promise<CutPage> {
  const slice = await sliceAround(read, center, limit);
  const { entries, earlierCount } = slice;
  const slices = new Slices();
  const half = maxBytes / 2;
  const later = await slices.run(withinBytes(entries.slice(earlierCount), true, viewAs, half));
  const earlier = await slices.run(withinBytes(entries.slice(0, earlierCount), false, viewAs, half));
  return { slice, page: [...earlier.page, ...later.page], cut: earlier.cut || later.cut };
}

/** Returns accepted input that is not in the log yet, as history messages. */
export function pendingMessages(
  runs: readonly Run[],
  viewAs: ViewAs,
): { readonly messages: HistoryPayload["pending"]; readonly cut: boolean } {
  const messages: HistoryPayload["pending"] = [];
  let [bytes, cut] = [0, false];
  for (const { runId, message, createdAt, state, provenance } of runs) {
    const { role } = message;
    const shown = shownContent(role, "content" in message ? message.content : "", viewAs);
    const hasRoom = bytes + shown.bytes <= maxBytes;
    const content = hasRoom ? shown.content : tooLargeToShow(shown.bytes);
    if (hasRoom) bytes += shown.bytes;
    const isCut = shown.cut || !hasRoom;
    cut ||= isCut;
    const partial = isCut || shown.isMasked ? { isPartial: true } : {};
    const source = present({ provenance: provenance && viewAs(provenance) });
    messages.push({ runId, role, content, ...partial, timestamp: createdAt, state, ...source });
  }
  return { messages, cut };
}
