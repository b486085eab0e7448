import { createHash } from "node:crypto";
import type { ContextMessage, SessionContext } from "../core/context.ts";
import { stringifyJson } from "../core/json.ts";
import { sameJson } from "../core/link.ts";
import type { Scope, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import { byteBudgetFor } from "../transcript/compaction/limits.ts";
import type { CutPlan, NothingToCut } from "../transcript/compaction/plan-cut.ts";
import { planCut } from "../transcript/compaction/plan-cut.ts";
import { olderPages } from "./older-pages.ts";

/** A session's context as a compaction reads it: what is to be summarized, and whether it still is what it was. */

const widerBy = 4;

export interface SessionPlace {
  readonly sessions: SessionStore;
  readonly scope: Scope;
  readonly sessionId: string;
}

/** Plans the cut by what a budget of bytes lets in; where no cut can be found in that, by more. */
export async function planSession(
  place: SessionPlace,
  options: { readonly contextWindow: number; readonly compactions?: number },
): Promise<{ readonly plan: CutPlan; readonly range: SummaryRange } | { readonly nothing: NothingToCut }> {
  for (let budget = byteBudgetFor(options.contextWindow); ; budget = wider(budget)) {
    const context = await contextOf(place, budget);
    const plan = planCut(context, options);
    if (!("nothing" in plan)) return { plan, range: new SummaryRange(place, plan, context, budget) };
    if (context.cut === null) return plan;
  }
}

/** What a plan is about in its session, while a summary is made of it. */
export class SummaryRange {
  readonly #place: SessionPlace;
  readonly #plan: CutPlan;
  readonly #context: SessionContext;
  readonly #budget: number | undefined;
  /** What the older part said when it was read last. */
  #older: string | null = null;

  constructor(place: SessionPlace, plan: CutPlan, context: SessionContext, budget: number | undefined) {
    this.#place = place;
    this.#plan = plan;
    this.#context = context;
    this.#budget = budget;
  }

  /** The messages before the plan's own, newest page first. */
  async *older(): AsyncGenerator<readonly ContextMessage[]> {
    const { sessions, scope, sessionId } = this.#place;
    const hash = createHash("sha256");
    for await (const page of olderPages(sessions, scope, sessionId, this.#context)) {
      for (const each of page) hash.update(`${each.entryId} ${stringifyJson(each.message)}\n`);
      yield page.map(({ message }) => message);
    }
    this.#older = hash.digest("hex");
  }

  /** Whether what was read by pages has changed, by a redaction for one. */
  async hasOlderChanged(): Promise<boolean> {
    const before = this.#older;
    if (before === null) return false;
    for await (const _page of this.older());
    return this.#older !== before;
  }

  /** What is kept as the session is now, or why the plan no longer holds. */
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

async function contextOf(place: SessionPlace, byteBudget: number | undefined): Promise<SessionContext> {
  const { sessions, scope, sessionId } = place;
  const options = byteBudget === undefined ? {} : { byteBudget };
  return (await sessions.context(scope, sessionId, options)) ?? noSuchSession(sessionId);
}

function wider(budget: number | undefined): number | undefined {
  return budget === undefined ? undefined : budget * widerBy;
}

/** What keeps a plan from being carried out on a session that went on; `null`: nothing, entries behind it are fine. */
function changeSince(plan: CutPlan, now: SessionContext): string | null {
  const first = now.messages[0];
  const previous = first?.role === "compactionSummary" ? first : null;
  const previousId = previous === null ? null : now.entryIds[0];
  if (previousId !== plan.previousEntryId) return "another compaction came first";
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
  return isSame ? null : "what was summarized has changed meanwhile";
}
