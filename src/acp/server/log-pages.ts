import { present } from "../../core/present.ts";
import type { Calls } from "../../protocol/calls.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { WireEntry } from "../../protocol/session-details.ts";

/**
 * Reads a session's entries page by page, oldest first. Memory use is limited to one page, regardless of the session's
 * length.
 */

type Range = Pick<Params<"sessions.entries">, "before" | "after" | "along" | "limit">;
type Reader = Calls<"sessions.entries">;
type SessionName = { readonly key: string; readonly userId?: string };
type Pages = AsyncGenerator<readonly WireEntry[], void>;

/** Returns the ID of the last entry in the log, or `null` if the log is empty. */
export async function lastEntryId(calls: Reader, session: SessionName): Promise<string | null> {
  const { entries } = await readPage(calls, session, { along: "all", limit: 1 });
  return entries.at(-1)?.id ?? null;
}

/** Yields the entries after one entry, or all entries, in log order. */
export function entriesAfter(calls: Reader, session: SessionName, after: string | null): Pages {
  return after === null ? allEntries(calls, session, "all") : readForward(calls, session, "all", after);
}

/**
 * Yields all entries, including those written during the iteration. The first page is found by paging back from the
 * end, so every later page is read twice. This costs less than keeping the whole session in memory.
 */
export async function* allEntries(calls: Reader, session: SessionName, along: "branch" | "all"): Pages {
  let page = await readPage(calls, session, { along });
  while (page.hasEarlier && page.entries[0] !== undefined)
    page = await readPage(calls, session, { along, before: page.entries[0].id });
  yield page.entries;
  const last = page.entries.at(-1);
  if (last !== undefined) yield* readForward(calls, session, along, last.id);
}

/** Continues from an entry rather than a position, because new entries would shift positions. */
async function* readForward(
  calls: Reader,
  session: SessionName,
  along: "branch" | "all",
  after: string,
): Pages {
  for (let last = after; ; ) {
    const { entries, hasLater } = await readPage(calls, session, { along, after: last });
    yield entries;
    last = entries.at(-1)?.id ?? last;
    if (!hasLater || entries.length === 0) return;
  }
}

function readPage(calls: Reader, { key, userId }: SessionName, range: Range) {
  return calls.call("sessions.entries", { key, ...present({ userId }), ...range });
}
