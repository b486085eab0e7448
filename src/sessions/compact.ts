import type { ContextMessage } from "../core/context.ts";
import { SkeinError } from "../core/errors.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { CompactedPayload } from "../protocol/session-changes.ts";
import type { Scope, SessionRecord, SessionStore, Store } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { maxCompactions } from "../transcript/compaction/limits.ts";
import type { CutPlan, NothingToCut } from "../transcript/compaction/plan-cut.ts";
import { messageTokens } from "../transcript/compaction/plan-cut.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import { modelMessage } from "../transcript/model-message.ts";
import type { App } from "./app.ts";
import type { StoredSession, SummaryRange } from "./compaction-range.ts";
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
import { agentFor, checkIdle, modelLimits } from "./run-session.ts";
import { defaultWindow } from "./turn-request.ts";

/** The store that a compaction writes to. */
export interface CompactionDeps {
  readonly store: Pick<Store, "sessions">;
  /** Runs the `before_compaction` and `after_compaction` hooks. */
  readonly hooks?: HookRegistry;
}

const nothingToCut: Readonly<Record<NothingToCut, string>> = {
  nothing_said: "the session is empty",
  only_summary: "there are no messages since the last compaction",
  all_recent: "everything is recent enough to keep",
  one_turn: "it is a single turn that cannot be split",
};
const maxTries = 20;

/**
 * Summarizes the older part of a session and writes the summary as a compaction. No lock is held while the summary is
 * generated, and messages that arrive during that time are kept. If no summary is produced, nothing is written. Rejects
 * if the store rejects, or with `invalid_arguments` if an option is invalid.
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

/**
 * Plans the cut. If everything is recent, a manual compaction reports this and does nothing. An automatic compaction
 * keeps fewer messages instead.
 */
async function planFor(
  place: StoredSession,
  { contextWindow, trigger, compactions = 0 }: CompactionOptions,
): ReturnType<typeof planSession> {
  for (let had = compactions; ; had++) {
    const planned = await planSession(place, { contextWindow, compactions: had });
    const isAllRecent = "nothing" in planned && planned.nothing === "all_recent";
    if (!isAllRecent || trigger === "manual" || had + 1 >= maxCompactions) return planned;
  }
}

/**
 * Writes the compaction at the current leaf if the plan still fits the branch. Retries if another writer moves the
 * leaf.
 */
async function write(
  { sessions, scope, sessionId }: StoredSession,
  plan: CutPlan,
  range: SummaryRange,
  made: SessionSummary,
  options: CompactionOptions,
): Promise<CompactionOutcome> {
  const fence = options.fence === undefined ? {} : { fence: options.fence };
  const tokensBefore = plan.tokensBefore + made.olderTokens;
  if (await range.hasOlderChanged())
    return notDone("conflict", "the summarized part has changed in the meantime");
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
      if (!isMoved(error) || tries === maxTries) throw error;
    }
  }
}

/** Whether the branch moved between the read and the write. If so, the plan must be checked again. */
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

export interface CompactNowOptions {
  /** What the summary should emphasize. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
}

/** Summarizes a session with the model that answers in it. Throws `conflict` while a run is active. */
export async function compactNow(
  app: Pick<App, "store" | "hooks" | "models" | "config" | "agents" | "acp" | "runs">,
  session: SessionRecord,
  { instructions, signal = new AbortController().signal }: CompactNowOptions = {},
): Promise<CompactionOutcome> {
  const { models, config, runs } = app;
  await runs.read(() => checkIdle(runs, session));
  const model = models.turnModel(modelName(app, session));
  return compactSession(app, scopeOfSession(session), session, {
    summarize: models.summarizer(model, { signal, limits: modelLimits(config), onUsage: () => undefined }),
    contextWindow: model.info.contextWindow ?? defaultWindow,
    mode: config.compaction.mode,
    maxHistoryShare: config.compaction.maxHistoryShare,
    trigger: "manual",
    signal,
    ...(instructions === undefined ? {} : { instructions }),
    fence: { script: () => checkIdle(runs, session) },
  });
}

function modelName(app: Pick<App, "agents" | "acp">, session: SessionRecord): string {
  const { meta, agentId } = session;
  const model = meta.model ?? agentFor(app, session)?.model;
  if (model !== undefined) return model;
  const advice = "Add it to agents in the configuration, or set a model for the session";
  throw new SkeinError("not_found", { what: "Agent", name: agentId, advice });
}

/**
 * Writes a compaction with the given summary. Throws `conflict` if the session has changed since the record was read.
 */
export async function compactByHand(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId, leafId }: SessionRecord,
  { summary, keepFrom }: { readonly summary: string; readonly keepFrom: string },
): Promise<CompactedPayload> {
  if (summary.trim() === "") {
    throw new SkeinError("invalid_arguments", {
      problem: "The summary is empty",
      advice: "Summarize everything before the first kept entry",
    });
  }
  const first = await sessions.entry(scope, sessionId, keepFrom);
  if (first?.type === "message" && first.message.role === "toolResult") {
    throw new SkeinError("invalid_arguments", {
      problem: `${keepFrom} is a tool result, and its call would be removed`,
      advice: "Keep from the message with the call, or from a later message",
    });
  }
  const context = (await sessions.context(scope, sessionId)) ?? noSuchSession(sessionId);
  const tokensBefore = estimateTokens(
    context.messages.map(modelMessage).filter((message) => message !== null),
  );
  const draft = { type: "compaction", summary, firstKeptEntryId: keepFrom, tokensBefore } as const;
  const { entries } = await sessions.append(scope, sessionId, [{ draft }], { expectedLeafId: leafId });
  return { key, sessionId, entryId: entries[0]?.id ?? "", firstKeptEntryId: keepFrom, tokensBefore };
}
