import type { Clock } from "../../../core/clock.ts";
import { SkeinError } from "../../../core/errors.ts";
import { unlessAborted } from "../../loop/waits.ts";
import type { AcpSettings } from "../contract.ts";
import { unavailable } from "./failures.ts";

/** What a pool knows of an agent. */
export interface PooledAgent {
  /** Resolves when nothing more can be said with it. */
  readonly closed: Promise<void>;
  stop(): Promise<void>;
}

/** Does something later; what it returns takes that back. */
export type Later = (act: () => void, ms: number) => () => void;

export const realLater: Later = (act, ms) => {
  const timer = setTimeout(act, ms).unref();
  return () => clearTimeout(timer);
};

export interface PoolParts {
  readonly settings: Pick<AcpSettings, "maxConcurrentSessions" | "idleMs">;
  readonly clock: Clock;
  readonly later: Later;
  report(error: unknown): void;
}

interface Place<A> {
  /** `null`: it is being started. */
  agent: A | null;
  isIdle: boolean;
  idleSince: number;
  /** Takes the end of its idling back. */
  stay: () => void;
}

/** No timer waits longer; whoever has to looks again then. */
const longestDelay = 2 ** 31 - 1;

/** The agents that run, by the session of ours that each of them is for. */
export class AgentPool<A extends PooledAgent> {
  readonly #parts: PoolParts;
  readonly #places = new Map<string, Place<A>>();
  /** Starts and stops that are under way. */
  readonly #starting = new Set<Promise<A>>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #closing = new AbortController();

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
    this.#refuseClosed(name);
    const found = this.#places.get(sessionId);
    if (found?.isIdle === true && found.agent !== null) {
      found.isIdle = false;
      found.stay();
      return found.agent;
    }
    // Of a run that was left behind: what it still does is nobody's any more.
    if (found !== undefined) await unlessAborted(this.release(sessionId), signal);
    // Nothing is awaited between the last look and taking the place: many may come at once.
    while (!this.#hasRoom()) await unlessAborted(this.#roomMade(), signal);
    this.#refuseClosed(name);
    const place: Place<A> = { agent: null, isIdle: false, idleSince: 0, stay: () => undefined };
    this.#places.set(sessionId, place);
    const starting = this.#start(sessionId, place, start, signal).finally(() =>
      this.#starting.delete(starting),
    );
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
    if (!keep || this.#closing.signal.aborted) {
      void this.release(sessionId);
      return;
    }
    place.isIdle = true;
    place.idleSince = this.#parts.clock.now();
    this.#idle(sessionId, place);
  }

  async release(sessionId: string): Promise<void> {
    const place = this.#places.get(sessionId);
    if (place === undefined) return;
    place.stay();
    this.#places.delete(sessionId);
    if (place.agent !== null) await this.#stop(place.agent);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const sessionId of [...this.#places.keys()]) void this.release(sessionId);
    while (this.#starting.size + this.#leaving.size > 0)
      await Promise.allSettled([...this.#starting, ...this.#leaving]);
  }

  #refuseClosed(name: string): void {
    if (this.#closing.signal.aborted)
      throw unavailable(name, "this Skein is being closed", "Ask again once it is open");
  }

  #hasRoom(): boolean {
    return this.#places.size + this.#leaving.size < this.#parts.settings.maxConcurrentSessions;
  }

  /** Whoever idles longest goes; where nobody does, and nobody is about to go, there is no room. */
  #roomMade(): Promise<void> {
    const idle = [...this.#places].filter(([, { isIdle }]) => isIdle);
    const [oldest] = idle.toSorted(([, a], [, b]) => a.idleSince - b.idleSince);
    if (oldest !== undefined && this.#leaving.size === 0) void this.release(oldest[0]);
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
      const agent = await start(AbortSignal.any([signal, this.#closing.signal]));
      // Released meanwhile, or nobody waits for it any more.
      if (this.#places.get(sessionId) !== place || signal.aborted) {
        if (this.#places.get(sessionId) === place) this.#places.delete(sessionId);
        await this.#stop(agent);
        throw signal.aborted ? signal.reason : unavailable("", "its session is gone", "Open another");
      }
      place.agent = agent;
      void agent.closed.then(() => this.#forget(sessionId, place));
      return agent;
    } catch (error) {
      if (this.#places.get(sessionId) === place) this.#places.delete(sessionId);
      throw error;
    }
  }

  /** One that dies while it idles; the turn of one that does not sees it by itself. */
  #forget(sessionId: string, place: Place<A>): void {
    if (place.isIdle && this.#places.get(sessionId) === place) void this.release(sessionId);
  }

  #idle(sessionId: string, place: Place<A>): void {
    const { clock, later, settings } = this.#parts;
    const left = place.idleSince + settings.idleMs - clock.now();
    if (left <= 0) void this.release(sessionId);
    else place.stay = later(() => this.#idle(sessionId, place), Math.min(left, longestDelay));
  }

  #stop(agent: A): Promise<void> {
    const leaving = agent
      .stop()
      .catch(this.#parts.report)
      .finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
    return leaving;
  }
}
