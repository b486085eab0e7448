import type { ReceivedEvent } from "../protocol/calls.ts";
import { lossyEvents } from "../protocol/wire.ts";

/**
 * A bounded queue of events. When it is full, lossy events are dropped and a `gap` replaces the first one. If there are
 * no lossy events, a single `gap` replaces all events, and the reader must reload its state.
 */
export class EventQueue {
  readonly #most: number;
  #events: ReceivedEvent[] = [];

  constructor(most: number) {
    this.#most = Math.max(1, most);
  }

  push(event: ReceivedEvent): void {
    if (this.#events.length >= this.#most) this.#events = withRoom(this.#events, this.#most);
    this.#events.push(event);
  }

  clear(): void {
    this.#events = [];
  }

  /** Removes and returns the oldest event, or `null` if the queue is empty. */
  take(): ReceivedEvent | null {
    return this.#events.shift() ?? null;
  }
}

/** Makes room for one event. */
function withRoom(events: readonly ReceivedEvent[], most: number): ReceivedEvent[] {
  const lost = events.filter(mayGo);
  const [first] = lost;
  // The gap itself also takes up a slot.
  if (first === undefined || events.length - lost.length + 1 >= most) return [gapFor(events)];
  const at = events.indexOf(first);
  const kept = events.slice(at).filter((each) => !mayGo(each));
  return [...events.slice(0, at), gapFor(lost), ...kept];
}

/** Whether the event can be dropped. This applies to lossy events, and to earlier gaps, which are merged. */
function mayGo({ event, payload }: ReceivedEvent): boolean {
  return event === "gap" ? payload.reason === "slow" : lossyEvents.includes(event);
}

/** Creates a gap that covers all these events. */
function gapFor(events: readonly ReceivedEvent[]): ReceivedEvent {
  const after = Math.min(...events.map((each) => (each.event === "gap" ? each.payload.after : each.seq - 1)));
  const upTo = Math.max(...events.map((each) => (each.event === "gap" ? each.payload.upTo : each.seq)));
  return { event: "gap", payload: { after: Math.max(0, after), upTo, reason: "slow" }, seq: upTo };
}
