import type { EventFrame, HelloPayload } from "../protocol/frames.ts";
import type { Backoff } from "./backoff.ts";
import { delayBefore } from "./backoff.ts";
import type { CallError } from "./call-error.ts";
import { isPassing, unavailable } from "./call-error.ts";
import type { ClientState } from "./contract.ts";
import { Pulse, pulseFrame } from "./pulse.ts";
import type { RequestOptions } from "./requests.ts";
import { Requests } from "./requests.ts";
import type { LiveSocket, SocketSettings } from "./socket.ts";
import { closeError, openSocket, reconnectsAfter } from "./socket.ts";

/** A way to a gateway that outlives its sockets. */

export interface ConnectionSettings extends SocketSettings {
  /** `null`: the first socket is the only one. */
  readonly reconnect: (Backoff & { readonly forMs: number }) | null;
}

export interface ConnectionListener {
  opened(hello: HelloPayload): void;
  event(frame: EventFrame): void;
  /** The socket broke, and another one is tried. */
  lost(): void;
  /** There will be no other. Not called after `close`. */
  ended(error: CallError): void;
}

/** A socket that held so long was a good one: the next wait is a short one again. */
const steadyMs = 5000;

/**
 * A gateway that many come back to at once lets them in one by one. Whoever gives up and comes anew stands at the end of
 * that queue again, and so does everybody: each try that came to nothing in its time has twice as long the next time.
 */
const mostPatience = 8;

export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #listener: ConnectionListener;
  readonly #requests = new Requests();
  #state: ClientState = "connecting";
  #socket: LiveSocket | null = null;
  #pulse: Pulse | null = null;
  #error: CallError | null = null;
  #takeBack: () => void = () => undefined;
  #failed = 0;
  /** How many times as long as usual a handshake may take. */
  #patience = 1;
  #triedAt = 0;
  #openedAt = 0;
  /** When the last good socket broke. */
  #lostAt: number;
  /** Whether it is tried again before any socket was open. */
  #persists: boolean;

  constructor(settings: ConnectionSettings, listener: ConnectionListener, persists: boolean) {
    this.#settings = settings;
    this.#listener = listener;
    this.#persists = persists;
    this.#lostAt = settings.timing.now();
    this.#open();
  }

  get state(): ClientState {
    return this.#state;
  }

  request(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    if (this.#state === "closed") return Promise.reject(this.#error ?? closedHere());
    const socket = this.#state === "open" ? this.#socket : null;
    return this.#requests.add(method, params, options, socket === null ? null : (text) => socket.send(text));
  }

  /** The one that is open now. */
  get socket(): LiveSocket | null {
    return this.#state === "open" ? this.#socket : null;
  }

  async close(): Promise<void> {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#takeBack();
    this.#pulse?.stop();
    this.#requests.end(closedHere());
    await this.#socket?.close();
  }

  #open(): void {
    this.#triedAt = this.#settings.timing.now();
    const timeoutMs = this.#handshakeMs;
    const socket = openSocket(
      { ...this.#settings, timeoutMs },
      {
        hello: (hello) => this.#opened(hello, socket),
        heard: () => this.#pulse?.heard(),
        frame: (frame) => {
          if (frame.type === "res") this.#requests.answer(frame);
          else this.#listener.event(frame);
        },
        closed: (code, refusal) => this.#closed(code, refusal),
      },
    );
    this.#socket = socket;
  }

  get #handshakeMs(): number {
    return this.#settings.timeoutMs * this.#patience;
  }

  #opened(hello: HelloPayload, socket: LiveSocket): void {
    this.#state = "open";
    this.#patience = 1;
    this.#persists = true;
    this.#openedAt = this.#settings.timing.now();
    this.#requests.frameBytes = hello.limits.frameBytes;
    this.#pulse = new Pulse(this.#settings.timing, {
      ask: () => socket.send(pulseFrame),
      dead: () => socket.drop(),
    });
    this.#requests.opened((text) => socket.send(text));
    this.#listener.opened(hello);
  }

  #closed(code: number, refusal: CallError | null): void {
    const { timing, reconnect, url } = this.#settings;
    const now = timing.now();
    if (this.#state === "open") {
      this.#lostAt = now;
      if (now - this.#openedAt >= steadyMs) this.#failed = 0;
    } else if (now - this.#triedAt >= this.#handshakeMs) {
      this.#patience = Math.min(mostPatience, this.#patience * 2);
    }
    this.#state = "connecting";
    this.#socket = null;
    this.#pulse?.stop();
    this.#requests.lost();
    const error =
      refusal ?? closeError(code) ?? unavailable(`The gateway at ${url} cannot be reached, or went away.`);
    const comesBack = refusal === null ? reconnectsAfter(code) : mayComeAgain(refusal);
    const delay = this.#delay(refusal?.retryAfterMs ?? 0);
    if (!comesBack || !this.#persists || reconnect === null || now + delay - this.#lostAt > reconnect.forMs) {
      this.#end(error);
      return;
    }
    this.#takeBack = timing.setTimer(delay, () => this.#open());
    this.#listener.lost();
  }

  #delay(leastMs: number): number {
    const { timing, reconnect } = this.#settings;
    if (reconnect === null) return 0;
    return Math.max(
      leastMs,
      delayBefore(this.#failed++, reconnect, () => timing.random()),
    );
  }

  #end(error: CallError): void {
    this.#state = "closed";
    this.#error = error;
    this.#requests.end(error);
    this.#listener.ended(error);
  }
}

/** A gateway that is out of order for a token that is good may be in order later. */
function mayComeAgain(refusal: CallError): boolean {
  return ["unavailable", "internal"].includes(refusal.code) || isPassing(refusal);
}

function closedHere(): CallError {
  return unavailable("The client is closed. Connect anew.", false);
}
