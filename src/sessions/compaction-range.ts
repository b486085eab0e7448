import { createHash } from "node:crypto";
import type { ContextEdits, ContextMessage, SessionContext } from "../core/context.ts";
import { contextMessage, editsIn } from "../core/context.ts";
import type { Compaction, Entry } from "../core/entries.ts";
import { retryAdvice, SkeinError } from "../core/errors.ts";
import { stringifyJson } from "../core/json.ts";
import { sameJson } from "../core/link-entries.ts";
import type { EntryPage, EntryRange, Scope, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import type { WorkingSessions } from "../store/work.ts";
import { byteBudgetFor } from "../transcript/compaction/limits.ts";
import type { CutPlan, NothingToCut } from "../transcript/compaction/plan-cut.ts";
import { planCut } from "../transcript/compaction/plan-cut.ts";

/** The factor by which the byte budget grows when no cut point is found. */
const widerBy = 4;

export interface StoredSession {
  readonly sessions: WorkingSessions;
  readonly scope: Scope;
  readonly sessionId: string;
}

/** Plans the cut using as many bytes as the budget allows. Reads more if those bytes contain no cut point. */
export async function planSession(
  place: StoredSession,
  options: { readonly contextWindow: number; readonly compactions?: number },
): Promise<{ readonly plan: CutPlan; readonly range: SummaryRange } | { readonly nothing: NothingToCut }> {
  for (let budget = byteBudgetFor(options.contextWindow); ; budget = wider(budget)) {
    const context = await contextOf(place, budget);
    const plan = planCut(context, options);
    if (!("nothing" in plan)) return { plan, range: new SummaryRange(place, plan, context, budget) };
    if (context.cut === null) return plan;
  }
}

/** The part of a session that a plan replaces. Used while its summary is being generated. */
export class SummaryRange {
  readonly #place: StoredSession;
  readonly #plan: CutPlan;
  readonly #context: SessionContext;
  readonly #budget: number | undefined;
  /** The hash of the older part when it was last read. */
  #older: string | null = null;

  constructor(place: StoredSession, plan: CutPlan, context: SessionContext, budget: number | undefined) {
    this.#place = place;
    this.#plan = plan;
    this.#context = context;
    this.#budget = budget;
  }

  /** Yields the messages that come before those in the plan, newest page first. */
  async *older(): AsyncGenerator<readonly ContextMessage[]> {
    const { sessions, scope, sessionId } = this.#place;
    const hash = createHash("sha256");
    for await (const page of olderPages(sessions, scope, sessionId, this.#context)) {
      for (const each of page) hash.update(`${each.entryId} ${stringifyJson(each.message)}\n`);
      yield page.map(({ message }) => message);
    }
    this.#older = hash.digest("hex");
  }

  /** Whether the older part has changed since it was read, for example because of a redaction. */
  async hasOlderChanged(): Promise<boolean> {
    const before = this.#older;
    if (before === null) return false;
    for await (const _page of this.older());
    return this.#older !== before;
  }

  /** Reads the session again and returns the kept messages, or the reason why the plan no longer fits. */
  async keptNow(): Promise<{ readonly kept: readonly ContextMessage[] } | { readonly problem: string }> {
    const { entryIds, firstKeptEntryId, isCut } = this.#plan;
    const oldest = entryIds[0] ?? firstKeptEntryId;
    for (let budget = isCut ? wider(this.#budget) : undefined; ; budget = wider(budget)) {
      const now = await contextOf(this.#place, budget);
      if (now.cut !== null && !now.entryIds.includes(oldest)) continue;
      const problem = changeSince(this.#plan, now);
      return problem === null
        ? { kept: now.messages.slice(now.entryIds.indexOf(firstKeptEntryId)) }
        : { problem };
    }
  }
}

async function contextOf(place: StoredSession, byteBudget: number | undefined): Promise<SessionContext> {
  const { sessions, scope, sessionId } = place;
  const options = byteBudget === undefined ? {} : { byteBudget };
  return (await sessions.context(scope, sessionId, options)) ?? noSuchSession(sessionId);
}

function wider(budget: number | undefined): number | undefined {
  return budget === undefined ? undefined : budget * widerBy;
}

/**
 * Returns why a plan no longer fits the session, or `null` if it fits. Entries that were added after the plan was made
 * are ignored.
 */
function changeSince(plan: CutPlan, now: SessionContext): string | null {
  const first = now.messages[0];
  const previous = first?.role === "compactionSummary" ? first : null;
  const previousId = previous === null ? null : now.entryIds[0];
  if (previousId !== plan.previousEntryId) return "another compaction was written first";
  const at = now.entryIds.indexOf(plan.firstKeptEntryId);
  if (at === -1) return "the first entry to be kept is no longer on the branch";
  const begins = previous === null ? 0 : 1;
  const from = at - plan.entryIds.length;
  const isWhole = plan.isCut ? from >= begins : from === begins;
  const isSame =
    isWhole &&
    previous?.summary === (plan.previousSummary ?? undefined) &&
    plan.entryIds.every(
      (id, index) =>
        now.entryIds[from + index] === id && sameJson(now.messages[from + index], plan.toSummarize[index]),
    );
  return isSame ? null : "the summarized part has changed in the meantime";
}

/** A message with its entry. */
interface OlderMessage {
  readonly entryId: string;
  readonly message: ContextMessage;
}

const pageEntries = 200;

/**
 * Yields the messages that a byte budget left out of a context, from the cut back to the first entry that the last
 * compaction kept. Pages are in newest-first order, and the messages within a page are in oldest-first order. Only one
 * page is held in memory at a time. Reading starts at the leaf, because an edit comes after the entry that it edits.
 * Throws `conflict` if the branch moves during the read.
 */
async function* olderPages(
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
  /** Where the context begins. `null` until it has been found. */
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
  const problem = "The branch moved while it was being summarized";
  throw new SkeinError("conflict", { problem, advice: retryAdvice }, { cause: error });
}
