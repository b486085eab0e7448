import type { SkeinEventType } from "../../core/events.ts";
import { eventNames, isWanted } from "../../protocol/events.ts";
import type { GapPayload } from "../../protocol/frames.ts";
import { lossyEvents } from "../../protocol/wire.ts";
import type { Principal } from "../auth/principal.ts";
import type { EventSelection } from "./event-selection.ts";
import { isSelected } from "./event-selection.ts";
import type { EventRing, FrameCache, ReaderKind, StoredEvent } from "./stored-event.ts";

/** Where events go: a socket, or an answer of `/events`. */
export interface EventSink {
  /** A frame as JSON, made once for all who get the same. `seq` is where to resume behind it. */
  send(frame: string, seq: number, event: SkeinEventType | "gap"): void;
  /** Bytes that are not on their way yet. */
  backlog(): number;
  /** It does not read: `slowReader`. Nothing is sent to it any more. */
  drop(): void;
}

export interface Subscription {
  /** Behind which event it begins: what to resume with until one has come. */
  readonly seq: number;
  close(): void;
}

/** Every event of the gateway, numbered, with the last ones kept for whoever was cut off. */
export interface EventHub {
  readonly seq: number;
  /**
   * `after`: what came behind it is sent first, from the next turn of the event loop on; where some are no longer kept, a
   * `gap` before them. Who the principal is stays as it was: a token that ends is for the socket to notice.
   */
  subscribe(principal: Principal, wanted: EventSelection, sink: EventSink, after?: number): Subscription;
  /** How many are open. */
  readonly size: number;
}

/** Numbers for metrics; all but the first only go up. */
export interface HubStats {
  readonly subscriptions: number;
  readonly sent: number;
  /** Events that were not sent to a reader because it was slow. */
  readonly dropped: number;
  /** Readers that were given up. */
  readonly droppedReaders: number;
}

export type GapReason = GapPayload["reason"];

export interface ReaderLimits {
  /** Beyond so many bytes of backlog, lossy events are dropped and nothing kept is fed. */
  readonly softBytes: number;
  /** Beyond so many the reader is given up. */
  readonly hardBytes: number;
}

/** What a subscriber has of its hub. */
export interface HubContext {
  readonly ring: EventRing;
  readonly frames: FrameCache;
  readonly limits: ReaderLimits;
  readonly counts: { sent: number; dropped: number; droppedReaders: number };
  /** It has something to do when its sink has more room. */
  wait(subscriber: Subscriber): void;
  leave(subscriber: Subscriber): void;
  report(error: unknown): void;
}

export interface SubscriberOptions {
  readonly kind: ReaderKind;
  readonly wanted: EventSelection;
  readonly sink: EventSink;
  /** Behind which event it begins. */
  readonly seq: number;
  /** `null`: with what comes from now on. Else with what is kept behind `cursor`, and this gap first, if it is one. */
  readonly from: { readonly cursor: number; readonly gap: GapPayload | null } | null;
}

/** One reader. It gets what is kept first, at the speed at which it reads, and from then on each event as it comes. */
export class Subscriber implements Subscription {
  readonly seq: number;
  readonly wanted: EventSelection;
  readonly #home: HubContext;
  readonly #kind: ReaderKind;
  readonly #sink: EventSink;
  readonly #types: ReadonlySet<SkeinEventType>;
  /** The last event that it had, or was passed over. */
  #cursor: number;
  #isLive: boolean;
  #isClosed = false;
  /** To be told before the next event, or once there is room. */
  #gap: GapPayload | null;

  constructor(home: HubContext, { kind, wanted, sink, seq, from }: SubscriberOptions) {
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
  take(kept: StoredEvent): void {
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
  feed(work: number): FeedResult {
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

  #wants(kept: StoredEvent): boolean {
    if (!this.#types.has(kept.event.type) || !kept.isFor(this.#kind)) return false;
    return isSelected(this.wanted, kept.event);
  }

  /** Once some were dropped, more are until half of the backlog is read: else every second one would be a gap. */
  #isDropped({ event }: StoredEvent, backlog: number): boolean {
    const { softBytes } = this.#home.limits;
    const most = this.#gap === null ? softBytes : softBytes / 2;
    return lossyEvents.includes(event.type) && backlog > most;
  }

  #send(kept: StoredEvent): void {
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

/** Calls back once, after so many milliseconds, without keeping the process alive. */
export type Schedule = (act: () => void, ms: number) => void;

const later: Schedule = (act, ms) => void setTimeout(act, ms).unref();

/** How often a full sink is looked at: none of them says when it has room. */
const lookMs = 20;
/** What it costs to send an event, where to pass one over costs 1. */
export const sendCost = 16;
const workAtOnce = 512 * sendCost;
const workEach = 64 * sendCost;

export interface FeedResult {
  /** Of the work that it might do; none: it could do more. */
  readonly left: number;
  /** It waits for nothing more. */
  readonly isDone: boolean;
}

export interface Fed {
  feed(work: number): FeedResult;
}

/** Serves readers that wait, in turn and in small parts, so that a long replay holds up nobody. */
export class ReplayQueue<T extends Fed> {
  readonly #schedule: Schedule;
  readonly #waiting = new Set<T>();
  #isScheduled = false;

  constructor(schedule: Schedule = later) {
    this.#schedule = schedule;
  }

  add(reader: T): void {
    if (this.#waiting.has(reader)) return;
    this.#waiting.add(reader);
    this.#again(0);
  }

  delete(reader: T): void {
    this.#waiting.delete(reader);
  }

  #again(ms: number): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    this.#schedule(() => {
      this.#isScheduled = false;
      this.#again(this.#round() ? 0 : lookMs);
    }, ms);
  }

  /** Whether somebody could have done more. */
  #round(): boolean {
    let work = workAtOnce;
    let isHungry = false;
    for (const reader of [...this.#waiting]) {
      if (work <= 0) return true;
      if (!this.#waiting.delete(reader)) continue;
      const { left, isDone } = reader.feed(workEach);
      work -= workEach - left;
      if (isDone) continue;
      // To the end of the queue.
      this.#waiting.add(reader);
      isHungry ||= left <= 0;
    }
    return isHungry;
  }
}
