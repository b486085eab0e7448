import type { ReceivedEvent } from "../protocol/methods/calls.ts";
import { lossyEvents } from "../protocol/wire.ts";

/**
 * Events that wait for their reader, at most so many. When it is full, those that may be lost go, and a `gap` stands where
 * the first of them stood; where there are none, all go, and one `gap` stands for them: who reads what it shows anew then
 * goes on from the newest.
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

  /** The oldest; `null`: none waits. */
  take(): ReceivedEvent | null {
    return this.#events.shift() ?? null;
  }
}

/** The same with fewer: one less than `most` at the most, if that is more than one. */
function withRoom(events: readonly ReceivedEvent[], most: number): ReceivedEvent[] {
  const lost = events.filter(mayGo);
  const [first] = lost;
  // The gap takes a place too.
  if (first === undefined || events.length - lost.length + 1 >= most) return [gapFor(events)];
  const at = events.indexOf(first);
  const kept = events.slice(at).filter((each) => !mayGo(each));
  return [...events.slice(0, at), gapFor(lost), ...kept];
}

/** What may be lost, and what was: several gaps become one. */
function mayGo({ event, payload }: ReceivedEvent): boolean {
  return event === "gap" ? payload.reason === "slow" : lossyEvents.includes(event);
}

/** That all of these may be missing, with what others said was missing among them. */
function gapFor(events: readonly ReceivedEvent[]): ReceivedEvent {
  const after = Math.min(...events.map((each) => (each.event === "gap" ? each.payload.after : each.seq - 1)));
  const upTo = Math.max(...events.map((each) => (each.event === "gap" ? each.payload.upTo : each.seq)));
  return { event: "gap", payload: { after: Math.max(0, after), upTo, reason: "slow" }, seq: upTo };
}
