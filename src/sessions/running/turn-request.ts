import { parseKey } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import type { Tool, TurnModel, TurnRequest } from "../../runtimes/contract.ts";
import { noSuchSession } from "../../store/refusals.ts";
import { byteBudgetFor, shouldCompact } from "../../transcript/compaction/limits.ts";
import { contextTokens } from "../../transcript/context-tokens.ts";
import type { PruningOptions } from "../../transcript/contract.ts";
import { estimateTokens } from "../../transcript/estimate-tokens.ts";
import { historyLimitFor } from "../../transcript/history-limit.ts";
import { prepareTranscript } from "../../transcript/pipeline/prepare.ts";
import { prunedResults } from "../../transcript/steps/prune-context.ts";
import type { RunningDeps, RunPlace } from "./contract.ts";

/** Of a model of which nothing is known. */
export const usualWindow = 128_000;
/** In memory, where nothing else helped: results are cut as if the window were so much smaller. */
const harderShare = 0.25;

type Deps = Pick<RunningDeps, "store" | "settings" | "clock" | "shrink">;

export interface RequestAbout {
  readonly model: TurnModel;
  readonly system: string | null;
  readonly tools: readonly Tool[];
}

/** Derives from the session, again for each step, what the model is asked. */
export class TurnRequests {
  readonly #deps: Deps;
  readonly #place: RunPlace;
  readonly #about: RequestAbout;
  #pruned: PruningOptions["pruned"];
  /** The last measures against a context that does not fit. */
  cutHarder = false;
  pruneNow = false;
  /** From then on, in every request of the run. */
  isSealedThinkingRejected = false;

  constructor(deps: Deps, place: RunPlace, about: RequestAbout) {
    this.#deps = deps;
    this.#place = place;
    this.#about = about;
  }

  get contextWindow(): number {
    return this.#about.model.info.contextWindow ?? usualWindow;
  }

  async next(): Promise<TurnRequest> {
    const { store } = this.#deps;
    const { scope, session } = this.#place;
    const { model, system, tools } = this.#about;
    const { contextWindow } = this;
    const byteBudget = byteBudgetFor(contextWindow);
    const context =
      (await store.sessions.context(scope, session.sessionId, present({ byteBudget }))) ??
      noSuchSession(session.sessionId);
    const { messages, changes } = await prepareTranscript(context.messages, model.policy, {
      ...present({ historyLimit: historyLimitFor(parseKey(session.key), this.#deps.settings.channels) }),
      contextWindow: this.cutHarder ? Math.floor(contextWindow * harderShare) : contextWindow,
      entryIds: context.entryIds,
      tools: tools.map(({ name }) => name),
      isSealedThinkingRejected: this.isSealedThinkingRejected,
      images: this.#images(),
      pruning: this.#pruning(context.messages.findLast(isAnswer)?.timestamp ?? null),
    });
    this.#pruned = prunedResults(messages);
    const compactedAt = context.messages.findLast(({ role }) => role === "compactionSummary")?.timestamp;
    const counted = contextTokens(messages, present({ compactedAt }));
    const standing = counted.measured > 0 ? 0 : standingTokens(system, tools);
    const tokens = counted.tokens + standing;
    const isOverThreshold = shouldCompact({ tokens, contextWindow, cut: context.cut });
    return { messages, context, changes, tokens, isOverThreshold };
  }

  #images() {
    const { store, shrink } = this.#deps;
    const blob = (sha256: string) => store.blobs.get(this.#place.scope, sha256);
    return { blob, ...present({ shrink }) };
  }

  #pruning(answeredAt: number | null): PruningOptions {
    const { mode, ttl, tools } = this.#deps.settings.contextPruning;
    const allow = tools.allow.length === 0 ? undefined : tools.allow;
    return {
      mode: this.pruneNow ? "cache-ttl" : mode,
      ttlMs: ttl,
      lastCallAt: this.pruneNow ? null : answeredAt,
      now: this.#deps.clock.now(),
      ...present({ allow, pruned: this.#pruned }),
      deny: tools.deny,
    };
  }
}

function isAnswer({ role }: { readonly role: string }): boolean {
  return role === "assistant";
}

/** What goes along with every request, where the provider has not counted it yet. */
function standingTokens(system: string | null, tools: readonly Tool[]): number {
  const text = [
    system ?? "",
    ...tools.map(({ description, inputSchema }) => description + JSON.stringify(inputSchema)),
  ];
  return estimateTokens([{ role: "user", content: text.join("\n") }]);
}
