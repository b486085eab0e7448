import { randomUUID } from "node:crypto";
import { later, unlessAborted } from "../core/concurrency.ts";
import { present } from "../core/present.ts";
import { cutText } from "../core/text.ts";
import type { Embedding, Scope, StoreChange } from "../store/contract.ts";
import type { App } from "./app.ts";
import { EmbeddingClaim } from "./embedding-claim.ts";
import { shownText } from "./masked-search.ts";

/** Converts texts to vectors, so that texts with similar meanings have similar vectors. */
export interface TextEmbedder {
  /** In `provider/model` format. */
  readonly model: string;
  /** Returns one vector per text. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly (readonly number[])[]>;
}

export type EmbeddingApp = Pick<App, "redactor" | "report" | "closed" | "clock"> & {
  readonly store: Pick<App["store"], "search" | "work">;
};

/** Texts per request. */
const atOnce = 64;
/** In characters. Models truncate or reject longer texts. */
const longestText = 8000;
/** How long to wait for more entries so that one request embeds them together. */
const gatherMs = 1000;
const mostRetryMs = 60_000;
/** The timeout for embedding a query. It is short because a search waits for it. */
const queryMs = 5000;
const requestMs = 60_000;

/** Changes that can add entries without embeddings. A new session can start with another session's entries. */
const embedded = new Set<StoreChange["type"]>(["created", "appended", "redacted", "restored"]);

/**
 * Embeds entries in the background, using only text that a model is allowed to read. Each process embeds the entries
 * that it writes. After it starts, it also embeds entries that other processes left without embeddings, unless another
 * process is already doing so.
 */
export class Embeddings {
  readonly #app: EmbeddingApp;
  readonly #embedder: TextEmbedder;
  readonly #claim: EmbeddingClaim;
  /** Sessions with new entries. */
  readonly #waiting = new Map<string, { readonly userId: string | null; readonly sessionId: string }>();
  /** Whether to check for entries that other processes left without embeddings. */
  #mustLook = true;
  #cancelLook: () => void = () => undefined;
  #cancel: (() => void) | null = null;
  #working: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  readonly #closed: AbortSignal;
  #stopWatching: () => void = () => undefined;
  #isFailing = false;
  #retryMs = gatherMs;

  constructor(app: EmbeddingApp, embedder: TextEmbedder) {
    this.#app = app;
    this.#embedder = embedder;
    this.#closed = AbortSignal.any([app.closed, this.#stopping.signal]);
    this.#claim = new EmbeddingClaim(app.store.work.engine, app.clock, randomUUID());
  }

  start(): void {
    this.#stopWatching = this.#app.store.work.watch((change) => {
      if (embedded.has(change.type)) this.#add(change.session);
    });
    this.#plan(gatherMs);
  }

  /** Aborts a request in progress instead of waiting for the model. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopWatching();
    this.#cancelLook();
    this.#cancel?.();
    await this.#working;
  }

  /** Returns `null` if the model fails. The search then matches words only. */
  async ofQuery(text: string): Promise<Embedding | null> {
    const { model } = this.#embedder;
    try {
      const [vector = []] = await this.#request([cutText(text, longestText)], queryMs);
      return vector.length === 0 ? null : { model, vector };
    } catch (error) {
      this.#reportFailure(error);
      return null;
    }
  }

  async #request(texts: readonly string[], ms: number): Promise<readonly (readonly number[])[]> {
    const signal = AbortSignal.any([this.#closed, AbortSignal.timeout(ms)]);
    return unlessAborted(this.#embedder.embed(texts, signal), signal);
  }

  #add({ userId, sessionId }: { readonly userId: string | null; readonly sessionId: string }): void {
    this.#waiting.set(JSON.stringify([userId, sessionId]), { userId, sessionId });
    this.#plan(gatherMs);
  }

  #plan(ms: number): void {
    this.#cancel ??= later(ms, () => {
      this.#working = this.#embedWaiting().catch((error: unknown) => this.#reportFailure(error));
      void this.#working.then(() => this.#planAgain());
    });
  }

  #planAgain(): void {
    this.#cancel = null;
    if (this.#closed.aborted || (this.#waiting.size === 0 && !this.#mustLook)) return;
    if (this.#isFailing) this.#retryMs = Math.min(mostRetryMs, 2 * this.#retryMs);
    this.#plan(this.#isFailing ? this.#retryMs : gatherMs);
  }

  async #embedWaiting(): Promise<void> {
    try {
      await this.#embedSessions();
    } finally {
      if (this.#mustLook) await this.#embedLeft();
    }
    this.#isFailing = false;
    this.#retryMs = gatherMs;
  }

  /** Embeds the sessions in the queue. If one fails, that session and the ones after it stay in the queue. */
  async #embedSessions(): Promise<void> {
    for (const [name, { userId, sessionId }] of [...this.#waiting]) {
      this.#waiting.delete(name);
      try {
        while (await this.#embedSome(present({ userId }), sessionId));
      } catch (error) {
        this.#waiting.set(name, { userId, sessionId });
        throw error;
      }
    }
  }

  /**
   * Embeds entries that other processes left without embeddings. If another process holds the claim, checks again
   * later, because that process might exit before it is done.
   */
  async #embedLeft(): Promise<void> {
    if (!(await this.#claim.take())) {
      this.#mustLook = false;
      this.#cancelLook = later(mostRetryMs, () => {
        this.#mustLook = true;
        this.#plan(gatherMs);
      });
      return;
    }
    try {
      for (const userId of await this.#app.store.work.users())
        while (await this.#embedSome(present({ userId }), null)) await this.#claim.take();
      this.#mustLook = false;
    } finally {
      await this.#claim.release();
    }
  }

  /** Embeds one batch. Returns `false` if there are no more entries. */
  async #embedSome(scope: Scope, sessionId: string | null): Promise<boolean> {
    const { store, redactor } = this.#app;
    const { model } = this.#embedder;
    this.#closed.throwIfAborted();
    const among = { limit: atOnce, ...present({ sessionId }) };
    const found = (await store.search.unembedded?.(scope, model, among)) ?? [];
    const texts = found.map(({ entry }) => cutText(shownText(entry, redactor) ?? "", longestText).trim());
    const written = texts.filter((text) => text !== "");
    const vectors = written.length === 0 ? [] : await this.#request(written, requestMs);
    if (vectors.length !== written.length)
      throw new Error(`${model} returned ${vectors.length} embeddings for ${written.length} texts`);
    const next = vectors.values();
    const embedded = found.map(({ place }, at) => ({
      place,
      vector: texts[at] === "" ? [] : (next.next().value ?? []),
    }));
    await store.search.embed?.(scope, model, embedded);
    return found.length === atOnce;
  }

  /** Reports only the first of several consecutive failures. */
  #reportFailure(error: unknown): void {
    if (!this.#isFailing && !this.#closed.aborted)
      this.#app.report(new Error(`search.embed: ${this.#embedder.model} failed`, { cause: error }));
    this.#isFailing = true;
  }
}
