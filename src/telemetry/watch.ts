import type { EventBus, SkeinEvent } from "../core/events.ts";

/** Something that reads the bus. What it throws is reported by the bus, and hinders nobody. */
export interface Watcher {
  readonly onEvent: (event: SkeinEvent) => void;
  close(): void | Promise<void>;
}

/** Each may be off. */
export interface WatchParts {
  readonly tracing?: Watcher | null;
  readonly metrics?: Watcher | null;
  readonly log?: Watcher | null;
}

/**
 * Lets the parts read the bus, until `close`. With no part the bus has no listener more. `close` never rejects: what
 * a part could not bring to an end is told to `report`.
 */
export function watch(
  bus: EventBus,
  parts: WatchParts,
  report: (error: unknown) => void = () => undefined,
): { close(): Promise<void> } {
  const watchers = [parts.tracing, parts.metrics, parts.log].filter((part) => part != null);
  const unsubscribe = watchers.map((part) => bus.subscribe(part.onEvent));
  const close = async () => {
    for (const end of unsubscribe) end();
    const ends = await Promise.allSettled(watchers.map(async (part) => part.close()));
    for (const end of ends) if (end.status === "rejected") report(end.reason);
  };
  let closed: Promise<void> | null = null;
  return {
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
