import type { Scope, StoreChange, WatchStore } from "./contract.ts";
import { inScope } from "./rules.ts";

/** Publishes changes to subscribers in order. A listener that throws does not affect the others. */
export class ChangeFeed implements WatchStore {
  readonly #subscribers = new Set<{ scope: Scope | "all users"; listener: (change: StoreChange) => void }>();

  /** `all users` is for Skein itself. */
  subscribe(scope: Scope | "all users", listener: (change: StoreChange) => void): () => void {
    const subscriber = { scope, listener };
    this.#subscribers.add(subscriber);
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  /** Whether there is a subscriber. Without one, building a change is wasted work. */
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
        // The change is stored regardless of the listener. Its error surfaces as an uncaught exception.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
