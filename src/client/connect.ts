import type { EventFilter } from "../protocol/calls.ts";
import type { HelloPayload } from "../protocol/frames.ts";
import type { WireEntry } from "../protocol/session-details.ts";
import { protocolVersion, wireLimits } from "../protocol/wire.ts";
import type { ConnectionListener, ConnectionSettings } from "./connection.ts";
import { Connection } from "./connection.ts";
import type { ClientState, ConnectOptions, FollowOptions, SkeinClient } from "./contract.ts";
import { CallError } from "./contract.ts";
import { closedByUser, follow } from "./follow.ts";
import { LiveStream } from "./live-stream.ts";
import type { Timing } from "./retry.ts";
import { realTiming } from "./retry.ts";
import { Watches } from "./watches.ts";

const defaults = { minMs: 250, maxMs: 15_000, forMs: Number.POSITIVE_INFINITY };

/**
 * Connects to the gateway at a URL with a token. Rejects with a `CallError`: `unauthorized` for an invalid token,
 * `unavailable` if the gateway does not respond. A connection that is lost later is reopened automatically, unless the
 * token is no longer valid.
 *
 * @example
 * ```ts
 * import { connect } from "skein/client";
 * const client = await connect("http://127.0.0.1:18790", { token: "skein_…" });
 * const { runId } = await client.call("chat.send", {
 *   sessionKey: "main",
 *   message: "Plan three days in Kyoto",
 *   idempotencyKey: crypto.randomUUID(),
 * });
 * console.log(await client.call("agent.wait", { runId }, { signal: AbortSignal.timeout(60_000) }));
 * await client.close();
 * ```
 */
export function connect(url: string, options: ConnectOptions): Promise<SkeinClient> {
  return connectWith(url, options, realTiming);
}

export async function connectWith(
  url: string,
  options: ConnectOptions,
  timing: Timing,
): Promise<SkeinClient> {
  const { token, client, reconnect, timeoutMs = wireLimits.connectMs, eventsHeld = 1000 } = options;
  return new Client({
    url: socketUrl(url),
    Socket: options.WebSocket ?? globalThis.WebSocket,
    params: {
      protocol: { min: protocolVersion, max: protocolVersion },
      auth: { token },
      client: { name: "skein-client", ...client },
    },
    timeoutMs,
    timing,
    reconnect: reconnect === false ? null : { ...defaults, ...reconnect },
    eventsHeld,
  }).opened();
}

/** Returns the URL for sockets: `/ws` under the gateway's address. */
export function socketUrl(url: string): string {
  const at = URL.canParse(url) ? new URL(url) : null;
  if (at === null || !/^(?:https?|wss?):$/.test(at.protocol)) {
    const message = `"${url}" is not a valid gateway URL. Use a URL such as http://127.0.0.1:18790.`;
    throw new CallError({ code: "invalid_request", message });
  }
  const path = at.pathname.replace(/\/+$/, "");
  return `${at.protocol.replace("http", "ws")}//${at.host}${path.endsWith("/ws") ? path : `${path}/ws`}`;
}

export interface ClientSettings extends ConnectionSettings {
  readonly eventsHeld: number;
}

/** Changes to a session's state or name are also entries, but they have their own events. */
const entrySigns = ["entry.appended", "session.*"];

type StateListener = (state: ClientState, error: CallError | null) => void;

/** All calls share one socket. Each event stream has its own socket. Followed sessions share further sockets. */
export class Client implements SkeinClient {
  readonly #settings: ClientSettings;
  readonly #connection: Connection;
  readonly #streams = new Set<LiveStream>();
  readonly #watches: Watches;
  readonly #listeners = new Set<StateListener>();
  readonly #over = new AbortController();
  readonly #greeted = Promise.withResolvers<void>();
  #hello: HelloPayload | null = null;

  constructor(settings: ClientSettings) {
    this.#settings = settings;
    this.#watches = new Watches({
      timing: settings.timing,
      open: (listener) => this.#connectTo(listener, true),
    });
    this.#connection = this.#connectTo(
      {
        opened: (hello) => {
          this.#hello = hello;
          this.#greeted.resolve();
          this.#tell("open", null);
        },
        event: () => undefined,
        lost: () => this.#tell("connecting", null),
        ended: (error) => {
          this.#greeted.reject(error);
          this.#over.abort(error);
          this.#tell("closed", error);
        },
      },
      false,
    );
  }

  /** Rejects if the first socket cannot be opened. */
  async opened(): Promise<this> {
    await this.#greeted.promise;
    return this;
  }

  get hello(): HelloPayload {
    if (this.#hello === null) throw new Error("The client is not connected to the gateway yet.");
    return this.#hello;
  }

  get state(): ClientState {
    return this.#connection.state;
  }

  onState(listener: StateListener): () => void {
    const entry: StateListener = (state, error) => listener(state, error);
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  get call(): SkeinClient["call"] {
    return this.#connection.call;
  }

  events(filter: EventFilter = {}): LiveStream {
    const stream: LiveStream = new LiveStream({
      filter,
      most: this.#settings.eventsHeld,
      timing: this.#settings.timing,
      open: (listener) => this.#connectTo(listener, true),
      ended: () => void this.#streams.delete(stream),
    });
    this.#streams.add(stream);
    if (this.state === "closed") stream.close();
    return stream;
  }

  follow(key: string, options: FollowOptions = {}): AsyncIterable<WireEntry> {
    const { agentId, userId } = options;
    const who = {
      ...(agentId === undefined ? {} : { agentId }),
      ...(userId === undefined ? {} : { userId }),
    };
    return follow(
      {
        calls: this,
        timing: this.#settings.timing,
        over: this.#over.signal,
        watch: (watched, bell) =>
          this.#watches.watch(watched, { keys: [watched], events: entrySigns, ...who }, bell),
      },
      key,
      options,
    );
  }

  checkConnection(): void {
    this.#connection.check();
    this.#watches.checkConnections();
    for (const stream of this.#streams) stream.checkConnection();
  }

  async close(): Promise<void> {
    if (this.state === "closed") return;
    for (const stream of this.#streams) stream.close();
    this.#watches.close();
    this.#over.abort(closedByUser);
    const closed = this.#connection.close();
    this.#tell("closed", null);
    await closed;
  }

  #connectTo(listener: ConnectionListener, persists: boolean): Connection {
    return new Connection(this.#settings, listener, persists);
  }

  #tell(state: ClientState, error: CallError | null): void {
    for (const listener of [...this.#listeners]) listener(state, error);
  }
}
