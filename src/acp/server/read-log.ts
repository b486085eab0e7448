import type { Calls } from "../../protocol/methods/calls.ts";
import type { Params } from "../../protocol/methods/method-table.ts";
import type { WireEntry } from "../../protocol/session-details.ts";

/** A session's entries in pages, oldest first, however many there are: no more than a page is held at once. */

type Range = Pick<Params<"sessions.entries">, "before" | "after" | "along" | "limit">;
type Read = Calls<"sessions.entries">;
type Named = { readonly key: string; readonly userId?: string };

/** Where the log ends now; `null`: nothing is written. */
export async function endOfLog(calls: Read, named: Named): Promise<string | null> {
  const { entries } = await page(calls, named, { along: "all", limit: 1 });
  return entries.at(-1)?.id ?? null;
}

/** What was written behind an entry, in the order of the log. */
export async function* writtenAfter(
  calls: Read,
  named: Named,
  after: string | null,
): AsyncGenerator<readonly WireEntry[], void> {
  if (after === null) {
    yield* fromTheBeginning(calls, named, "all");
    return;
  }
  yield* forward(calls, named, "all", after);
}

/**
 * From the first entry on, and on to what is written meanwhile. The first page is found from the end, so each but the first
 * is read twice: that costs less than to hold a session of any length.
 */
export async function* fromTheBeginning(
  calls: Read,
  named: Named,
  along: "branch" | "all",
): AsyncGenerator<readonly WireEntry[], void> {
  let read = await page(calls, named, { along });
  while (read.hasEarlier && read.entries[0] !== undefined)
    read = await page(calls, named, { along, before: read.entries[0].id });
  yield read.entries;
  const last = read.entries.at(-1);
  if (last !== undefined) yield* forward(calls, named, along, last.id);
}

/** By the last one that was given: what is written meanwhile moves nothing. */
async function* forward(
  calls: Read,
  named: Named,
  along: "branch" | "all",
  after: string,
): AsyncGenerator<readonly WireEntry[], void> {
  for (let last = after; ; ) {
    const { entries, hasLater } = await page(calls, named, { along, after: last });
    yield entries;
    last = entries.at(-1)?.id ?? last;
    if (!hasLater || entries.length === 0) return;
  }
}

function page(calls: Read, { key, userId }: Named, range: Range) {
  const whose = userId === undefined ? {} : { userId };
  return calls.call("sessions.entries", { key, ...whose, ...range });
}
