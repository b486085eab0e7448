import { setImmediate } from "node:timers/promises";
import { unlessAborted } from "../../../core/abort.ts";
import type { Clock } from "../../../core/clock.ts";
import { SkeinError } from "../../../core/errors.ts";
import type { Later } from "../../../core/later.ts";
import type { AcpSettings } from "../contract.ts";
import { unavailable } from "../unavailable.ts";

/** What a pool knows of an agent. */
export interface PooledAgent {
  /** Resolves when nothing more can be said with it. */
  readonly closed: Promise<void>;
  /** Its process has ended, and we may not have heard of it yet. */
  hasDied(): boolean;
  stop(): Promise<void>;
}

export interface PoolParts {
  readonly settings: Pick<AcpSettings, "maxConcurrentSessions" | "idleMs">;
  readonly clock: Clock;
  readonly later: Later;
  report(error: unknown): void;
}

interface Place<A> {
  /** Of the agent. */
  readonly name: string;
  /** `null`: it is being started. */
  agent: A | null;
  /** Settles when its start is over, however it ended. */
  started: Promise<unknown>;
  /** Ends a start that nobody wants any more. */
  readonly unwanted: AbortController;
  /** Nothing more can be said with it. */
  isClosed: boolean;
  /** It goes with the end of its turn. */
  isResting: boolean;
  isIdle: boolean;
  idleSince: number;
  /** Takes back what would end it after a while. */
  stay: () => void;
  /** Resolves when it has gone. */
  readonly left: PromiseWithResolvers<void>;
}

/** So long the run of a session that is gone may take to end by itself, as it does when it is aborted; then its agent goes. */
const farewellMs = 5000;

/** No timer waits longer; whoever has to looks again then. */
const longestDelay = 2 ** 31 - 1;

/** The agents that run, by the session of ours that each of them is for. */
export class AgentPool<A extends PooledAgent> {
  readonly #parts: PoolParts;
  readonly #places = new Map<string, Place<A>>();
  /** Starts and stops that are under way. */
  readonly #starting = new Set<Promise<A>>();
  readonly #leaving = new Set<Promise<void>>();
  #isClosing = false;

  constructor(parts: PoolParts) {
    this.#parts = parts;
  }

  /** The one that idles for this session, else one that is started; `acp_busy`: there is no room for it. */
  async acquire(
    name: string,
    sessionId: string,
    start: (signal: AbortSignal) => Promise<A>,
    signal: AbortSignal,
  ): Promise<A> {
    // Nothing is awaited between the last look and taking the place: many may come at once.
    for (;;) {
      this.#refuseClosed(name);
      const found = this.#places.get(sessionId);
      if (found?.isIdle === true && found.agent !== null) {
        found.isIdle = false;
        found.stay();
        await setImmediate(); // the end of one that has died is mostly read by then
        if (found.isClosed || this.#places.get(sessionId) !== found) continue;
        if (!found.agent.hasDied()) return found.agent;
        await unlessAborted(this.#drop(sessionId, found), signal);
        continue;
      }
      // Of a run that was left behind: what it still does is nobody's any more.
      if (found !== undefined) await unlessAborted(this.#drop(sessionId, found), signal);
      else if (!this.#hasRoom()) await unlessAborted(this.#roomMade(), signal);
      else break;
    }
    const place = placeOf<A>(name);
    this.#places.set(sessionId, place);
    const starting = this.#start(sessionId, place, start, signal).finally(() =>
      this.#starting.delete(starting),
    );
    place.started = starting;
    this.#starting.add(starting);
    return unlessAborted(starting, signal);
  }

  /** The one that idles for this session; `null`: none does. */
  idling(sessionId: string): A | null {
    const place = this.#places.get(sessionId);
    return place?.isIdle === true ? place.agent : null;
  }

  /** Its run is over. `keep`: it waits for the next message of its session. */
  done(sessionId: string, agent: A, keep: boolean): void {
    const place = this.#places.get(sessionId);
    if (place?.agent !== agent) return;
    if (!keep || place.isClosed || place.isResting || this.#isClosing) {
      void this.#drop(sessionId, place);
      return;
    }
    place.isIdle = true;
    place.idleSince = this.#parts.clock.now();
    this.#idle(sessionId, place);
  }

  /** One that idles goes at once, one in a turn with the end of it. */
  rest(sessionId: string): void {
    const place = this.#places.get(sessionId);
    if (place === undefined) return;
    place.isResting = true;
    if (place.isIdle) void this.#drop(sessionId, place);
  }

  /** Of a session that is gone. Its run is being aborted, and is left to end by that: it tells more than a killed process. */
  async release(sessionId: string): Promise<void> {
    const place = this.#places.get(sessionId);
    if (place === undefined) return;
    this.rest(sessionId);
    place.stay();
    if (!place.isIdle) place.stay = this.#parts.later(farewellMs, () => void this.#drop(sessionId, place));
    await place.left.promise;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    for (const [sessionId, place] of [...this.#places]) void this.#drop(sessionId, place);
    while (this.#starting.size + this.#leaving.size > 0)
      await Promise.allSettled([...this.#starting, ...this.#leaving]);
  }

  #refuseClosed(name: string): void {
    if (this.#isClosing) throw closing(name);
  }

  /** At once, whatever it does. Who is being started counts until nothing is left of that. */
  async #drop(sessionId: string, place: Place<A>): Promise<void> {
    if (this.#places.get(sessionId) !== place) return place.left.promise;
    place.stay();
    this.#places.delete(sessionId);
    const { name, agent, unwanted, started, left } = place;
    unwanted.abort(
      this.#isClosing ? closing(name) : unavailable(name, "its session is gone", "Open another"),
    );
    await this.#leave(agent === null ? started.catch(() => undefined) : agent.stop()); // a start is told to its run
    left.resolve();
  }

  #hasRoom(): boolean {
    return this.#places.size + this.#leaving.size < this.#parts.settings.maxConcurrentSessions;
  }

  /** Whoever idles longest goes; where nobody does, and nobody is about to go, there is no room. */
  #roomMade(): Promise<void> {
    const idle = [...this.#places].filter(([, { isIdle }]) => isIdle);
    const [oldest] = idle.toSorted(([, a], [, b]) => a.idleSince - b.idleSince);
    if (oldest !== undefined && this.#leaving.size === 0) void this.#drop(...oldest);
    if (this.#leaving.size > 0) return Promise.race(this.#leaving);
    const limit = this.#parts.settings.maxConcurrentSessions;
    throw new SkeinError("acp_busy", { active: this.#places.size, limit });
  }

  async #start(
    sessionId: string,
    place: Place<A>,
    start: (signal: AbortSignal) => Promise<A>,
    signal: AbortSignal,
  ): Promise<A> {
    try {
      const until = AbortSignal.any([signal, place.unwanted.signal]);
      const agent = await start(until);
      // Released meanwhile, or nobody waits for it any more.
      if (until.aborted) {
        await this.#leave(agent.stop());
        throw until.reason;
      }
      place.agent = agent;
      void agent.closed.then(() => this.#forget(sessionId, place));
      return agent;
    } catch (error) {
      if (this.#places.get(sessionId) === place) this.#places.delete(sessionId);
      place.stay();
      place.left.resolve();
      throw error;
    }
  }

  /** One that dies while it idles goes, one that dies in a turn with the end of it: it may have answered before. */
  #forget(sessionId: string, place: Place<A>): void {
    place.isClosed = true;
    if (place.isIdle) void this.#drop(sessionId, place);
  }

  #idle(sessionId: string, place: Place<A>): void {
    const { clock, later, settings } = this.#parts;
    const left = place.idleSince + settings.idleMs - clock.now();
    if (left <= 0) void this.#drop(sessionId, place);
    else place.stay = later(Math.min(left, longestDelay), () => this.#idle(sessionId, place));
  }

  #leave(work: Promise<unknown>): Promise<void> {
    const leaving: Promise<void> = work
      .then(() => undefined, this.#parts.report)
      .finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
    return leaving;
  }
}

function placeOf<A>(name: string): Place<A> {
  return {
    name,
    agent: null,
    started: Promise.resolve(),
    unwanted: new AbortController(),
    isClosed: false,
    isResting: false,
    isIdle: false,
    idleSince: 0,
    stay: () => undefined,
    left: Promise.withResolvers(),
  };
}

function closing(name: string): SkeinError {
  return unavailable(name, "this Skein is being closed", "Ask again once it is open");
}
