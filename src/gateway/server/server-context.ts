import { SkeinError } from "../../core/errors.ts";
import { openFileLimit } from "../../store/files/disk.ts";
import type { Principal } from "../auth/principal.ts";
import { Authenticator } from "./authenticator.ts";
import { ByteBudget, OpenCounter } from "./rate-limits.ts";
import type { ServerApp, Tuning } from "./server-options.ts";
import { connectionLimits, defaultTuning } from "./server-options.ts";

/** What HTTP and sockets share. */
export interface ServerContext {
  readonly app: ServerApp;
  readonly tuning: Tuning;
  readonly authenticator: Authenticator;
  readonly pendingRequests: PendingRequests;
  readonly requestsByToken: RequestsByToken;
  /** Sockets and streams of each token. */
  readonly sockets: OpenCounter;
  /** Requests of each token that are under way over HTTP. */
  readonly requests: OpenCounter;
  /** Memory for the unfinished requests of each token: bodies over HTTP, and messages of sockets that have not all arrived. */
  readonly bodies: ByteBudget;
  /** Memory for bodies of requests without a token, all together. */
  readonly unsignedBodies: ByteBudget;
}

export function createServerContext(app: ServerApp, given: Partial<Tuning>): ServerContext {
  const tuning = { ...defaultTuning, ...connectionLimits(openFileLimit()), ...given };
  const authenticator = new Authenticator(app, tuning);
  return {
    app,
    tuning,
    authenticator,
    pendingRequests: new PendingRequests(),
    requestsByToken: new RequestsByToken((principal) => authenticator.isOver(principal)),
    sockets: new OpenCounter(tuning.socketsPerToken),
    requests: new OpenCounter(tuning.requestsPerToken),
    bodies: new ByteBudget(tuning.bodyBytesPerToken, tuning.bodyBytes),
    unsignedBodies: new ByteBudget(tuning.unsignedBytes),
  };
}

/** One request that is under way. */
export interface PendingRequest {
  readonly signal: AbortSignal;
  /** From now on it does nothing but wait for something to happen, and ends as soon as the server stops. */
  wait(): void;
  /** Nobody waits for it any more. */
  leave(): void;
  /** It is answered, or given up. */
  done(): void;
}

interface Row {
  readonly controller: AbortController;
  isLong: boolean;
}

const advice = "Ask again in a while; what was begun may have been done";

/** Every request that is under way, so that a server can wait for them, and end them. */
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

  /** `isLong`: it waits from the beginning. */
  begin(isLong: boolean): PendingRequest {
    const row = { controller: new AbortController(), isLong };
    this.#rows.add(row);
    return {
      signal: row.controller.signal,
      wait: () => this.#wait(row),
      leave: () => row.controller.abort(over("Nobody waits for the answer any more")),
      done: () => this.#end(row),
    };
  }

  /** From now on nothing is to be begun. Resolves when nothing is under way. */
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
    for (const row of this.#rows) if (isMeant(row)) row.controller.abort(over("The gateway stops"));
  }

  #end(row: Row): void {
    this.#rows.delete(row);
    if (this.#rows.size === 0) for (const go of this.#waiting.splice(0)) go();
  }
}

function over(problem: string): SkeinError {
  return new SkeinError("unavailable", { problem, advice });
}

/** Whoever is being answered over HTTP, so that a token that ends takes along what is under way for it. */
export class RequestsByToken {
  readonly #isOver: (principal: Principal) => boolean;
  readonly #inside = new Map<string, { readonly principal: Principal; readonly ends: Set<() => void> }>();

  constructor(isOver: (principal: Principal) => boolean) {
    this.#isOver = isOver;
  }

  /** `end` is called once its token has ended. Returns what takes it back. */
  add(principal: Principal, end: () => void): () => void {
    const { tokenId } = principal;
    const { ends } = this.#inside.get(tokenId) ?? { ends: new Set<() => void>() };
    this.#inside.set(tokenId, { principal, ends });
    const entry = () => end();
    ends.add(entry);
    return () => {
      ends.delete(entry);
      if (ends.size === 0) this.#inside.delete(tokenId);
    };
  }

  /** Looks at each token once, however much is under way for it. */
  recheck(): void {
    for (const { principal, ends } of [...this.#inside.values()]) {
      if (this.#isOver(principal)) for (const end of [...ends]) end();
    }
  }
}
