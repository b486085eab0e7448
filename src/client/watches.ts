import type { EventFilter } from "../protocol/calls.ts";
import type { EventFrame } from "../protocol/frames.ts";
import type { Result } from "../protocol/method-table.ts";
import type { Connection, ConnectionListener } from "./connection.ts";
import type { Timing } from "./retry.ts";
import { retryWhileTransient } from "./retry.ts";

/**
 * Signals that sessions might have new entries. Sessions share sockets, because a client can follow many sessions, but
 * a token can have only a few sockets.
 */

export interface WatchListener {
  /** Called when there might be new entries, and whenever the watch starts or has been interrupted. */
  ring(): void;
  /** Called when the watch has ended. */
  fail(reason: unknown): void;
}

export interface WatchDeps {
  readonly timing: Timing;
  open(listener: ConnectionListener): Connection;
}

/** A gateway accepts 64 subscriptions per socket, including those that are about to be canceled. */
const watchesPerSocket = 50;

export class Watches {
  readonly #deps: WatchDeps;
  readonly #sockets = new Set<WatchSocket>();
  #isClosed = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** `filter` selects events of the session with this key. Returns a function that ends the watch. */
  watch(key: string, filter: EventFilter, listener: WatchListener): () => void {
    if (this.#isClosed) return () => undefined;
    const free = [...this.#sockets].find(({ size }) => size < watchesPerSocket);
    const socket = free ?? new WatchSocket(this.#deps, () => void this.#sockets.delete(socket));
    this.#sockets.add(socket);
    return socket.add({ key, filter, listener, ending: new AbortController(), subscriptionId: null });
  }

  checkConnections(): void {
    for (const socket of this.#sockets) socket.checkConnection();
  }

  close(): void {
    this.#isClosed = true;
    for (const socket of [...this.#sockets]) socket.close();
  }
}

interface Watch {
  readonly key: string;
  readonly filter: EventFilter;
  readonly listener: WatchListener;
  readonly ending: AbortController;
  subscriptionId: string | null;
}

/** A socket that is open while it has watches. */
class WatchSocket {
  readonly #timing: Timing;
  readonly #connection: Connection;
  readonly #ended: () => void;
  readonly #watches = new Set<Watch>();

  constructor({ timing, open }: WatchDeps, ended: () => void) {
    this.#timing = timing;
    this.#ended = ended;
    this.#connection = open({
      opened: () => {
        for (const watch of this.#watches) void this.#start(watch);
      },
      event: (frame) => this.#take(frame),
      lost: () => undefined,
      ended: (error) => {
        for (const watch of this.#watches) watch.listener.fail(error);
        this.#ended();
      },
    });
  }

  get size(): number {
    return this.#watches.size;
  }

  add(watch: Watch): () => void {
    this.#watches.add(watch);
    // If the socket is not open yet, the watch starts when it is.
    if (this.#connection.socket !== null) void this.#start(watch);
    return () => this.#end(watch);
  }

  checkConnection(): void {
    this.#connection.check();
  }

  close(): void {
    for (const watch of this.#watches) this.#end(watch);
  }

  async #start(watch: Watch): Promise<void> {
    const { socket } = this.#connection;
    watch.subscriptionId = null;
    try {
      await retryWhileTransient(this.#timing, watch.ending.signal, async () => {
        // If that socket was lost, the watch starts on the next one.
        if (this.#connection.socket === socket) await this.#subscribe(watch);
      });
    } catch (error) {
      if (!watch.ending.signal.aborted) watch.listener.fail(error);
    }
  }

  async #subscribe(watch: Watch): Promise<void> {
    const answer = await this.#request("sessions.subscribe", watch.filter);
    const { subscriptionId } = answer as Result<"sessions.subscribe">;
    if (watch.ending.signal.aborted) return this.#unsubscribe(subscriptionId);
    watch.subscriptionId = subscriptionId;
    watch.listener.ring();
  }

  /** An event that does not belong to a session, such as a gap, can concern any session. */
  #take({ payload }: EventFrame): void {
    const { sessionKey } = payload as { readonly sessionKey?: string };
    for (const watch of this.#watches) {
      if (sessionKey === undefined || sessionKey === watch.key) watch.listener.ring();
    }
  }

  #end(watch: Watch): void {
    if (!this.#watches.delete(watch)) return;
    watch.ending.abort();
    if (this.#watches.size > 0) {
      if (watch.subscriptionId !== null) this.#unsubscribe(watch.subscriptionId);
      return;
    }
    this.#ended();
    void this.#connection.close();
  }

  /** A failure is harmless. Either the subscription ended together with its socket, or its events are ignored. */
  #unsubscribe(subscriptionId: string): void {
    if (this.#connection.socket === null) return;
    this.#request("sessions.unsubscribe", { subscriptionId }).catch(() => undefined);
  }

  #request(method: string, params: unknown): Promise<unknown> {
    return this.#connection.request(method, params, { isIdempotent: false });
  }
}
