import type { EventSink } from "../../events/contract.ts";

/** What a sink writes to. */
export interface SinkTarget {
  send(text: string): void;
  backlog(): number;
  drop(): void;
}

/**
 * Where the events of one subscription go. Those that come while it is being made wait until it is answered, so that whoever
 * asked knows of the subscription before its first event.
 */
export class SubscriptionSink implements EventSink {
  readonly #target: SinkTarget;
  /** Whether this event goes out here; of several subscriptions of one socket the first sends it. */
  readonly #isFirst: (seq: number, event: string) => boolean;
  #early: { readonly frame: string; readonly seq: number; readonly event: string }[] | null = [];
  #earlyLength = 0;

  constructor(target: SinkTarget, isFirst: (seq: number, event: string) => boolean) {
    this.#target = target;
    this.#isFirst = isFirst;
  }

  send(frame: string, seq: number, event: string): void {
    if (this.#early === null) {
      if (this.#isFirst(seq, event)) this.#target.send(frame);
      return;
    }
    this.#early.push({ frame, seq, event });
    this.#earlyLength += frame.length;
  }

  backlog(): number {
    return this.#target.backlog() + this.#earlyLength;
  }

  drop(): void {
    this.#target.drop();
  }

  /** It is answered: what came since goes out, whatever other subscriptions have sent. */
  open(): void {
    const early = this.#early ?? [];
    this.#early = null;
    this.#earlyLength = 0;
    for (const { frame } of early) this.#target.send(frame);
  }
}
