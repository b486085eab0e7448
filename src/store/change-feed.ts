import type { Scope, StoreChange, WatchStore } from "./contract.ts";
import { inScope } from "./rules.ts";

/** Publishes changes to subscribers in order. A listener that throws does not affect other listeners. */
export class ChangeFeed implements WatchStore {
  readonly #subscribers = new Set<{ scope: Scope | "all users"; listener: (change: StoreChange) => void }>();

  /** `all users` is reserved for Skein's own use. */
  subscribe(scope: Scope | "all users", listener: (change: StoreChange) => void): () => void {
    const subscriber = { scope, listener };
    this.#subscribers.add(subscriber);
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  /** Whether there are subscribers. If there are none, callers can skip building the change. */
  get hasSubscribers(): boolean {
    return this.#subscribers.size > 0;
  }

  publish(change: StoreChange): void {
    for (const subscriber of [...this.#subscribers]) {
      const { scope } = subscriber;
      const isInScope = scope === "all users" || inScope(scope, change.session);
      if (!isInScope || !this.#subscribers.has(subscriber)) continue;
      try {
        subscriber.listener(change);
      } catch (error) {
        // A listener's error must not undo a stored change, so the error surfaces as an uncaught exception.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
