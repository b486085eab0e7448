import { EventQueue } from "../../client/event-queue.ts";
import { SkeinError } from "../../core/errors.ts";
import type { SkeinEvent } from "../../core/events.ts";
import type { Calls, EventFilter, EventStream, ReceivedEvent } from "../../protocol/calls.ts";
import type { WireEventType } from "../../protocol/events.ts";
import { eventPayload, isWanted } from "../../protocol/events.ts";
import type { MethodName } from "../../protocol/method-table.ts";
import { methodTable } from "../../protocol/method-table.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser, localTokenId, tokenScopes } from "../auth/principal.ts";
import type { EventSelection } from "../events/event-selection.ts";
import { isSelected, selectEvents } from "../events/event-selection.ts";
import type { HandledMethod, Handlers, HandlersOf, MethodApp } from "./dispatch.ts";
import { checkCall, Dispatch, RequestRefusedError } from "./dispatch.ts";

/** The principal for a process that opens the folder directly. */
export const localPrincipal: Principal = {
  tokenId: localTokenId,
  name: "this machine",
  scopes: tokenScopes,
  user: everyUser,
  expiresAt: null,
};

/** Calls methods in this process, with the same checks and handlers as over a socket. */
export function localCalls<M extends HandledMethod>(
  handlers: HandlersOf<M>,
  principal: Principal = localPrincipal,
): Calls<M> {
  const dispatch = new Dispatch({
    handlers: () => handlers as unknown as Handlers,
    newErrorId: () => "",
    report: () => undefined,
  });
  const never = new AbortController().signal;
  return {
    call: (method: MethodName, params, { signal = never } = {}) =>
      dispatch.invoke(principal, method, params, signal) as Promise<never>,
  };
}

/** Turns a rejected request into a `SkeinError`, for library callers. */
export function throwingSkeinErrors<M extends HandledMethod>({ call }: Calls<M>): Calls<M> {
  const checked: typeof call = (...args) =>
    call(...args).catch((error: unknown) => {
      if (!(error instanceof RequestRefusedError)) throw error;
      const problems = error.wire.details?.problems ?? [];
      const texts = problems.map(({ path, problem }) => `${path} ${problem}`.trim());
      throw new SkeinError("invalid_arguments", {
        problem: `${args[0]}: ${texts.length === 0 ? error.message.replace(/\.$/, "") : texts.join("; ")}`,
        advice: "See its parameter type for the allowed fields",
      });
    });
  return { call: checked };
}

/** Methods and events in this process, like `WatchedCalls` over a socket. */
export interface LocalCallsWithEvents<M extends HandledMethod = HandledMethod> extends Calls<M> {
  events(filter?: EventFilter): EventStream;
  /** Closes every open event stream. */
  close(): Promise<void>;
}

export function localCallsWithEvents<M extends HandledMethod>(
  handlers: HandlersOf<M>,
  app: MethodApp,
  principal: Principal = localPrincipal,
): LocalCallsWithEvents<M> {
  const streams = new Set<LocalEvents>();
  const wanted = async (filter: EventFilter) => {
    const { params, call } = checkCall(methodTable["sessions.subscribe"], filter, principal);
    return selectEvents(params as EventFilter, principal, call.userId, app);
  };
  return {
    ...localCalls(handlers, principal),
    events: (filter = {}) => {
      const stream = new LocalEvents(
        { subscribe: (listener) => app.skein.subscribe(listener), wanted: () => wanted(filter) },
        (closed) => streams.delete(closed),
      );
      streams.add(stream);
      return stream;
    },
    close: async () => {
      for (const stream of [...streams]) stream.close();
    },
  };
}

export interface LocalEventSource {
  subscribe(listener: (event: SkeinEvent) => void): () => void;
  /** Resolves the selection. Throws `not_found`. */
  wanted(): Promise<EventSelection>;
}

/** Local callers see everything. */
const admin = {
  isAdmin: true,
  allUsers: true,
  redact: (value: unknown) => value,
  redactDelta: (event: SkeinEvent<"run.delta">) => event,
};

/** The queue size of a stream, which is the same as for a socket. */
const mostWaiting = 10_000;

/** The events in this process, as a hub would send them over a socket. */
export class LocalEvents implements EventStream {
  readonly ready: Promise<void>;
  readonly #leave: () => void;
  readonly #onClose: (stream: LocalEvents) => void;
  readonly #queue: EventQueue;
  /** `null` until resolved. Until then, all events are queued, and they are filtered when they are read. */
  #wanted: EventSelection | null = null;
  #seq = 0;
  #isClosed = false;
  #news = Promise.withResolvers<void>();

  constructor(
    source: LocalEventSource,
    onClose: (stream: LocalEvents) => void = () => undefined,
    most = mostWaiting,
  ) {
    this.#onClose = onClose;
    this.#queue = new EventQueue(most);
    this.#leave = source.subscribe((event) => this.#take(event));
    this.ready = this.#begin(source);
    // A reader receives this error. A caller that never reads does not need it.
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
        const next = this.#queue.take();
        if (next === null) {
          if (this.#isClosed) return;
          await this.#news.promise;
        } else if (this.#concerns(next)) yield next;
      }
    } finally {
      this.close();
    }
  }

  async #begin(source: LocalEventSource): Promise<void> {
    this.#wanted = await source.wanted();
  }

  #take(event: SkeinEvent): void {
    this.#seq += 1;
    if (this.#wanted !== null && !isFor(this.#wanted, event.type, event)) return;
    this.#queue.push({
      event: event.type,
      payload: eventPayload(event, admin),
      seq: this.#seq,
    } as ReceivedEvent);
    const { resolve } = this.#news;
    this.#news = Promise.withResolvers();
    resolve();
  }

  /** A gap can affect any session. */
  #concerns(received: ReceivedEvent): boolean {
    if (this.#wanted === null || received.event === "gap") return true;
    const session = { userId: null, ...received.payload };
    return isFor(this.#wanted, received.event, session);
  }
}

function isFor(
  wanted: EventSelection,
  name: WireEventType,
  about: Parameters<typeof isSelected>[1],
): boolean {
  return isWanted(name, wanted.events) && isSelected(wanted, about);
}
