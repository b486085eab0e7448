import { SkeinError } from "../../core/errors.ts";
import { openFileLimit } from "../../store/files/disk.ts";
import { Authenticator } from "./authenticator.ts";
import { ByteBudget, OpenCounter } from "./rate-limits.ts";
import type { ServerOptions, Tuning } from "./server-options.ts";
import { connectionLimits, defaultTuning } from "./server-options.ts";
import { TokenWatch } from "./token-watch.ts";

/** State that the HTTP and socket servers share. */
export interface ServerContext {
  readonly app: ServerOptions;
  readonly tuning: Tuning;
  readonly authenticator: Authenticator;
  readonly pendingRequests: PendingRequests;
  readonly tokenWatch: TokenWatch;
  /** Open sockets and event streams per token. */
  readonly sockets: OpenCounter;
  /** Pending HTTP requests per token. */
  readonly requests: OpenCounter;
  /** Memory for unfinished requests per token: HTTP bodies, and socket messages that have only partially arrived. */
  readonly bodies: ByteBudget;
  /** Memory for the bodies of all requests without a token. */
  readonly unsignedBodies: ByteBudget;
}

export function createServerContext(app: ServerOptions, given: Partial<Tuning>): ServerContext {
  const tuning = { ...defaultTuning, ...connectionLimits(openFileLimit()), ...given };
  const authenticator = new Authenticator(app, tuning);
  return {
    app,
    tuning,
    authenticator,
    pendingRequests: new PendingRequests(),
    tokenWatch: new TokenWatch((tokenIds) => authenticator.findEnded(tokenIds)),
    sockets: new OpenCounter(tuning.socketsPerToken),
    requests: new OpenCounter(tuning.requestsPerToken),
    bodies: new ByteBudget(tuning.bodyBytesPerToken, tuning.bodyBytes),
    unsignedBodies: new ByteBudget(tuning.unsignedBytes),
  };
}

/** One pending request. */
export interface PendingRequest {
  readonly signal: AbortSignal;
  /** Marks the request as only waiting for events so that a shutdown aborts it immediately. */
  wait(): void;
  /** Called when the client is no longer waiting for the response. */
  leave(): void;
  /** Called when the response has been sent or the request has been abandoned. */
  done(): void;
}

interface Row {
  readonly controller: AbortController;
  isLong: boolean;
}

const advice = "Try again in a moment. The work might already have been done";

/** Tracks every pending request so that a shutdown can wait for some requests and abort the rest. */
export class PendingRequests {
  readonly #rows = new Set<Row>();
  readonly #waiting: (() => void)[] = [];
  #isStopping = false;

  get size(): number {
    return this.#rows.size;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** `isLong` is `true` for a request that waits for events from the start. */
  begin(isLong: boolean): PendingRequest {
    const row = { controller: new AbortController(), isLong };
    this.#rows.add(row);
    return {
      signal: row.controller.signal,
      wait: () => this.#wait(row),
      leave: () => row.controller.abort(over("The client is no longer waiting for the response")),
      done: () => this.#end(row),
    };
  }

  /** Rejects new requests. Resolves when no request is pending. */
  stop(): Promise<void> {
    this.#isStopping = true;
    this.#abort((row) => row.isLong);
    if (this.#rows.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  abortAll(): void {
    this.#abort(() => true);
  }

  #wait(row: Row): void {
    row.isLong = true;
    if (this.#isStopping) this.#abort((each) => each === row);
  }

  #abort(isMeant: (row: Row) => boolean): void {
    for (const row of this.#rows)
      if (isMeant(row)) row.controller.abort(over("The gateway is shutting down"));
  }

  #end(row: Row): void {
    this.#rows.delete(row);
    if (this.#rows.size === 0) for (const go of this.#waiting.splice(0)) go();
  }
}

function over(problem: string): SkeinError {
  return new SkeinError("unavailable", { problem, advice });
}
