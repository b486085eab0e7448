import type { Calls } from "../protocol/calls.ts";
import type { Params, Result } from "../protocol/method-table.ts";
import type { WireEntry } from "../protocol/session-details.ts";
import type { FollowOptions } from "./contract.ts";
import { CallError } from "./contract.ts";
import type { Timing } from "./retry.ts";
import { retryWhileTransient } from "./retry.ts";
import type { WatchListener } from "./watches.ts";

/**
 * Yields each of a session's entries once. Each page starts after the last entry read. Events only signal that there
 * might be another page, so lost, late or repeated events are harmless.
 */

export interface FollowDeps {
  readonly calls: Calls<"sessions.resolve" | "sessions.entries" | "sessions.tree">;
  readonly timing: Timing;
  /** Aborted with the reason when the client is closed or gives up. */
  readonly over: AbortSignal;
  /** Returns a function that ends the watch. */
  watch(key: string, listener: WatchListener): () => void;
}

type Page = Result<"sessions.entries">;

const pageSize = 500;

export async function* follow(
  deps: FollowDeps,
  key: string,
  options: FollowOptions,
): AsyncGenerator<WireEntry, void> {
  // Not `AbortSignal.any`, because the client's long-lived signal would keep a reference to the combined one.
  const ending = new AnyAbort([deps.over, ...(options.signal === undefined ? [] : [options.signal])]);
  const { signal } = ending;
  const bell = new Bell(signal);
  const reader = new PageReader(deps, options, signal);
  let unwatch: () => void = () => undefined;
  try {
    let watched = await reader.find(key);
    unwatch = deps.watch(watched, bell);
    // From here on, there is an event for every new entry.
    await bell.rung();
    while (true) {
      const page = await reader.next();
      if (page.key !== watched) {
        // A reset has moved the session. The bell rings once its new key is watched.
        const unwatchOld = unwatch;
        watched = page.key;
        unwatch = deps.watch(watched, bell);
        unwatchOld();
      }
      yield* page.entries;
      if (!page.hasLater) await bell.rung();
    }
  } catch (error) {
    // The caller closed the client on purpose.
    if (deps.over.aborted && deps.over.reason === closedByUser) return;
    throw error;
  } finally {
    unwatch();
    ending.close();
  }
}

/** The abort reason for a client that was closed on purpose. */
export const closedByUser = Symbol("closed");

/** Coalesces signals. After a failure, `rung` rejects with its reason. */
class Bell implements WatchListener {
  #rings = Promise.withResolvers<void>();
  #failure: { readonly reason: unknown } | null = null;

  constructor(signal: AbortSignal) {
    if (signal.aborted) this.fail(signal.reason);
    else signal.addEventListener("abort", () => this.fail(signal.reason), { once: true });
  }

  ring(): void {
    this.#rings.resolve();
  }

  fail(reason: unknown): void {
    this.#failure = { reason };
    this.#rings.resolve();
  }

  async rung(): Promise<void> {
    await this.#rings.promise;
    if (this.#failure !== null) throw this.#failure.reason;
    this.#rings = Promise.withResolvers();
  }
}

/** Reads pages from a session. Retries after transient errors, and requests smaller pages if a page is too large. */
class PageReader {
  readonly #deps: FollowDeps;
  readonly #signal: AbortSignal;
  readonly #who: { readonly agentId?: string; readonly userId?: string };
  #uid = "";
  #after: string | null;
  #limit = pageSize;

  constructor(deps: FollowDeps, options: FollowOptions, signal: AbortSignal) {
    const { agentId, userId, after } = options;
    this.#deps = deps;
    this.#signal = signal;
    this.#after = after ?? null;
    this.#who = {
      ...(agentId === undefined ? {} : { agentId }),
      ...(userId === undefined ? {} : { userId }),
    };
  }

  /** Resolves the session once so that all pages come from the same session. Returns its canonical key. */
  async find(name: string): Promise<string> {
    const { calls } = this.#deps;
    const params = { key: name, ...this.#who };
    const found = await this.#patiently(() =>
      calls.call("sessions.resolve", params, { signal: this.#signal }),
    );
    this.#uid = found.uid;
    return found.key;
  }

  async next(): Promise<Pick<Page, "key" | "entries" | "hasLater">> {
    const page = this.#after === null ? await this.#first() : await this.#page({ after: this.#after });
    this.#after = page.entries.at(-1)?.id ?? this.#after;
    return page;
  }

  /**
   * Without a position, the gateway returns the last page. To get the first page of a long session, requests the
   * entries before its second entry.
   */
  async #first(): Promise<Page> {
    const page = await this.#page({});
    if (!page.hasEarlier) return page;
    const { entries } = await this.#patiently(() =>
      this.#deps.calls.call(
        "sessions.tree",
        { key: this.#uid, ...this.#who, limit: 2 },
        { signal: this.#signal },
      ),
    );
    const second = entries[1]?.id;
    return second === undefined ? page : { ...(await this.#page({ before: second })), hasLater: true };
  }

  #page(range: { readonly after?: string; readonly before?: string }): Promise<Page> {
    return this.#patiently(() => {
      const params: Params<"sessions.entries"> = {
        key: this.#uid,
        ...this.#who,
        along: "all",
        limit: this.#limit,
        ...range,
      };
      return this.#deps.calls.call("sessions.entries", params, { signal: this.#signal });
    });
  }

  async #patiently<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await retryWhileTransient(this.#deps.timing, this.#signal, read);
      } catch (error) {
        this.#signal.throwIfAborted();
        if (!(error instanceof CallError && error.code === "too_large" && this.#limit > 1)) throw error;
        this.#limit = Math.max(1, Math.floor(this.#limit / 4)); // Entries are returned in full, and a page must fit into a frame.
      }
    }
  }
}

/** Aborts as soon as any of several signals is aborted. Removes its listeners on `close`. */
export class AnyAbort {
  readonly #controller = new AbortController();
  readonly #leave: (() => void)[] = [];

  constructor(signals: readonly AbortSignal[]) {
    for (const each of signals) this.#listenTo(each);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  close(): void {
    for (const leave of this.#leave.splice(0)) leave();
  }

  #listenTo(signal: AbortSignal): void {
    const onAbort = () => this.#controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    this.#leave.push(() => signal.removeEventListener("abort", onAbort));
  }
}
