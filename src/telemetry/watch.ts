import type { EventBus, SkeinEvent } from "../core/events.ts";

/** Receives the events on the bus. If a watcher throws, the bus reports the error, and other watchers still receive the event. */
export interface Watcher {
  readonly onEvent: (event: SkeinEvent) => void;
  close(): void | Promise<void>;
}

/**
 * Subscribes watchers until `close` is called. `close` never rejects. Errors from closing a watcher are passed to
 * `report`.
 */
export function watch(
  bus: EventBus,
  given: readonly (Watcher | null)[],
  report: (error: unknown) => void = () => undefined,
): { close(): Promise<void> } {
  const watchers = given.filter((watcher) => watcher !== null);
  const unsubscribes = watchers.map(({ onEvent }) => bus.subscribe(onEvent));
  const close = async () => {
    for (const unsubscribe of unsubscribes) unsubscribe();
    const results = await Promise.allSettled(watchers.map(async (watcher) => watcher.close()));
    for (const result of results) if (result.status === "rejected") report(result.reason);
  };
  let closed: Promise<void> | null = null;
  return {
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
