import type { ContextMessage } from "../core/context.ts";
import { SkeinError } from "../core/errors.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { Scope, SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import { maxCompactions } from "../transcript/compaction/limits.ts";
import type { CutPlan, NothingToCut } from "../transcript/compaction/plan-cut.ts";
import { messageTokens } from "../transcript/compaction/plan-cut.ts";
import type { SessionPlace, SummaryRange } from "./compaction-range.ts";
import { planSession } from "./compaction-range.ts";
import type { CompactionOptions, CompactionOutcome, SessionSummary } from "./compaction-summary.ts";
import {
  CompactionHooks,
  checkCompactionOptions,
  notDone,
  summaryFor,
  summaryMessage,
} from "./compaction-summary.ts";
import { HookRegistry } from "./hooks.ts";

/** What a compaction needs. */
export interface CompactionDeps {
  readonly store: Pick<Store, "sessions">;
  /** `before_compaction` is asked, `after_compaction` told. */
  readonly hooks?: HookRegistry;
}

const nothingToCut: Readonly<Record<NothingToCut, string>> = {
  nothing_said: "nothing was said yet",
  only_summary: "nothing was said since the last compaction",
  all_recent: "all of it is recent enough to be kept",
  one_turn: "it is one turn, and there is no place to cut it at",
};
const mostTries = 20;

/**
 * Has the older part of a session summarized, and writes the summary down as a compaction. The summary is made without
 * any lock: what is said meanwhile stays behind it. Where there is no summary nothing is written, and history is whole.
 * Rejects only where the store does, and with `invalid_arguments` for options that cannot be meant.
 *
 * @example
 * ```ts
 * import { compactSession, createStore } from "skein/store";
 * const store = await createStore({ memory: true });
 * const session = await store.sessions.create({}, { key: "agent:main:main", cwd: "/home/ann" });
 * const outcome = await compactSession({ store }, {}, session, {
 *   summarize: async ({ prompt }) => `## Goal\n${prompt.slice(0, 200)}`,
 *   contextWindow: 200_000,
 *   mode: "default",
 *   trigger: "manual",
 * });
 * if (!outcome.done) console.error(outcome.note);
 * ```
 */
export async function compactSession(
  { store, hooks = new HookRegistry() }: CompactionDeps,
  scope: Scope,
  { sessionId }: Pick<SessionRecord, "sessionId">,
  options: CompactionOptions,
): Promise<CompactionOutcome> {
  checkCompactionOptions(options);
  const place = { sessions: store.sessions, scope, sessionId };
  const around = new CompactionHooks(hooks, options.ctx ?? { ...scope, sessionId });
  const planned = await planFor(place, options);
  if ("nothing" in planned) return notDone(planned.nothing, nothingToCut[planned.nothing]);
  const { plan, range } = planned;
  try {
    const made = await summaryFor(place, plan, range, around, options);
    if ("reason" in made) return made;
    const written = await write(place, plan, range, made, options);
    return written.done ? await around.tellAfter(written) : written;
  } catch (error) {
    if (error instanceof SkeinError && error.code === "conflict") return notDone("conflict", error.message);
    throw error;
  }
}

/** Whoever asks by hand is told that all is recent; where it is too much even so, less of it is kept. */
async function planFor(
  place: SessionPlace,
  { contextWindow, trigger, compactions = 0 }: CompactionOptions,
): ReturnType<typeof planSession> {
  for (let had = compactions; ; had++) {
    const planned = await planSession(place, { contextWindow, compactions: had });
    const isAllRecent = "nothing" in planned && planned.nothing === "all_recent";
    if (!isAllRecent || trigger === "manual" || had + 1 >= maxCompactions) return planned;
  }
}

/** Written at the leaf as it then is, if the branch still holds the plan; decided anew while others write. */
async function write(
  { sessions, scope, sessionId }: SessionPlace,
  plan: CutPlan,
  range: SummaryRange,
  made: SessionSummary,
  options: CompactionOptions,
): Promise<CompactionOutcome> {
  const fence = options.fence === undefined ? {} : { fence: options.fence };
  const tokensBefore = plan.tokensBefore + made.olderTokens;
  if (await range.hasOlderChanged()) return notDone("conflict", "what was summarized has changed meanwhile");
  for (let tries = 1; ; tries++) {
    const here = await sessions.page(scope, sessionId, { along: "branch", limit: 1 });
    const now = await range.keptNow();
    if ("problem" in now) return notDone("conflict", now.problem);
    const tokensAfter = tokensOf([summaryMessage(made.text), ...now.kept]);
    const draft = draftOf(plan, made, { tokensBefore, tokensAfter }, options);
    try {
      const { leafId } = here ?? noSuchSession(sessionId);
      const { entries } = await sessions.append(scope, sessionId, [{ draft }], {
        ...fence,
        expectedLeafId: leafId,
      });
      const { text, chunks, retried, missing, usage } = made;
      const written = {
        entryId: entries[0]?.id ?? "",
        summary: text,
        firstKeptEntryId: plan.firstKeptEntryId,
      };
      return { done: true, ...written, tokensBefore, tokensAfter, chunks, retried, missing, usage };
    } catch (error) {
      if (!isMoved(error) || tries === mostTries) throw error;
    }
  }
}

/** Somebody wrote between the look and the write: then the plan is looked at again. */
function isMoved(error: unknown): boolean {
  return error instanceof SkeinError && ["conflict", "invalid_entry"].includes(error.code);
}

function draftOf(
  { firstKeptEntryId }: CutPlan,
  { text, files, fromHook, chunks, retried, usage }: SessionSummary,
  { tokensBefore, tokensAfter }: { readonly tokensBefore: number; readonly tokensAfter: number },
  { mode, trigger }: CompactionOptions,
): EntryDraft {
  const details = { ...files, skein: { trigger, mode, tokensAfter, chunks, retried, usage } };
  const hook = fromHook ? { fromHook } : {};
  return { type: "compaction", summary: text, firstKeptEntryId, tokensBefore, details, ...hook };
}

function tokensOf(messages: readonly ContextMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}
