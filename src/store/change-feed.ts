import type { Scope, StoreChange, WatchStore } from "./contract.ts";
import { inScope } from "./rules.ts";

/** Tells subscribers of changes, in the order they are published; one that throws does not keep others from hearing. */
export class ChangeFeed implements WatchStore {
  readonly #subscribers = new Set<{ scope: Scope | "everybody"; listener: (change: StoreChange) => void }>();

  /** `everybody`: whoever's session it is; for the program itself. */
  subscribe(scope: Scope | "everybody", listener: (change: StoreChange) => void): () => void {
    const subscriber = { scope, listener };
    this.#subscribers.add(subscriber);
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  /** Whether anybody listens: making up a change costs something. */
  get isHeard(): boolean {
    return this.#subscribers.size > 0;
  }

  publish(change: StoreChange): void {
    for (const subscriber of [...this.#subscribers]) {
      const { scope } = subscriber;
      const isTheirs = scope === "everybody" || inScope(scope, change.session);
      if (!isTheirs || !this.#subscribers.has(subscriber)) continue;
      try {
        subscriber.listener(change);
      } catch (error) {
        // The change is kept whatever a listener thinks of it; its error is its own, reported as uncaught.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
