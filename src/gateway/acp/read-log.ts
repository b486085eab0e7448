import type { Params } from "../../protocol/methods/method-table.ts";
import type { WireEntry } from "../../protocol/session-details.ts";
import type { AcpParts } from "./contract.ts";

/** A session's entries in pages, oldest first, however many there are: no more than a page is held at once. */

type Range = Pick<Params<"sessions.entries">, "before" | "after" | "along" | "limit">;
type Read = AcpParts["calls"];
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
  for (let last = after; ; ) {
    const { entries, hasLater } = await page(calls, named, { along: "all", after: last });
    yield entries;
    last = entries.at(-1)?.id ?? last;
    if (!hasLater || entries.length === 0) return;
  }
}

/**
 * From the first entry on. Pages are found from the end, so each but the earliest is read twice: that costs less than to
 * hold a session of any length.
 */
export async function* fromTheBeginning(
  calls: Read,
  named: Named,
  along: "branch" | "all",
): AsyncGenerator<readonly WireEntry[], void> {
  const ends: (string | undefined)[] = [];
  let before: string | undefined;
  let read = await page(calls, named, { along });
  while (read.hasEarlier && read.entries[0] !== undefined) {
    ends.push(before);
    before = read.entries[0].id;
    read = await page(calls, named, { along, before });
  }
  yield read.entries;
  for (const end of ends.toReversed()) {
    const range = end === undefined ? {} : { before: end };
    yield (await page(calls, named, { along, ...range })).entries;
  }
}

function page(calls: Read, { key, userId }: Named, range: Range) {
  const whose = userId === undefined ? {} : { userId };
  return calls.call("sessions.entries", { key, ...whose, ...range });
}
