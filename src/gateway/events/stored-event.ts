import type { Redactor } from "../../access/redaction/redactor.ts";
import type { SkeinEvent } from "../../core/events.ts";
import type { WireEvent, WireEventType } from "../../protocol/events.ts";
import { eventPayload } from "../../protocol/events.ts";
import { wireLimits } from "../../protocol/frames.ts";
import { maskFor, withoutTranscriptPaths } from "../auth/mask.ts";
import type { Principal } from "../auth/principal.ts";
import { isAdmin, isForAll } from "../auth/principal.ts";
import type { EventSession } from "./event-selection.ts";

export type MaskedDelta = Pick<SkeinEvent<"run.delta">, "delta" | "offset">;

const nothingMasked: MaskedDelta = { delta: "", offset: 0 };

export interface StoredEventOptions {
  readonly seq: number;
  readonly event: WireEvent;
  /** The redacted text of a delta, with its offset in the redacted stream. */
  readonly masked: MaskedDelta | null;
  /**
   * `true` for held-back text that is sent only to readers without the `admin` scope. Admins have already received it.
   */
  readonly isTail: boolean;
  readonly redactor: Redactor;
}

/** An event with its sequence number. */
export class StoredEvent {
  readonly seq: number;
  /** An estimate of the memory that the event uses. */
  readonly bytes: number;
  readonly #redactor: Redactor;
  readonly #isTail: boolean;
  readonly #isNothing: boolean;
  #event: WireEvent;
  #masked: MaskedDelta;
  #isForgotten = false;

  constructor({ seq, event, masked, isTail, redactor }: StoredEventOptions) {
    this.seq = seq;
    this.bytes = estimateSize(event) + (masked?.delta.length ?? 0);
    this.#redactor = redactor;
    this.#isTail = isTail;
    this.#isNothing = masked?.delta === "";
    this.#event = event;
    this.#masked = masked ?? nothingMasked;
  }

  get event(): EventSession & { readonly type: WireEventType } {
    return this.#event;
  }

  get isForgotten(): boolean {
    return this.#isForgotten;
  }

  /**
   * Whether readers of this kind receive the event. Readers without the `admin` scope do not receive a delta whose text
   * is not safe to send yet.
   */
  isFor({ isAdmin }: ReaderKind): boolean {
    return this.#isTail ? !isAdmin : isAdmin || !this.#isNothing;
  }

  /** Returns the event as JSON. Throws if a tool result cannot be encoded. */
  frame({ isAdmin, allUsers }: ReaderKind): string {
    // A delta is redacted together with the preceding deltas.
    const isDelta = this.#event.type === "run.delta";
    const payload = eventPayload(this.#event, {
      isAdmin,
      allUsers,
      redact: (value) => (isDelta ? "" : this.#safe(value)),
      redactDelta: () => this.#masked,
    });
    return JSON.stringify({ type: "event", event: this.#event.type, payload, seq: this.seq });
  }

  /** Masks entries in the same way as the methods so that events reveal no more than reads do. */
  #safe(value: unknown): unknown {
    const redactor = this.#redactor;
    if (this.#event.type === "entry.appended") return maskFor({ redactor }, { isAdmin: false }).value(value);
    return withoutTranscriptPaths(redactor).redactJson(value).value;
  }

  /** Drops the content but keeps the type and session so that readers receive a `gap`. */
  forget(): void {
    const { type, at, userId, sessionKey, sessionId } = this.#event as SkeinEvent;
    this.#event = { type, at, userId, sessionKey, sessionId } as SkeinEvent;
    this.#masked = nothingMasked;
    this.#isForgotten = true;
  }
}

export interface FrameCacheOptions {
  /** The maximum size of the cache, in characters. */
  readonly size: number;
  readonly largest?: number;
  /** Called for an event that cannot be encoded as JSON. */
  report(error: unknown): void;
}

/** Encodes an event once per kind of reader, and caches the frames. */
export class FrameCache {
  readonly #options: FrameCacheOptions;
  /** The most recently encoded frame is last. */
  readonly #made = new Map<number, string | null>();
  #size = 0;

  constructor(options: FrameCacheOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns `null` if the event has been dropped, cannot be encoded, or is too large for a frame. */
  of(kept: StoredEvent, kind: ReaderKind): string | null {
    if (kept.isForgotten) return null;
    const name = nameOf(kept, kind);
    const there = this.#made.get(name);
    if (there !== undefined) return there;
    const frame = this.#make(kept, kind);
    this.#made.set(name, frame);
    this.#size += costOf(frame);
    if (this.#size > this.#options.size) this.#makeRoom();
    return frame;
  }

  forget(kept: StoredEvent): void {
    for (const kind of readerKinds) this.#drop(nameOf(kept, kind));
  }

  #make(kept: StoredEvent, kind: ReaderKind): string | null {
    const { report, largest = wireLimits.frameBytes } = this.#options;
    try {
      const frame = kept.frame(kind);
      return frame.length > largest / 3 && Buffer.byteLength(frame) > largest ? null : frame;
    } catch (error) {
      report(error);
      return null;
    }
  }

  /** Evicts a quarter of the cache in one pass because finding the oldest entry is slow after deletions. */
  #makeRoom(): void {
    for (const oldest of this.#made.keys()) {
      // The last frame is kept regardless of its size because other readers need it now.
      if (this.#size <= this.#options.size * 0.75 || this.#made.size === 1) return;
      this.#drop(oldest);
    }
  }

  #drop(name: number): void {
    const frame = this.#made.get(name);
    if (frame === undefined) return;
    this.#made.delete(name);
    this.#size -= costOf(frame);
  }
}

/** Returns a number that is unique per event and kind of reader. */
function nameOf({ seq }: StoredEvent, { index }: ReaderKind): number {
  return seq * readerKinds.length + index;
}

function costOf(frame: string | null): number {
  return 64 + (frame?.length ?? 0);
}

/** A kind of reader. All readers of one kind receive the same frame. */
export interface ReaderKind {
  readonly isAdmin: boolean;
  readonly allUsers: boolean;
  /** The index of this kind in `readerKinds`. */
  readonly index: number;
}

export const readerKinds: readonly ReaderKind[] = [
  { isAdmin: false, allUsers: false, index: 0 },
  { isAdmin: true, allUsers: false, index: 1 },
  { isAdmin: false, allUsers: true, index: 2 },
  { isAdmin: true, allUsers: true, index: 3 },
];

export function readerKindOf(principal: Principal): ReaderKind {
  const index = (isAdmin(principal) ? 1 : 0) + (isForAll(principal) ? 2 : 0);
  return readerKinds[index] as ReaderKind;
}

/** The maximum number of parts of a value to visit. No real event has this many. */
const mostParts = 100_000;

/** Estimates how much memory a value uses, without reading its strings. */
export function estimateSize(value: unknown): number {
  let bytes = 0;
  const waiting: unknown[] = [value];
  for (let parts = 0; waiting.length > 0 && parts < mostParts; parts += 1) {
    const part = waiting.pop();
    bytes += 16;
    if (typeof part === "string") bytes += part.length;
    else if (Array.isArray(part)) for (const each of part) waiting.push(each);
    else if (typeof part === "object" && part !== null) {
      for (const name in part) {
        bytes += 8;
        waiting.push((part as Record<string, unknown>)[name]);
      }
    }
  }
  return bytes;
}

export interface RingLimits {
  readonly events: number;
  readonly bytes: number;
}

/** The most recent events within the limits. Their numbers increase, but not always by one. */
export class EventRing {
  readonly #limits: RingLimits;
  readonly #slots: (StoredEvent | undefined)[] = [];
  /** Positions only increase. An event's slot is its position modulo the number of slots. */
  #from = 0;
  #to = 0;
  #bytes = 0;
  #goneUpTo: number;

  /** `last` is the number before the first event. */
  constructor(limits: RingLimits, last: number) {
    this.#limits = limits;
    this.#goneUpTo = last;
  }

  /** Events up to this number have been dropped, and all later ones are stored. */
  get goneUpTo(): number {
    return this.#goneUpTo;
  }

  get size(): number {
    return this.#to - this.#from;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(kept: StoredEvent): void {
    if (this.size === this.#limits.events) this.#dropFirst();
    this.#slots[this.#to % this.#limits.events] = kept;
    this.#to += 1;
    this.#bytes += kept.bytes;
    while (this.#bytes > this.#limits.bytes && this.size > 0) this.#dropFirst();
  }

  /** Drops all events. `last` is the number of the last event that readers missed. */
  clear(last: number): void {
    while (this.size > 0) this.#dropFirst();
    this.#goneUpTo = last;
  }

  /** Returns the first event after a number. */
  behind(seq: number): StoredEvent | null {
    let [low, high] = [this.#from, this.#to];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#at(middle).seq > seq) high = middle;
      else low = middle + 1;
    }
    return low === this.#to ? null : this.#at(low);
  }

  /** Iterates over the events of a session. */
  *of(userId: string | null, sessionId: string): Iterable<StoredEvent> {
    for (let place = this.#from; place < this.#to; place += 1) {
      const kept = this.#at(place);
      if (kept.event.sessionId === sessionId && kept.event.userId === userId) yield kept;
    }
  }

  #at(place: number): StoredEvent {
    return this.#slots[place % this.#limits.events] as StoredEvent;
  }

  #dropFirst(): void {
    const kept = this.#at(this.#from);
    this.#slots[this.#from % this.#limits.events] = undefined;
    this.#from += 1;
    this.#bytes -= kept.bytes;
    this.#goneUpTo = kept.seq;
  }
}
