import { SkeinError } from "../../core/errors.ts";
import type { Usage } from "../../core/messages.ts";
import { present } from "../../core/present.ts";
import type { TurnModel } from "../../runtimes/contract.ts";
import { noSuchSession } from "../../store/refusals.ts";
import type { ContextSize } from "../../transcript/compaction/limits.ts";
import type { Measure } from "../../transcript/compaction/recover.ts";
import { sessionLikelyHasOversizedToolResults } from "../../transcript/steps/truncate-tool-results.ts";
import { compactSession } from "../compact-session.ts";
import type { CompactionOutcome } from "../compaction-outcome.ts";
import { ContextRecovery } from "../recover-context.ts";
import { truncateOversizedToolResultsInSession } from "../truncate-in-session.ts";
import type { RunningDeps, RunPlace } from "./contract.ts";
import type { RunWriter } from "./run-writer.ts";
import type { TurnRequests } from "./turn-request.ts";

type Deps = Pick<RunningDeps, "store" | "hooks" | "settings" | "models" | "newId">;

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
  }): void;
}

/** What one run does about a context that does not fit, over all its steps. */
export class RoomMaker {
  readonly #deps: Deps;
  readonly #place: RunPlace;
  readonly #about: RoomAbout;
  readonly #recovery: ContextRecovery;
  #trigger: "threshold" | "overflow" = "threshold";

  constructor(deps: Deps, place: RunPlace, about: RoomAbout) {
    this.#deps = deps;
    this.#place = place;
    this.#about = about;
    this.#recovery = new ContextRecovery(place.session.sessionId, {
      hasOversizedResults: () => this.#hasOversized(),
      truncateOversized: () => this.#tell("truncate_oversized", () => this.#truncateOversized()),
      compact: (compactions) => this.#compact(compactions),
      truncate: () => this.#inMemory("truncate", "cutHarder"),
      prune: () => this.#inMemory("prune", "pruneNow"),
    });
  }

  async make(size: ContextSize, why: "threshold" | "overflow"): Promise<void> {
    this.#trigger = why;
    await this.#recovery.makeRoom(size);
  }

  async #hasOversized(): Promise<boolean> {
    const { messages } = await this.#context();
    return sessionLikelyHasOversizedToolResults(messages, this.#window);
  }

  async #truncateOversized(): Promise<boolean> {
    const { store, newId } = this.#deps;
    const { scope, session } = this.#place;
    const { writer } = this.#about;
    const record = (await store.sessions.get(scope, session.sessionId)) ?? noSuchSession(session.sessionId);
    const options = { contextWindow: this.#window, newId, fence: writer.fence };
    try {
      const { truncated } = await truncateOversizedToolResultsInSession(
        store.sessions,
        scope,
        record,
        options,
      );
      if (truncated.length > 0) await writer.lookAgain();
      return truncated.length > 0;
    } catch (error) {
      if (error instanceof SkeinError && error.code === "conflict") return false;
      throw error;
    }
  }

  async #compact(compactions: number): Promise<CompactionOutcome> {
    const { settings, models } = this.#deps;
    const { scope, session, ctx } = this.#place;
    const { model, signal, writer, told } = this.#about;
    told({ phase: "started", measure: "compact" });
    const bill = new Bill((usage) => this.#about.used(usage));
    const summarise = models.summariser(model, signal, (usage) => bill.add(usage));
    const outcome = await compactSession(this.#deps, scope, session, {
      summarise: (request) => bill.unlessOver(() => summarise(request)),
      contextWindow: this.#window,
      mode: settings.compaction.mode,
      maxHistoryShare: settings.compaction.maxHistoryShare,
      trigger: this.#trigger,
      signal,
      compactions,
      ctx,
      fence: writer.fence,
    });
    if (outcome.done) told({ phase: "done", measure: "compact", entryId: outcome.entryId });
    else told({ phase: "not_done", measure: "compact", note: outcome.note });
    // A summary that is there stands; where it cost more than there was, the turn ends all the same.
    await bill.settle();
    return outcome;
  }

  async #inMemory(measure: Measure, flag: "cutHarder" | "pruneNow"): Promise<boolean> {
    return this.#tell(measure, async () => {
      const before = (await this.#about.requests.next()).tokens;
      this.#about.requests[flag] = true;
      return (await this.#about.requests.next()).tokens < before;
    });
  }

  async #tell(measure: Measure, take: () => Promise<boolean>): Promise<boolean> {
    this.#about.told({ phase: "started", measure });
    const helped = await take();
    this.#about.told({ phase: helped ? "done" : "not_done", measure });
    return helped;
  }

  get #window(): number {
    return this.#about.requests.contextWindow;
  }

  async #context() {
    const { scope, session } = this.#place;
    const context = await this.#deps.store.sessions.context(scope, session.sessionId, present({}));
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
