import type { TurnEvent, TurnModel } from "../agents/contract.ts";
import { SkeinError } from "../core/errors.ts";
import type { Usage } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { SessionRecord } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import type { ContextSize } from "../transcript/compaction/limits.ts";
import type { Measure } from "../transcript/compaction/recover.ts";
import { afterMeasure, nextMeasure, noRecovery } from "../transcript/compaction/recover.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import { sessionLikelyHasOversizedToolResults } from "../transcript/steps/truncate-tool-results.ts";
import type { App } from "./app.ts";
import { compactSession } from "./compact.ts";
import { modelLimits } from "./run-session.ts";
import type { RunWriter } from "./run-writer.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { truncateOversizedToolResultsInSession } from "./truncate-results.ts";
import type { TurnRequests } from "./turn-request.ts";

type RoomApp = Pick<App, "store" | "hooks" | "config" | "models" | "newId">;

/** The turn whose context is too large. */
interface RoomTurn {
  readonly model: TurnModel;
  readonly signal: AbortSignal;
  readonly writer: RunWriter;
  readonly requests: TurnRequests;
  /** The context for hooks. */
  readonly ctx: RuntimeContext;
  /** Charges a summary to the budget. Rejects if the budget is exceeded. */
  charge(usage: Usage): Promise<void>;
  report(event: {
    readonly phase: "started" | "done" | "not_done";
    readonly measure: Measure;
    readonly note?: string;
    readonly entryId?: string;
    readonly freedTokens?: number;
  }): void;
  /** Called when a request for a summary is retried. */
  reportRetry(event: Extract<TurnEvent, { type: "retry" }>): void;
}

/** The estimated size of the next request. */
interface RequestSize {
  readonly tokens: number;
  /** `true` if the older part of the context exceeds the byte budget. */
  readonly isCut: boolean;
}

type MeasureResult = { readonly note?: string; readonly entryId?: string };

/** Makes a run's context fit in the window, across all of the run's steps. */
export class RoomMaker {
  readonly #app: RoomApp;
  readonly #session: SessionRecord;
  readonly #turn: RoomTurn;
  readonly #recovery: ContextRecovery;
  #trigger: "threshold" | "overflow" = "threshold";
  /** The size of the request that did not fit. */
  #refused: RequestSize = { tokens: 0, isCut: false };

  constructor(app: RoomApp, session: SessionRecord, turn: RoomTurn) {
    this.#app = app;
    this.#session = session;
    this.#turn = turn;
    const { requests } = turn;
    this.#recovery = new ContextRecovery({
      hasOversizedResults: () => this.#hasOversized(),
      // Requests already truncate these results to the lowered window. Comparing with the request that did not fit
      // counts the tokens freed that way.
      truncateOversized: () =>
        this.#take("truncate_oversized", () => this.#truncateOversized(), this.#refused),
      compact: (compactions) => this.#take("compact", () => this.#compact(compactions)),
      truncate: () =>
        this.#take("truncate", async () => {
          requests.cutHarder = true;
          return {};
        }),
      prune: () =>
        this.#take("prune", async () => {
          requests.pruneNow = true;
          return {};
        }),
    });
  }

  /**
   * Returns `true` if the next request is smaller than the one that did not fit, `false` if no recovery steps remain.
   */
  async make({ tokens }: ContextSize, why: "threshold" | "overflow"): Promise<boolean> {
    this.#trigger = why;
    this.#refused = await this.#size();
    // The provider's window takes precedence over the configured one.
    if (why === "overflow") this.#turn.requests.lowerWindow(tokens);
    const measure = await this.#recovery.makeRoom();
    return measure !== "give_up" || (await this.#gainSince(this.#refused)).isBetter;
  }

  /** Takes one recovery step and reports how many tokens it freed. Returns whether the next request is smaller. */
  async #take(measure: Measure, take: () => Promise<MeasureResult>, since?: RequestSize): Promise<boolean> {
    const { report, signal } = this.#turn;
    report({ phase: "started", measure });
    const before = since ?? (await this.#size());
    const { note, entryId } = await take();
    signal.throwIfAborted();
    const { freedTokens, isBetter } = await this.#gainSince(before);
    report({ phase: isBetter ? "done" : "not_done", measure, freedTokens, ...present({ note, entryId }) });
    return isBetter;
  }

  async #gainSince(before: RequestSize): Promise<{ freedTokens: number; isBetter: boolean }> {
    const now = await this.#size();
    const freedTokens = Math.max(0, before.tokens - now.tokens);
    return { freedTokens, isBetter: freedTokens > 0 || (before.isCut && !now.isCut) };
  }

  async #size(): Promise<RequestSize> {
    const { messages, context } = await this.#turn.requests.next();
    return { tokens: estimateTokens(messages), isCut: context.cut !== null };
  }

  /**
   * Whether truncating results permanently would free tokens. Truncating a result that exceeds the configured window's
   * limit frees none, because every request already truncates it.
   */
  async #hasOversized(): Promise<boolean> {
    const { messages } = await this.#context();
    if (!sessionLikelyHasOversizedToolResults(messages, this.#window)) return false;
    return this.#refused.isCut || (await this.#gainSince(this.#refused)).isBetter;
  }

  async #truncateOversized(): Promise<MeasureResult> {
    const { store, newId } = this.#app;
    const { sessionId } = this.#session;
    const { writer } = this.#turn;
    const scope = scopeOfSession(this.#session);
    const record = (await store.sessions.get(scope, sessionId)) ?? noSuchSession(sessionId);
    const options = { contextWindow: this.#window, newId, fence: writer.fence };
    try {
      const { truncated, refused } = await truncateOversizedToolResultsInSession(
        store.sessions,
        scope,
        record,
        options,
      );
      if (truncated.length > 0) await writer.readLastMessage();
      return present({ note: refused });
    } catch (error) {
      if (error instanceof SkeinError && error.code === "conflict") return { note: error.message };
      throw error;
    }
  }

  async #compact(compactions: number): Promise<MeasureResult> {
    const { config, models } = this.#app;
    const { model, signal, writer, ctx, reportRetry } = this.#turn;
    const charges = new Charges((usage) => this.#turn.charge(usage));
    const summarize = models.summarizer(model, {
      signal,
      limits: modelLimits(config),
      onUsage: (usage) => charges.add(usage),
      onRetry: reportRetry,
    });
    const outcome = await compactSession(this.#app, scopeOfSession(this.#session), this.#session, {
      summarize: (request) => charges.settle().then(() => summarize(request)),
      contextWindow: this.#window,
      mode: config.compaction.mode,
      maxHistoryShare: config.compaction.maxHistoryShare,
      trigger: this.#trigger,
      signal,
      compactions,
      ctx,
      fence: writer.fence,
    });
    // A summary that has been written is kept. If it exceeded the budget, the turn still ends.
    await charges.settle();
    return outcome.done ? { entryId: outcome.entryId } : { note: outcome.note };
  }

  get #window(): number {
    return this.#turn.requests.contextWindow;
  }

  async #context() {
    const { sessionId } = this.#session;
    const context = await this.#app.store.sessions.context(scopeOfSession(this.#session), sessionId);
    return context ?? noSuchSession(sessionId);
  }
}

/** The costs of one compaction's summaries. `settle` rejects once they exceed the budget. */
class Charges {
  readonly #charge: (usage: Usage) => Promise<void>;
  readonly #charges: Promise<void>[] = [];

  constructor(charge: (usage: Usage) => Promise<void>) {
    this.#charge = charge;
  }

  add(usage: Usage): void {
    const charged = this.#charge(usage);
    // `settle` reports the error.
    charged.catch(() => undefined);
    this.#charges.push(charged);
  }

  async settle(): Promise<void> {
    await Promise.all(this.#charges);
  }
}

/** Recovery steps for a context that is too large. Each one resolves to whether the next request is now smaller. */
export interface RecoveryMeasures {
  /** Whether truncating results would make the request smaller. Called before the first recovery step. */
  hasOversizedResults(): boolean | Promise<boolean>;
  /** Truncates permanently, by branching. */
  truncateOversized(): Promise<boolean>;
  /** `compactions` is the number of compactions this run has already had. */
  compact(compactions: number): Promise<boolean>;
  truncate(): Promise<boolean>;
  prune(): Promise<boolean>;
}

/**
 * Takes recovery steps for a context that exceeds the threshold or that a provider rejected as too large. The number of
 * times that each step is taken is limited. No step removes an entry from the session.
 */
export class ContextRecovery {
  readonly #measures: RecoveryMeasures;
  #state = noRecovery;

  constructor(measures: RecoveryMeasures) {
    this.#measures = measures;
  }

  /** Takes recovery steps until one makes the next request smaller. Returns `give_up` if none remain. */
  async makeRoom(): Promise<Measure> {
    const hasOversizedResults = await this.#measures.hasOversizedResults();
    for (;;) {
      const measure = nextMeasure(this.#state, hasOversizedResults);
      if (measure === "give_up") return measure;
      const isSmaller = await this.#take(measure, this.#state.compactions);
      this.#state = afterMeasure(this.#state, measure, isSmaller);
      if (isSmaller) return measure;
    }
  }

  #take(measure: Exclude<Measure, "give_up">, compactions: number): Promise<boolean> {
    switch (measure) {
      case "truncate_oversized":
        return this.#measures.truncateOversized();
      case "compact":
        return this.#measures.compact(compactions);
      case "truncate":
        return this.#measures.truncate();
      case "prune":
        return this.#measures.prune();
    }
  }
}
