import { isDeepStrictEqual } from "node:util";
import type { Tool, TurnModel, TurnRequest } from "../agents/contract.ts";
import type { SessionContext } from "../core/context.ts";
import { present } from "../core/present.ts";
import { noSuchSession } from "../store/rules.ts";
import { byteBudgetFor, minContextWindow, shouldCompact } from "../transcript/compaction/limits.ts";
import type { ImagePort, PruningOptions } from "../transcript/contract.ts";
import { contextTokens, estimateTokens } from "../transcript/estimate-tokens.ts";
import { sessionHistoryLimit } from "../transcript/steps/limit-history.ts";
import { prepareTranscript } from "../transcript/steps/prepare-transcript.ts";
import { prunedResults } from "../transcript/steps/prune-context.ts";
import type { App } from "./app.ts";
import type { RunPlace } from "./run-place.ts";

/** Of a model of which nothing is known. */
export const usualWindow = 128_000;
/** In memory, where nothing else helped: results are cut as if the window were so much smaller. */
const harderShare = 0.25;

export interface RequestAbout {
  readonly model: TurnModel;
  readonly system: string | null;
  /** `null`: not known. */
  readonly tools: readonly RequestTool[] | null;
  /** How the names of tools begin whose servers have not listed them yet. */
  readonly unlisted?: readonly string[];
}

type RequestTool = Pick<Tool, "name" | "description" | "inputSchema">;

/** Derives from the session, again for each step, what the model is asked. */
export class TurnRequests {
  readonly #app: Pick<App, "store" | "config" | "clock">;
  readonly #place: RunPlace;
  readonly #about: RequestAbout;
  #pruned: PruningOptions["pruned"];
  #last: TurnRequest | null = null;
  /** The last measures against a context that does not fit. */
  cutHarder = false;
  pruneNow = false;
  #window: number;
  /** From then on, in every request of the run. */
  isSealedThinkingRejected = false;

  constructor(app: Pick<App, "store" | "config" | "clock">, place: RunPlace, about: RequestAbout) {
    this.#app = app;
    this.#place = place;
    this.#about = about;
    this.#window = configuredWindow(about.model);
  }

  get contextWindow(): number {
    return this.#window;
  }

  /** A request of so many tokens was refused: the window is no larger, whatever the configuration says. */
  lowerWindow(refusedTokens: number): void {
    this.#window = Math.max(minContextWindow, Math.min(this.#window, refusedTokens));
  }

  async next(): Promise<TurnRequest> {
    const request = await this.#build(await this.#context());
    this.#pruned = prunedResults(request.messages);
    this.#last = request;
    return request;
  }

  /** The request that the model is answering now. Once the session has gone on, the one that would come next. */
  async preview(): Promise<TurnRequest> {
    const context = await this.#context();
    const last = this.#last;
    if (last !== null && isDeepStrictEqual(last.context.entryIds, context.entryIds)) return last;
    return this.#build(context);
  }

  async #context(): Promise<SessionContext> {
    const { scope, session } = this.#place;
    // By the configured window: a lowered one makes the request smaller, and must not make its older part disappear.
    const byteBudget = byteBudgetFor(configuredWindow(this.#about.model));
    const context = await this.#app.store.sessions.context(scope, session.sessionId, present({ byteBudget }));
    return context ?? noSuchSession(session.sessionId);
  }

  async #build(context: SessionContext): Promise<TurnRequest> {
    const { session } = this.#place;
    const { model, system, tools } = this.#about;
    const { contextWindow } = this;
    const { messages, changes } = await prepareTranscript(context.messages, model.policy, {
      ...present({ historyLimit: sessionHistoryLimit(session, this.#app.config.channels) }),
      contextWindow: this.cutHarder ? Math.floor(contextWindow * harderShare) : contextWindow,
      entryIds: context.entryIds,
      ...present({ tools: this.#toolNames(context) }),
      isSealedThinkingRejected: this.isSealedThinkingRejected,
      images: this.#images(),
      pruning: this.#pruning(context.messages.findLast(isAnswer)?.timestamp ?? null),
    });
    const compactedAt = context.messages.findLast(({ role }) => role === "compactionSummary")?.timestamp;
    const counted = contextTokens(messages, present({ compactedAt }));
    const standing = counted.measured > 0 ? 0 : standingTokens(system, tools ?? []);
    const tokens = counted.tokens + standing;
    const isOverThreshold = shouldCompact({ tokens, contextWindow, cut: context.cut });
    return { messages, context, changes, tokens, isOverThreshold };
  }

  /** The offered tools, and those of servers that have not listed theirs yet as far as the history calls them. */
  #toolNames({ messages }: SessionContext): readonly string[] | undefined {
    const { tools, unlisted = [] } = this.#about;
    if (tools === null) return undefined;
    const called = messages.flatMap((message) =>
      unlisted.length > 0 && message.role === "assistant" && typeof message.content !== "string"
        ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.name] : []))
        : [],
    );
    const fromUnlisted = called.filter((name) => unlisted.some((prefix) => name.startsWith(prefix)));
    return [...new Set([...tools.map(({ name }) => name), ...fromUnlisted])];
  }

  #images() {
    const blob = (sha256: string) => this.#app.store.blobs.get(this.#place.scope, sha256);
    return { blob, shrink: shrinkImage };
  }

  #pruning(answeredAt: number | null): PruningOptions {
    const { mode, ttl, tools } = this.#app.config.contextPruning;
    const allow = tools.allow.length === 0 ? undefined : tools.allow;
    return {
      mode: this.pruneNow ? "cache-ttl" : mode,
      ttlMs: ttl,
      lastCallAt: this.pruneNow ? null : answeredAt,
      now: this.#app.clock.now(),
      ...present({ allow, pruned: this.#pruned }),
      deny: tools.deny,
    };
  }
}

function configuredWindow({ info }: TurnModel): number {
  return info.contextWindow ?? usualWindow;
}

function isAnswer({ role }: { readonly role: string }): boolean {
  return role === "assistant";
}

/** What goes along with every request, where the provider has not counted it yet. */
function standingTokens(system: string | null, tools: readonly RequestTool[]): number {
  const text = [
    system ?? "",
    ...tools.map(({ description, inputSchema }) => description + JSON.stringify(inputSchema)),
  ];
  return estimateTokens([{ role: "user", content: text.join("\n") }]);
}

/** Loaded with the first image that is too large. */
const shrinkImage: NonNullable<ImagePort["shrink"]> = async (image, limits) => {
  const { shrinkImage: shrink } = await import("../agents/shrink-image.ts");
  return shrink(image, limits);
};
