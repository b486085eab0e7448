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
  /** The model's name as provider/model. */
  readonly model: string;
  /** Returns one vector per text. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly (readonly number[])[]>;
}

export type EmbeddingApp = Pick<App, "redactor" | "report" | "closed" | "clock"> & {
  readonly store: Pick<App["store"], "search" | "work">;
};

/** Texts per request. */
const atOnce = 64;
/** Models cut longer texts, or reject them. */
const longestText = 8000;
/** How long new entries wait for others, so that one request embeds them together. */
const gatherMs = 1000;
const mostRetryMs = 60_000;
/** A model that takes longer has failed. A search waits for the embedding of its query. */
const queryMs = 5000;
const requestMs = 60_000;

/** Changes that can add entries without embeddings. A session can be created with the entries of another one. */
const embedded = new Set<StoreChange["type"]>(["created", "appended", "redacted", "restored"]);

/**
 * Embeds entries in the background, with the texts that a model may read. Each process embeds what it writes itself. After
 * its start, it also embeds what others have left, unless another process is doing so.
 */
export class Embeddings {
  readonly #app: EmbeddingApp;
  readonly #embedder: TextEmbedder;
  readonly #claim: EmbeddingClaim;
  /** Sessions with new entries. */
  readonly #waiting = new Map<string, { readonly userId: string | null; readonly sessionId: string }>();
  /** Whether entries that others have left must still be looked for. */
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

  /** Does not wait for the model. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopWatching();
    this.#cancelLook();
    this.#cancel?.();
    await this.#working;
  }

  /** Returns `null` if the model fails. The search then uses words alone. */
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

  /** A session that fails keeps waiting, and so do those after it. */
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

  /** If another process has the claim, this one looks again later, because the other one might end. */
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

  /** Returns `false` if nothing is left. */
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

  /** Reports the first failure in a row. */
  #reportFailure(error: unknown): void {
    if (!this.#isFailing && !this.#closed.aborted)
      this.#app.report(new Error(`search.embed: ${this.#embedder.model} failed`, { cause: error }));
    this.#isFailing = true;
  }
}
