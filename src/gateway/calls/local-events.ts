import type { SkeinEvent } from "../../core/events.ts";
import { readKey } from "../../core/keys.ts";
import type { EventPayload } from "../../protocol/events.ts";
import { eventPayload, eventTable, isWanted } from "../../protocol/events.ts";
import type { EventFilter, EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";

export interface LocalEventSource {
  subscribe(listener: (event: SkeinEvent) => void): () => void;
  /** The keys that references mean for a user, those of sessions that are yet to be made too; throws `not_found`. */
  keysOf(references: readonly string[], whose: EventFilter): Promise<readonly string[]>;
}

/** As whoever has the folder sees them. */
const admin = {
  isAdmin: true,
  allUsers: true,
  redact: (value: unknown) => value,
  redactDelta: ({ delta }: SkeinEvent<"run.delta">) => delta,
};

/** So many wait to be read before lossy ones are dropped. */
const mostWaiting = 10_000;

/**
 * The events of this process, from the call on. What waits to be read is kept whole up to a bound; beyond it pieces of answers are
 * dropped, a `gap` stands in their place, and everything else is kept still. Without keys and a user: of everybody; with keys
 * and no user, of the unnamed one.
 */
export class LocalEvents implements EventStream {
  readonly ready: Promise<void>;
  readonly #filter: EventFilter;
  readonly #leave: () => void;
  readonly #onClose: (stream: LocalEvents) => void;
  readonly #waiting: ReceivedEvent[] = [];
  /** What came before it was known which sessions are meant; `null`: it is. */
  #early: SkeinEvent[] | null = [];
  #keys: ReadonlySet<string> | null = null;
  #seq = 0;
  #isClosed = false;
  #news = Promise.withResolvers<void>();

  constructor(
    source: LocalEventSource,
    filter: EventFilter = {},
    onClose: (stream: LocalEvents) => void = () => undefined,
  ) {
    this.#filter = filter;
    this.#onClose = onClose;
    this.#leave = source.subscribe((event) => this.#take(event));
    this.ready = this.#begin(source);
    // Whoever reads is told; whoever only waits for it need not.
    this.ready.catch(() => this.close());
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#leave();
    this.#news.resolve();
    this.#onClose(this);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedEvent, void, undefined> {
    try {
      await this.ready;
      for (;;) {
        const next = this.#waiting.shift();
        if (next !== undefined) yield next;
        else if (this.#isClosed) return;
        else await this.#news.promise;
      }
    } finally {
      this.close();
    }
  }

  async #begin(source: LocalEventSource): Promise<void> {
    const { keys } = this.#filter;
    if (keys !== undefined && keys.length > 0) this.#keys = new Set(await source.keysOf(keys, this.#filter));
    const early = this.#early ?? [];
    this.#early = null;
    for (const event of early) this.#take(event);
  }

  #take(event: SkeinEvent): void {
    if (this.#early !== null) return void this.#early.push(event);
    if (!this.#concerns(event)) return;
    this.#seq += 1;
    if (eventTable[event.type].isLossy === true && this.#waiting.length >= mostWaiting) this.#drop();
    else this.#waiting.push(received(event, this.#seq));
    const { resolve } = this.#news;
    this.#news = Promise.withResolvers();
    resolve();
  }

  /** One gap for all that is dropped in a row. */
  #drop(): void {
    const last = this.#waiting.at(-1);
    const after = last?.event === "gap" ? last.payload.after : this.#seq - 1;
    if (last?.event === "gap") this.#waiting.pop();
    const payload = { after, upTo: this.#seq, reason: "slow" as const };
    this.#waiting.push({ event: "gap", payload, seq: this.#seq });
  }

  #concerns(event: SkeinEvent): boolean {
    const { events, agentId, userId } = this.#filter;
    if (!isWanted(event.type, events)) return false;
    if (this.#keys !== null) return this.#keys.has(event.sessionKey) && event.userId === (userId ?? null);
    if (userId !== undefined && event.userId !== userId) return false;
    return agentId === undefined || agentOf(event) === agentId.toLowerCase();
  }
}

function agentOf(event: SkeinEvent): string | null {
  if (event.type === "run.started" && event.agentId !== undefined) return event.agentId;
  const key = readKey(event.sessionKey);
  return "problem" in key || key.form === "special" ? null : key.agentId;
}

function received(event: SkeinEvent, seq: number): ReceivedEvent {
  const payload = eventPayload(event, admin) as EventPayload<typeof event.type>;
  return { event: event.type, payload, seq } as ReceivedEvent;
}
