import type { SkeinEventType } from "../../core/events.ts";
import { eventNames, isWanted } from "../../protocol/events.ts";
import type { GapPayload } from "../../protocol/frames.ts";
import { lossyEvents } from "../../protocol/wire.ts";
import type { EventSink, GapReason, Subscription, Wanted } from "./contract.ts";
import type { Served } from "./feeding.ts";
import { sendCost } from "./feeding.ts";
import type { Frames } from "./frames.ts";
import type { KeptEvent } from "./kept-event.ts";
import type { ReaderKind } from "./readers.ts";
import type { Ring } from "./ring.ts";
import { isAbout } from "./wanted.ts";

export interface ReaderLimits {
  /** Beyond so many bytes of backlog, lossy events are dropped and nothing kept is fed. */
  readonly softBytes: number;
  /** Beyond so many the reader is given up. */
  readonly hardBytes: number;
}

/** What a subscriber has of its hub. */
export interface SubscriberHome {
  readonly ring: Ring;
  readonly frames: Frames;
  readonly limits: ReaderLimits;
  readonly counts: { sent: number; dropped: number; droppedReaders: number };
  /** It has something to do when its sink has more room. */
  wait(subscriber: Subscriber): void;
  leave(subscriber: Subscriber): void;
  report(error: unknown): void;
}

export interface SubscriberOptions {
  readonly kind: ReaderKind;
  readonly wanted: Wanted;
  readonly sink: EventSink;
  /** Behind which event it begins. */
  readonly seq: number;
  /** `null`: with what comes from now on. Else with what is kept behind `cursor`, and this gap first, if it is one. */
  readonly from: { readonly cursor: number; readonly gap: GapPayload | null } | null;
}

/** One reader. It gets what is kept first, at the speed at which it reads, and from then on each event as it comes. */
export class Subscriber implements Subscription {
  readonly seq: number;
  readonly wanted: Wanted;
  readonly #home: SubscriberHome;
  readonly #kind: ReaderKind;
  readonly #sink: EventSink;
  readonly #types: ReadonlySet<SkeinEventType>;
  /** The last event that it had, or was passed over. */
  #cursor: number;
  #isLive: boolean;
  #isClosed = false;
  /** To be told before the next event, or once there is room. */
  #gap: GapPayload | null;

  constructor(home: SubscriberHome, { kind, wanted, sink, seq, from }: SubscriberOptions) {
    this.seq = seq;
    this.wanted = wanted;
    this.#home = home;
    this.#kind = kind;
    this.#sink = sink;
    this.#types = new Set(eventNames.filter((name) => isWanted(name, wanted.events)));
    this.#cursor = from?.cursor ?? seq;
    this.#gap = from?.gap ?? null;
    this.#isLive = from === null;
    if (from !== null) home.wait(this);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#home.leave(this);
  }

  /** An event that has just come. Until all that is kept was sent, it waits there with the rest. */
  take(kept: KeptEvent): void {
    if (!this.#isLive || this.#isClosed || kept.seq <= this.#cursor) return;
    this.#cursor = kept.seq;
    if (!this.#wants(kept)) return;
    this.#safely(() => {
      const backlog = this.#sink.backlog();
      if (this.#isTooSlow(backlog)) return;
      if (this.#isDropped(kept, backlog)) {
        this.#home.counts.dropped += 1;
        this.#miss(kept.seq - 1, kept.seq, "slow");
      } else this.#send(kept);
      if (this.#gap !== null) this.#home.wait(this);
    });
  }

  /** Goes on with what waits, for at most about so much work. */
  feed(work: number): Served {
    let left = work;
    this.#safely(() => {
      left = this.#isLive ? this.#tellGap(work) : this.#catchUp(work);
    });
    return { left, isDone: this.#isClosed || (this.#isLive && this.#gap === null) };
  }

  #tellGap(work: number): number {
    const backlog = this.#sink.backlog();
    if (this.#isTooSlow(backlog) || backlog > this.#home.limits.softBytes / 2) return work;
    this.#flushGap();
    return work - sendCost;
  }

  #catchUp(work: number): number {
    const { ring, limits } = this.#home;
    let left = work;
    while (!this.#isClosed) {
      const backlog = this.#sink.backlog();
      if (this.#isTooSlow(backlog) || backlog > limits.softBytes || left <= 0) return left;
      if (this.#cursor < ring.goneUpTo) {
        this.#miss(this.#cursor, ring.goneUpTo, "slow");
        this.#cursor = ring.goneUpTo;
      }
      const kept = ring.behind(this.#cursor);
      if (kept === null) break;
      this.#cursor = kept.seq;
      const isWanted = this.#wants(kept);
      if (isWanted) this.#send(kept);
      left -= isWanted ? sendCost : 1;
    }
    this.#flushGap();
    this.#isLive = true;
    return left;
  }

  #wants(kept: KeptEvent): boolean {
    if (!this.#types.has(kept.event.type) || !kept.isFor(this.#kind)) return false;
    return isAbout(this.wanted, kept.event);
  }

  /** Once some were dropped, more are until half of the backlog is read: else every second one would be a gap. */
  #isDropped({ event }: KeptEvent, backlog: number): boolean {
    const { softBytes } = this.#home.limits;
    const most = this.#gap === null ? softBytes : softBytes / 2;
    return lossyEvents.includes(event.type) && backlog > most;
  }

  #send(kept: KeptEvent): void {
    const frame = this.#home.frames.of(kept, this.#kind);
    if (frame === null) {
      this.#miss(kept.seq - 1, kept.seq, "gone");
      return;
    }
    this.#flushGap();
    this.#home.counts.sent += 1;
    this.#sink.send(frame, kept.seq, kept.event.type);
  }

  #miss(after: number, upTo: number, reason: GapReason): void {
    this.#gap = this.#gap === null ? { after, upTo, reason } : { ...this.#gap, upTo };
  }

  #flushGap(): void {
    const gap = this.#gap;
    if (gap === null) return;
    this.#gap = null;
    const frame = JSON.stringify({ type: "event", event: "gap", payload: gap, seq: gap.upTo });
    this.#sink.send(frame, gap.upTo, "gap");
  }

  #isTooSlow(backlog: number): boolean {
    if (backlog <= this.#home.limits.hardBytes) return false;
    this.#giveUp();
    return true;
  }

  #giveUp(): void {
    this.close();
    this.#home.counts.droppedReaders += 1;
    this.#sink.drop();
  }

  /** A sink that fails is no reader any more, and hinders no other. */
  #safely(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#home.report(error);
      this.#dropFailed();
    }
  }

  #dropFailed(): void {
    try {
      this.#giveUp();
    } catch (error) {
      this.#home.report(error);
    }
  }
}
