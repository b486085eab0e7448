import type { Entry } from "../core/entries.ts";
import { present } from "../core/present.ts";
import type { HistoryPayload } from "../protocol/session-payloads.ts";
import type { Run } from "../runs/contract.ts";
import type { EntryPage, EntryRange, Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/refusals.ts";
import type { HistoryRange, ShownEntry } from "./history.ts";
import { defaultLimit, isShown, shownContent, withinBytes } from "./history.ts";

/** Entries asked for at a time; bookkeeping entries among them are passed over. */
const chunk = 250;

/** The same page as `historyOf` gives of a tree, read from a store page by page: what is not shown is not read. */
export async function readHistory(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: Pick<SessionRecord, "key" | "sessionId">,
  range: HistoryRange = {},
  pending: readonly Run[] = [],
): Promise<HistoryPayload> {
  const read: ReadPage = async (bounds, limit) =>
    (await sessions.page(scope, sessionId, { along: "branch", ...bounds, limit })) ??
    noSuchSession(sessionId);
  const limit = range.limit ?? defaultLimit;
  const forward = range.after !== undefined;
  const { shown, leafId } = await (forward
    ? gatherForward(read, range, limit)
    : gatherBack(read, range, limit));
  const chosen = forward ? shown.slice(0, limit) : shown.slice(Math.max(0, shown.length - limit));
  const { page, cut } = withinBytes(chosen, forward);
  const [first, last] = [page[0]?.id, page.at(-1)?.id];
  const more = async (id: string | undefined, known: string | undefined, behind: boolean) =>
    id !== undefined && (id !== known || (await hasShown(read, id, behind))) ? id : null;
  return {
    sessionKey: key,
    sessionId,
    leafId,
    messages: page,
    ...present({
      nextBefore: await more(first, shown[0]?.id, false),
      nextAfter: await more(last, shown.at(-1)?.id, true),
    }),
    pending: pending.map(pendingMessage),
    truncated: cut,
  };
}

/** Input that is accepted and waits for its turn, as a message of the history would be. */
function pendingMessage({ runId, message, createdAt, state }: Run): HistoryPayload["pending"][number] {
  const { role } = message;
  const content = shownContent(role, "content" in message ? message.content : "");
  return { runId, role, content, timestamp: createdAt, state };
}

type Bounds = Pick<EntryRange, "before" | "after">;
type ReadPage = (bounds: Bounds, limit: number) => Promise<EntryPage>;
interface Gathered {
  shown: ShownEntry[];
  leafId: string | null;
}

/** What is shown before a place, newest last, at least as many as wanted if there are. */
async function gatherBack(read: ReadPage, { before }: Bounds, wanted: number): Promise<Gathered> {
  let page = await read(before === undefined ? {} : { before }, chunk);
  const { leafId } = page;
  const pages = [page.entries.filter(isShown)];
  let count = pages[0]?.length ?? 0;
  for (let first = page.entries[0]; count < wanted && page.hasEarlier && first !== undefined; ) {
    page = await read({ before: first.id }, chunk);
    first = page.entries[0];
    const shown = page.entries.filter(isShown);
    pages.unshift(shown);
    count += shown.length;
  }
  return { shown: pages.flat(), leafId };
}

/** What is shown behind a place, up to another. */
async function gatherForward(read: ReadPage, range: Bounds, wanted: number): Promise<Gathered> {
  const upTo = range.before === undefined ? {} : { before: range.before };
  let page = await read({ ...upTo, ...(range.after === undefined ? {} : { after: range.after }) }, chunk);
  const { leafId } = page;
  const shown: ShownEntry[] = page.entries.filter(isShown);
  for (let last: Entry | undefined = page.entries.at(-1); shown.length < wanted && last !== undefined; ) {
    page = await read({ ...upTo, after: last.id }, chunk);
    last = page.entries.at(-1);
    shown.push(...page.entries.filter(isShown));
  }
  return { shown, leafId };
}

/** Whether there is anything to show before an entry, or behind it. */
async function hasShown(read: ReadPage, id: string, behind: boolean): Promise<boolean> {
  const { shown } = await (behind
    ? gatherForward(read, { after: id }, 1)
    : gatherBack(read, { before: id }, 1));
  return shown.length > 0;
}
