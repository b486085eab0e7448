import type { WireEventType } from "../../protocol/events.ts";
import { eventNames, isWanted } from "../../protocol/events.ts";
import type { GapPayload } from "../../protocol/frames.ts";
import { lossyEvents } from "../../protocol/wire.ts";
import type { Principal } from "../auth/principal.ts";
import type { EventSelection } from "./event-selection.ts";
import { isSelected } from "./event-selection.ts";
import type { EventRing, FrameCache, ReaderKind, StoredEvent } from "./stored-event.ts";

/** The destination of events: a socket or a response to `/events`. */
export interface EventSink {
  /** Sends a frame. A client can resume after `seq`. */
  send(frame: string, seq: number, event: WireEventType | "gap"): void;
  /** The number of bytes that have not been sent yet. */
  backlog(): number;
  /** Disconnects a reader that is too slow. */
  drop(): void;
}

export interface Subscription {
  /** The event after which the subscription starts. A client that has not received an event yet resumes after it. */
  readonly seq: number;
  close(): void;
}

/** Numbers every event in the gateway and stores the latest ones for clients that reconnect. */
export interface EventHub {
  readonly seq: number;
  /**
   * If `after` is set, stored events after it are sent first, preceded by a `gap` if some have been dropped. The
   * principal is not checked again, because the socket detects a revoked token.
   */
  subscribe(principal: Principal, wanted: EventSelection, sink: EventSink, after?: number): Subscription;
  /** The number of open subscriptions. */
  readonly size: number;
}

/** Values for metrics. All except `subscriptions` are counters. */
export interface HubStats {
  readonly subscriptions: number;
  readonly sent: number;
  /** Events that were not sent because their readers were too slow. */
  readonly dropped: number;
  /** Readers that were disconnected. */
  readonly droppedReaders: number;
}

export type GapReason = GapPayload["reason"];

export interface ReaderLimits {
  /** Above this backlog, lossy events are dropped and replay pauses. */
  readonly softBytes: number;
  /** Above this backlog, the reader is disconnected. */
  readonly hardBytes: number;
}

/** The part of the hub that a subscriber uses. */
export interface HubContext {
  readonly ring: EventRing;
  readonly frames: FrameCache;
  readonly limits: ReaderLimits;
  readonly counts: { sent: number; dropped: number; droppedReaders: number };
  /** Queues the subscriber until its sink has room. */
  wait(subscriber: Subscriber): void;
  leave(subscriber: Subscriber): void;
  report(error: unknown): void;
}

export interface SubscriberOptions {
  readonly kind: ReaderKind;
  readonly wanted: EventSelection;
  readonly sink: EventSink;
  /** The event after which the subscription starts. */
  readonly seq: number;
  /** `null` starts with new events. Otherwise, the replay starts after `cursor`, preceded by `gap` if it is set. */
  readonly from: { readonly cursor: number; readonly gap: GapPayload | null } | null;
}

/** One reader. It first receives stored events at its own pace, and then each new event as it arrives. */
export class Subscriber implements Subscription {
  readonly seq: number;
  readonly wanted: EventSelection;
  readonly #home: HubContext;
  readonly #kind: ReaderKind;
  readonly #sink: EventSink;
  readonly #types: ReadonlySet<WireEventType>;
  /** The last event that was sent or skipped. */
  #cursor: number;
  #isLive: boolean;
  #isClosed = false;
  /** Sent before the next event, or as soon as there is room. */
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

  /** Handles a new event. During a replay, the event waits with the stored ones. */
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

  /** Records that events up to `seq` are missing. During a replay, the subscriber detects this itself. */
  miss(seq: number): void {
    if (!this.#isLive || this.#isClosed) return;
    this.#miss(this.#cursor, seq, "gone");
    this.#cursor = seq;
    this.#home.wait(this);
  }

  /** Continues the replay, doing at most this much work. */
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

  /**
   * Once events are dropped, dropping continues until the backlog is down to half the limit. Otherwise, every other
   * event would be a gap.
   */
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

  /** Drops a sink that throws, so that it does not affect other readers. */
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

/** Runs `act` once without keeping the process alive. */
export type Schedule = (act: () => void, ms: number) => void;

const later: Schedule = (act, ms) => void setTimeout(act, ms).unref();

/** How often a full sink is polled. Sinks do not report when they have room again. */
const lookMs = 20;
/** The cost of sending an event. Skipping an event costs 1. */
export const sendCost = 16;
const workAtOnce = 512 * sendCost;
const workEach = 64 * sendCost;

export interface FeedResult {
  /** The unused part of the work budget. 0 means that the reader might have more to do. */
  readonly left: number;
  /** `true` if nothing is waiting to be sent. */
  readonly isDone: boolean;
}

export interface Fed {
  feed(work: number): FeedResult;
}

/** Serves waiting readers in turn and in small chunks so that a long replay does not block other readers. */
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

  /** Returns whether a reader stopped because its share of the work was used up, and might have more to do. */
  #round(): boolean {
    let work = workAtOnce;
    let isHungry = false;
    for (const reader of [...this.#waiting]) {
      if (work <= 0) return true;
      if (!this.#waiting.delete(reader)) continue;
      const { left, isDone } = reader.feed(workEach);
      work -= workEach - left;
      if (isDone) continue;
      // Moves the reader to the end of the queue.
      this.#waiting.add(reader);
      isHungry ||= left <= 0;
    }
    return isHungry;
  }
}
