import type { Redactor } from "../../access/redaction/redactor.ts";
import { SkeinError } from "../../core/errors.ts";
import type { SharedEvents, SkeinEvent } from "../../core/events.ts";
import type { GatewayEvent } from "../../protocol/events.ts";
import { wireLimits } from "../../protocol/frames.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser } from "../auth/principal.ts";
import { DeltaRedaction } from "./delta-redaction.ts";
import type { EventNumbers } from "./event-numbers.ts";
import type { EventSelection, EventSession } from "./event-selection.ts";
import type { LiveRun, LiveTexts } from "./live-runs.ts";
import { LiveRuns } from "./live-runs.ts";
import type { MaskedDelta, RingLimits, StoredEventOptions } from "./stored-event.ts";
import { EventRing, FrameCache, readerKindOf, StoredEvent } from "./stored-event.ts";
import type {
  EventHub,
  EventSink,
  HubContext,
  HubStats,
  ReaderLimits,
  Schedule,
  SubscriberOptions,
  Subscription,
} from "./subscriber.ts";
import { ReplayQueue, Subscriber } from "./subscriber.ts";

const mebi = 1024 * 1024;

export const hubLimits: RingLimits & ReaderLimits & { readonly frames: number } = {
  events: wireLimits.eventsKept,
  bytes: 64 * mebi,
  softBytes: mebi,
  hardBytes: 16 * mebi,
  frames: 16 * mebi,
};

export interface EventHubOptions {
  readonly numbers: EventNumbers;
  /** A reload can change the secrets that this redactor removes. */
  readonly redactor: Redactor;
  /** Keeps delivering events across reloads. */
  readonly subscribe: SharedEvents["subscribe"];
  /** `true` if a client might have received the stored events from another gateway. Defaults to `false`. */
  readonly hasPeers?: boolean;
  /** Called when a sink fails or an event cannot be encoded as JSON. */
  readonly report?: (error: unknown) => void;
  readonly limits?: Partial<typeof hubLimits>;
  readonly schedule?: Schedule;
}

export interface OpenEventHub extends EventHub, LiveTexts {
  /** Sends an event of the gateway itself. */
  announce(event: GatewayEvent): void;
  stats(): HubStats;
  /** Unsubscribes from the bus, sends held-back text, and closes every subscription. */
  close(): void;
}

export function createEventHub(options: EventHubOptions): OpenEventHub {
  return new Hub(options);
}

class Hub implements OpenEventHub {
  readonly #numbers: EventNumbers;
  readonly #redactor: Redactor;
  readonly #hasPeers: boolean;
  readonly #home: HubContext;
  readonly #index = new SubscriberIndex<Subscriber>();
  readonly #feeding: ReplayQueue<Subscriber>;
  readonly #deltas: DeltaRedaction;
  readonly #live = new LiveRuns();
  readonly #leave: () => void;
  /**
   * Numbered events that have not been sent yet. They are queued because an event can arrive while another is being
   * sent.
   */
  readonly #untold: StoredEvent[] = [];
  #isTelling = false;

  constructor(options: EventHubOptions) {
    const { numbers, redactor, subscribe, report = () => undefined, limits, schedule } = options;
    this.#hasPeers = options.hasPeers ?? false;
    const bounds = { ...hubLimits, ...limits };
    this.#numbers = numbers;
    this.#redactor = redactor;
    this.#deltas = new DeltaRedaction(redactor);
    this.#feeding = new ReplayQueue(schedule);
    this.#home = {
      ring: new EventRing(bounds, numbers.last),
      frames: new FrameCache({ size: bounds.frames, report }),
      limits: bounds,
      counts: { sent: 0, dropped: 0, droppedReaders: 0 },
      wait: (subscriber) => this.#feeding.add(subscriber),
      leave: (subscriber) => {
        this.#index.delete(subscriber);
        this.#feeding.delete(subscriber);
      },
      report,
    };
    this.#leave = subscribe(
      (event) => this.#publish(event),
      () => this.#lose(),
    );
  }

  get seq(): number {
    return this.#numbers.last;
  }

  get size(): number {
    return this.#index.size;
  }

  stats(): HubStats {
    return { subscriptions: this.size, ...this.#home.counts };
  }

  subscribe(principal: Principal, wanted: EventSelection, sink: EventSink, after?: number): Subscription {
    checkRights(principal, wanted);
    const kind = readerKindOf(principal);
    const seq = after ?? this.seq;
    const from = after === undefined ? null : this.#resume(after);
    const subscriber = new Subscriber(this.#home, { kind, wanted, sink, seq, from });
    this.#index.add(subscriber);
    return subscriber;
  }

  liveRuns(session: Pick<SkeinEvent, "userId" | "sessionId">, isAdmin: boolean): readonly LiveRun[] {
    return this.#live.of(session, isAdmin);
  }

  close(): void {
    this.#leave();
    this.#keepTails(this.#deltas.endAll());
    this.#tell();
    for (const subscriber of this.#index.all()) subscriber.close();
  }

  announce(event: GatewayEvent): void {
    this.#keep({ event, masked: null, isTail: false });
    this.#tell();
  }

  #resume(after: number): SubscriberOptions["from"] {
    const { goneUpTo } = this.#home.ring;
    if (!this.#numbers.owns(after)) {
      const upTo = this.#hasPeers ? this.seq : goneUpTo;
      return { cursor: upTo, gap: { after, upTo, reason: "restart" } };
    }
    if (after >= goneUpTo) return { cursor: after, gap: null };
    return { cursor: goneUpTo, gap: { after, upTo: goneUpTo, reason: "gone" } };
  }

  #publish(event: SkeinEvent): void {
    if (event.type === "session.deleted") this.#deltas.silence(event);
    const { tails, text } = this.#deltas.take(event);
    this.#keepTails(tails);
    if (isForgetting(event)) this.#forget(event);
    this.#keep({ event, masked: this.#follow(event, text ?? ""), isTail: false });
    this.#tell();
  }

  /** Makes every reader reload its state, including readers that reconnect later. */
  #lose(): void {
    const seq = this.#numbers.next();
    this.#home.ring.clear(seq);
    for (const subscriber of this.#index.all()) subscriber.miss(seq);
  }

  /**
   * Records the text that the run has streamed. Returns the part of a delta that readers without the `admin` scope
   * receive.
   */
  #follow(event: SkeinEvent, text: string): MaskedDelta | null {
    if (event.type === "run.delta") return { delta: text, offset: this.#live.push(event, text) };
    this.#live.take(event);
    return null;
  }

  #keepTails(tails: readonly SkeinEvent<"run.delta">[]): void {
    for (const event of tails) {
      const masked = { delta: event.delta, offset: this.#live.pushHeldBack(event) };
      this.#keep({ event, masked, isTail: true });
    }
  }

  #keep(options: Omit<StoredEventOptions, "seq" | "redactor">): void {
    const kept = new StoredEvent({ seq: this.#numbers.next(), redactor: this.#redactor, ...options });
    this.#home.ring.push(kept);
    this.#untold.push(kept);
  }

  #forget({ userId, sessionId }: SkeinEvent): void {
    this.#live.forget({ userId, sessionId });
    for (const kept of this.#home.ring.of(userId, sessionId)) {
      kept.forget();
      this.#home.frames.forget(kept);
    }
  }

  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (let kept = this.#untold.shift(); kept !== undefined; kept = this.#untold.shift()) {
        for (const subscriber of this.#index.about(kept.event)) subscriber.take(kept);
      }
    } finally {
      this.#isTelling = false;
    }
  }
}

/** Whether the session's earlier content must no longer be sent. */
function isForgetting(event: SkeinEvent): boolean {
  return event.type === "session.deleted" || (event.type === "session.updated" && event.isRedacted === true);
}

/** A token receives events only from its user's sessions, regardless of what it selects. */
function checkRights({ user }: Principal, { of }: EventSelection): void {
  if (user === everyUser || (of !== "everybody" && of.userId === user)) return;
  throw new SkeinError("forbidden", {
    problem: "This token belongs to another user",
    advice: "Omit the user, because the token determines it",
  });
}

type ByKey<T> = Map<string | null, Set<T>>;

/** Finds the subscribers to an event by session and user, without checking each one. */
export class SubscriberIndex<T extends { readonly wanted: EventSelection }> {
  readonly #ofEverybody: ByKey<T> = new Map();
  readonly #ofUser = new Map<string | null, ByKey<T>>();
  readonly #all = new Set<T>();

  get size(): number {
    return this.#all.size;
  }

  add(subscriber: T): void {
    this.#all.add(subscriber);
    const { of, keys } = subscriber.wanted;
    const byKey = of === "everybody" ? this.#ofEverybody : this.#userMap(of.userId);
    for (const key of keys ?? [null]) {
      const there = byKey.get(key) ?? new Set();
      byKey.set(key, there.add(subscriber));
    }
  }

  delete(subscriber: T): void {
    if (!this.#all.delete(subscriber)) return;
    const { of, keys } = subscriber.wanted;
    const byKey = of === "everybody" ? this.#ofEverybody : this.#userMap(of.userId);
    for (const key of keys ?? [null]) {
      const there = byKey.get(key);
      there?.delete(subscriber);
      if (there?.size === 0) byKey.delete(key);
    }
    if (of !== "everybody" && byKey.size === 0) this.#ofUser.delete(of.userId);
  }

  /**
   * Yields the subscribers that select an event, or all subscribers for an event of the gateway itself. Subscribers can
   * be added and removed during the iteration.
   */
  *about({ userId, sessionKey }: EventSession): Iterable<T> {
    if (userId === undefined || sessionKey === undefined) return yield* this.#all;
    for (const byKey of [this.#ofUser.get(userId), this.#ofEverybody]) {
      yield* byKey?.get(sessionKey) ?? [];
      yield* byKey?.get(null) ?? [];
    }
  }

  all(): readonly T[] {
    return [...this.#all];
  }

  #userMap(userId: string | null): ByKey<T> {
    const byKey = this.#ofUser.get(userId) ?? new Map();
    this.#ofUser.set(userId, byKey);
    return byKey;
  }
}
