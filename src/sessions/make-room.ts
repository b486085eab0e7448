import type { TurnEvent, TurnModel } from "../agents/contract.ts";
import { SkeinError } from "../core/errors.ts";
import type { Usage } from "../core/messages.ts";
import { present } from "../core/present.ts";
import { noSuchSession } from "../store/rules.ts";
import type { ContextSize } from "../transcript/compaction/limits.ts";
import type { Measure } from "../transcript/compaction/recover.ts";
import { afterMeasure, nextMeasure, noRecovery } from "../transcript/compaction/recover.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import { sessionLikelyHasOversizedToolResults } from "../transcript/steps/truncate-tool-results.ts";
import type { App } from "./app.ts";
import { compactSession } from "./compact.ts";
import type { RunPlace } from "./run-place.ts";
import { modelLimits } from "./run-place.ts";
import type { RunWriter } from "./run-writer.ts";
import { truncateOversizedToolResultsInSession } from "./truncate-results.ts";
import type { TurnRequests } from "./turn-request.ts";

type RoomApp = Pick<App, "store" | "hooks" | "config" | "models" | "newId">;

export interface RoomAbout {
  readonly model: TurnModel;
  readonly signal: AbortSignal;
  readonly writer: RunWriter;
  readonly requests: TurnRequests;
  /** What a summary cost; rejects where that was more than there was. */
  used(usage: Usage): Promise<void>;
  told(event: {
    readonly phase: "started" | "done" | "not_done";
    readonly measure: Measure;
    readonly note?: string;
    readonly entryId?: string;
    readonly freedTokens?: number;
  }): void;
  /** A request for a summary is tried again. */
  retried(event: Extract<TurnEvent, { type: "retry" }>): void;
}

/** How large the next request is, by our own estimate of what it holds now. */
interface RequestSize {
  readonly tokens: number;
  /** Its older part does not fit the byte budget. */
  readonly isCut: boolean;
}

type Taken = { readonly note?: string; readonly entryId?: string };

/** What one run does about a context that does not fit, over all its steps. */
export class RoomMaker {
  readonly #app: RoomApp;
  readonly #place: RunPlace;
  readonly #about: RoomAbout;
  readonly #recovery: ContextRecovery;
  #trigger: "threshold" | "overflow" = "threshold";
  /** The request that did not fit. */
  #refused: RequestSize = { tokens: 0, isCut: false };

  constructor(app: RoomApp, place: RunPlace, about: RoomAbout) {
    this.#app = app;
    this.#place = place;
    this.#about = about;
    const { requests } = about;
    this.#recovery = new ContextRecovery({
      hasOversizedResults: () => this.#hasOversized(),
      // Requests cut these results by the lowered window already: what that frees counts.
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

  /** `true`: the next request is smaller than the one that did not fit. `false`: nothing is left to be done. */
  async make({ tokens }: ContextSize, why: "threshold" | "overflow"): Promise<boolean> {
    this.#trigger = why;
    this.#refused = await this.#size();
    // The provider knows its window better than the configuration does.
    if (why === "overflow") this.#about.requests.lowerWindow(tokens);
    const measure = await this.#recovery.makeRoom();
    return measure !== "give_up" || (await this.#gainSince(this.#refused)).isBetter;
  }

  /** Takes one measure, looks at what the next request is then, and tells how much smaller that is. */
  async #take(measure: Measure, take: () => Promise<Taken>, since?: RequestSize): Promise<boolean> {
    const { told, signal } = this.#about;
    told({ phase: "started", measure });
    const before = since ?? (await this.#size());
    const { note, entryId } = await take();
    signal.throwIfAborted();
    const { freedTokens, isBetter } = await this.#gainSince(before);
    told({ phase: isBetter ? "done" : "not_done", measure, freedTokens, ...present({ note, entryId }) });
    return isBetter;
  }

  async #gainSince(before: RequestSize): Promise<{ freedTokens: number; isBetter: boolean }> {
    const now = await this.#size();
    const freedTokens = Math.max(0, before.tokens - now.tokens);
    return { freedTokens, isBetter: freedTokens > 0 || (before.isCut && !now.isCut) };
  }

  async #size(): Promise<RequestSize> {
    const { messages, context } = await this.#about.requests.next();
    return { tokens: estimateTokens(messages), isCut: context.cut !== null };
  }

  /** Results over the limit of the configured window are cut in every request: to cut those for good frees nothing. */
  async #hasOversized(): Promise<boolean> {
    const { messages } = await this.#context();
    if (!sessionLikelyHasOversizedToolResults(messages, this.#window)) return false;
    return this.#refused.isCut || (await this.#gainSince(this.#refused)).isBetter;
  }

  async #truncateOversized(): Promise<Taken> {
    const { store, newId } = this.#app;
    const { scope, session } = this.#place;
    const { writer } = this.#about;
    const record = (await store.sessions.get(scope, session.sessionId)) ?? noSuchSession(session.sessionId);
    const options = { contextWindow: this.#window, newId, fence: writer.fence };
    try {
      const { truncated, refused } = await truncateOversizedToolResultsInSession(
        store.sessions,
        scope,
        record,
        options,
      );
      if (truncated.length > 0) await writer.lookAgain();
      return present({ note: refused });
    } catch (error) {
      if (error instanceof SkeinError && error.code === "conflict") return { note: error.message };
      throw error;
    }
  }

  async #compact(compactions: number): Promise<Taken> {
    const { config, models } = this.#app;
    const { scope, session, ctx } = this.#place;
    const { model, signal, writer, retried } = this.#about;
    const bill = new Bill((usage) => this.#about.used(usage));
    const summarize = models.summarizer(model, {
      signal,
      limits: modelLimits(config),
      onUsage: (usage) => bill.add(usage),
      onRetry: retried,
    });
    const outcome = await compactSession(this.#app, scope, session, {
      summarize: (request) => bill.unlessOver(() => summarize(request)),
      contextWindow: this.#window,
      mode: config.compaction.mode,
      maxHistoryShare: config.compaction.maxHistoryShare,
      trigger: this.#trigger,
      signal,
      compactions,
      ctx,
      fence: writer.fence,
    });
    // A summary that was written stays; if it cost more than the budget has left, the turn ends even so.
    await bill.settle();
    return outcome.done ? { entryId: outcome.entryId } : { note: outcome.note };
  }

  get #window(): number {
    return this.#about.requests.contextWindow;
  }

  async #context() {
    const { scope, session } = this.#place;
    const context = await this.#app.store.sessions.context(scope, session.sessionId, present({}));
    return context ?? noSuchSession(session.sessionId);
  }
}

/** What the summaries of one compaction cost. Nothing more is asked once that is more than there was. */
class Bill {
  readonly #charge: (usage: Usage) => Promise<void>;
  readonly #charges: Promise<void>[] = [];

  constructor(charge: (usage: Usage) => Promise<void>) {
    this.#charge = charge;
  }

  add(usage: Usage): void {
    const charged = this.#charge(usage);
    // Heard of in `settle`, however late that comes.
    charged.catch(() => undefined);
    this.#charges.push(charged);
  }

  async unlessOver<T>(work: () => Promise<T>): Promise<T> {
    await this.settle();
    return work();
  }

  async settle(): Promise<void> {
    await Promise.all(this.#charges);
  }
}

/** What can be done about a context that is too large. Each resolves to whether the next request is smaller now. */
export interface RecoveryMeasures {
  /** Whether truncating results makes the request smaller; asked before the first measure. */
  hasOversizedResults(): boolean | Promise<boolean>;
  /** For good, by branching. */
  truncateOversized(): Promise<boolean>;
  /** `compactions`: how many this run has had. */
  compact(compactions: number): Promise<boolean>;
  truncate(): Promise<boolean>;
  prune(): Promise<boolean>;
}

/**
 * What one run does about a context that exceeds the threshold, or that its provider refused as too large: measure after
 * measure, each a bounded number of times. No measure takes an entry out of the session.
 */
export class ContextRecovery {
  readonly #measures: RecoveryMeasures;
  #state = noRecovery;

  constructor(measures: RecoveryMeasures) {
    this.#measures = measures;
  }

  /** Takes measures until one has made the next request smaller; `give_up`: none is left. */
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
