import type { ContextEdits, ContextMessage, SessionContext } from "../core/context.ts";
import { contextMessage, editsIn } from "../core/context.ts";
import type { Compaction, Entry } from "../core/entries.ts";
import { decideAnew, SkeinError } from "../core/errors.ts";
import type { EntryPage, EntryRange, Scope, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";

/** A message with the entry that it comes from. */
export interface OlderMessage {
  readonly entryId: string;
  readonly message: ContextMessage;
}

const pageEntries = 200;

/**
 * What a byte budget left out of a context: from the cut back to where the context begins, which is at the first entry
 * that the last compaction kept. The newest page comes first, each oldest first, and no more than one is held. Read from
 * the leaf on, because an edit stands behind what it edits. `conflict` when the branch is moved meanwhile.
 */
export async function* olderPages(
  sessions: SessionStore,
  scope: Scope,
  sessionId: string,
  { cut, diagnostics }: Pick<SessionContext, "cut" | "diagnostics">,
): AsyncGenerator<readonly OlderMessage[]> {
  const keepsNothing = new Set(
    diagnostics.filter(({ code }) => code === "unknown_kept_entry").map(({ entryId }) => entryId),
  );
  let edits: ContextEdits = new Map();
  let isOlder = false;
  /** Where the context begins; `null`: as far as we have come, at the root. */
  let begins: string | null = null;
  for (let before: string | null = null; ; ) {
    const range: EntryRange = { along: "branch", limit: pageEntries, ...(before === null ? {} : { before }) };
    const page: EntryPage =
      (await sessions.page(scope, sessionId, range).catch(movedAway)) ?? noSuchSession(sessionId);
    edits = new Map([...editsIn(page.entries), ...edits]);
    const older: Entry[] = [];
    let isEnd = !page.hasEarlier;
    for (const entry of page.entries.toReversed()) {
      if (isOlder) older.push(entry);
      if (entry.id === cut) isOlder = true;
      if (entry.type === "compaction" && begins === null) begins = firstKeptOf(entry, keepsNothing);
      if (entry.id !== begins) continue;
      isEnd = true;
      break;
    }
    const messages = older.reverse().flatMap((entry): OlderMessage[] => {
      const message = contextMessage(entry, edits);
      return message === null ? [] : [{ entryId: entry.id, message }];
    });
    if (messages.length > 0) yield messages;
    before = page.entries[0]?.id ?? null;
    if (isEnd || before === null) break;
  }
}

function firstKeptOf({ id, firstKeptEntryId = id }: Compaction, keepsNothing: ReadonlySet<unknown>): string {
  return keepsNothing.has(id) ? id : firstKeptEntryId;
}

function movedAway(error: unknown): never {
  const isGone = error instanceof SkeinError && error.code === "not_found" && "what" in error.details;
  if (!isGone || error.details.what !== "Entry") throw error;
  const problem = "The branch was moved while it was summarized";
  throw new SkeinError("conflict", { problem, advice: decideAnew }, { cause: error });
}
