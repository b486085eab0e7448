import { isDeepStrictEqual } from "node:util";
import type { Tool, TurnModel, TurnRequest } from "../agents/contract.ts";
import type { ContextOptions, SessionContext } from "../core/context.ts";
import { present } from "../core/present.ts";
import type { SessionRecord } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { byteBudgetFor, minContextWindow, shouldCompact } from "../transcript/compaction/limits.ts";
import type { ImagePort, PruningOptions } from "../transcript/contract.ts";
import { contextTokens, estimateTokens } from "../transcript/estimate-tokens.ts";
import { sessionHistoryLimit } from "../transcript/steps/limit-history.ts";
import { prepareTranscript } from "../transcript/steps/prepare-transcript.ts";
import { prunedResults } from "../transcript/steps/prune-context.ts";
import type { App } from "./app.ts";

/** The window assumed for an unknown model, in tokens. */
export const defaultWindow = 128_000;
/** The last recovery step truncates results as if the window were smaller by this factor. */
const harderShare = 0.25;

export interface RequestSettings {
  readonly model: TurnModel;
  readonly system: string | null;
  /** `null` if unknown. */
  readonly tools: readonly RequestTool[] | null;
  /** Prefixes of tools whose servers have not listed them yet. */
  readonly unlisted?: readonly string[];
}

type RequestTool = Pick<Tool, "name" | "description" | "inputSchema">;

interface BuiltRequest extends TurnRequest {
  /** Like `tokens`, but without the provider's count of an earlier request. */
  readonly estimated: number;
}

/** Builds each of a turn's requests from the session. */
export class TurnRequests {
  readonly #app: Pick<App, "store" | "config" | "clock">;
  readonly #session: SessionRecord;
  readonly #settings: RequestSettings;
  readonly #readContext: ((options: ContextOptions) => SessionContext) | undefined;
  #pruned: PruningOptions["pruned"];
  #last: BuiltRequest | null = null;
  /** Set by recovery steps for a context that does not fit. */
  cutHarder = false;
  pruneNow = false;
  #window: number;
  /** Applies to all later requests in the run. */
  isSealedThinkingRejected = false;

  /** If given, `readContext` supplies the context in place of the active branch. */
  constructor(
    app: Pick<App, "store" | "config" | "clock">,
    session: SessionRecord,
    settings: RequestSettings,
    readContext?: (options: ContextOptions) => SessionContext,
  ) {
    this.#app = app;
    this.#readContext = readContext;
    this.#session = session;
    this.#settings = settings;
    this.#window = configuredWindow(settings.model);
  }

  get contextWindow(): number {
    return this.#window;
  }

  /** Lowers the window after a provider has rejected a request of this size, regardless of the configured window. */
  lowerWindow(refusedTokens: number): void {
    this.#window = Math.max(minContextWindow, Math.min(this.#window, refusedTokens));
  }

  /** The estimated size of the request that the model is answering, or `null` if none has been built. */
  get requestTokens(): number | null {
    return this.#last?.estimated ?? null;
  }

  async next(): Promise<TurnRequest> {
    const request = await this.#build(await this.#context());
    this.#pruned = prunedResults(request.messages);
    this.#last = request;
    return request;
  }

  /** Returns the request that the model is currently answering or, if the session has new entries, the next request. */
  async preview(): Promise<TurnRequest> {
    const context = await this.#context();
    const last = this.#last;
    if (last !== null && isDeepStrictEqual(last.context.entryIds, context.entryIds)) return last;
    return this.#build(context);
  }

  async #context(): Promise<SessionContext> {
    const { sessionId } = this.#session;
    // Based on the configured window. A lowered window makes the request smaller but must not hide its older part.
    const byteBudget = byteBudgetFor(configuredWindow(this.#settings.model));
    if (this.#readContext !== undefined) return this.#readContext(present({ byteBudget }));
    const scope = scopeOfSession(this.#session);
    const context = await this.#app.store.sessions.context(scope, sessionId, present({ byteBudget }));
    return context ?? noSuchSession(sessionId);
  }

  async #build(context: SessionContext): Promise<BuiltRequest> {
    const session = this.#session;
    const { model, system, tools } = this.#settings;
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
    const standing = standingTokens(system, tools ?? []);
    const { tokens, estimated } = contextTokens(messages, { model, standing, ...present({ compactedAt }) });
    const isOverThreshold = shouldCompact({ tokens, contextWindow, cut: context.cut });
    return { messages, context, changes, tokens, estimated, isOverThreshold };
  }

  /** Returns the offered tools, plus any tools already called on servers that have not listed theirs yet. */
  #toolNames({ messages }: SessionContext): readonly string[] | undefined {
    const { tools, unlisted = [] } = this.#settings;
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
    const blob = (sha256: string) => this.#app.store.blobs.get(scopeOfSession(this.#session), sha256);
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
  return info.contextWindow ?? defaultWindow;
}

function isAnswer({ role }: { readonly role: string }): boolean {
  return role === "assistant";
}

/** Returns the estimated size of the system prompt and the tools. */
function standingTokens(system: string | null, tools: readonly RequestTool[]): number {
  const text = [
    system ?? "",
    ...tools.map(({ description, inputSchema }) => description + JSON.stringify(inputSchema)),
  ];
  return estimateTokens([{ role: "user", content: text.join("\n") }]);
}

/** Loaded when the first image that is too large is found. */
const shrinkImage: NonNullable<ImagePort["shrink"]> = async (image, limits) => {
  const { shrinkImage: shrink } = await import("../agents/shrink-image.ts");
  return shrink(image, limits);
};
