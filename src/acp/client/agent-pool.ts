import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import type { Later } from "../../core/concurrency.ts";
import { unlessAborted } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { unavailable } from "./errors.ts";

export interface PooledAgent {
  /** Resolves when the connection or the process has ended. */
  readonly closed: Promise<void>;
  /** Whether the agent's process has ended. Can be `true` before `closed` resolves. */
  hasDied(): boolean;
  stop(): Promise<void>;
}

export interface PoolSettings {
  /** The maximum number of concurrent processes. */
  readonly maxConcurrentSessions: number;
  readonly idleMs: number;
}

export interface PoolOptions {
  readonly settings: PoolSettings;
  readonly clock: Clock;
  readonly later: Later;
  report(error: unknown): void;
}

type StartAgent<A> = (signal: AbortSignal) => Promise<A>;

/** The pool slot of one session's agent, held from the start of its process until it exits. */
class PoolSlot<A> {
  readonly agentName: string;
  /** `null` while the agent is starting. */
  agent: A | null = null;
  started: Promise<unknown> = Promise.resolve();
  readonly startAborted = new AbortController();
  isClosed = false;
  /** Set if the process must exit when its turn ends. */
  isResting = false;
  isIdle = false;
  idleSince = 0;
  cancelTimer: () => void = () => undefined;
  /** Resolves when the agent's process has exited. */
  readonly gone = Promise.withResolvers<void>();

  constructor(agentName: string) {
    this.agentName = agentName;
  }
}

/** How long the aborted run of a deleted session can take to end on its own before its agent is stopped. */
const releaseMs = 5000;

/** The longest delay that a timer supports. A longer wait is split. */
const maxDelayMs = 2 ** 31 - 1;

/** The running agents, keyed by the Skein session that each one works for. */
export class AgentPool<A extends PooledAgent> {
  readonly #options: PoolOptions;
  readonly #slots = new Map<string, PoolSlot<A>>();
  readonly #starting = new Set<Promise<A>>();
  readonly #stopping = new Set<Promise<void>>();
  #isClosing = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Returns the session's idle agent, or starts one. Throws `acp_busy` if the pool is full. */
  async acquire(agentName: string, sessionId: string, start: StartAgent<A>, signal: AbortSignal): Promise<A> {
    // Nothing is awaited between the last check and taking the slot, so that concurrent callers cannot take it twice.
    for (;;) {
      if (this.#isClosing) throw closingError(agentName);
      const found = this.#slots.get(sessionId);
      if (found?.isIdle === true && found.agent !== null) {
        found.isIdle = false;
        found.cancelTimer();
        await setImmediate(); // Lets the exit event of a dead process arrive.
        if (found.isClosed || this.#slots.get(sessionId) !== found) continue;
        if (!found.agent.hasDied()) return found.agent;
        await unlessAborted(this.#drop(sessionId, found), signal);
        continue;
      }
      // If the slot is in use, it belongs to an abandoned run.
      if (found !== undefined) await unlessAborted(this.#drop(sessionId, found), signal);
      else if (!this.#hasRoom()) await unlessAborted(this.#makeRoom(), signal);
      else break;
    }
    const slot = new PoolSlot<A>(agentName);
    this.#slots.set(sessionId, slot);
    const starting = this.#start(sessionId, slot, start, signal).finally(() =>
      this.#starting.delete(starting),
    );
    slot.started = starting;
    this.#starting.add(starting);
    return unlessAborted(starting, signal).catch((error: unknown) => {
      // The run was aborted after its agent had started, so no caller returns this agent to the pool.
      if (slot.agent !== null) void this.#drop(sessionId, slot);
      throw error;
    });
  }

  idleAgent(sessionId: string): A | null {
    const slot = this.#slots.get(sessionId);
    return slot?.isIdle === true ? slot.agent : null;
  }

  /** Called when a run ends. If `keep` is set, the agent stays ready for the session's next message. */
  done(sessionId: string, agent: A, keep: boolean): void {
    const slot = this.#slots.get(sessionId);
    if (slot?.agent !== agent) return;
    if (!keep || slot.isClosed || slot.isResting || this.#isClosing) {
      void this.#drop(sessionId, slot);
      return;
    }
    slot.isIdle = true;
    slot.idleSince = this.#options.clock.now();
    this.#scheduleDrop(sessionId, slot);
  }

  /** Stops an idle agent immediately and a busy one after its turn. */
  rest(sessionId: string): void {
    const slot = this.#slots.get(sessionId);
    if (slot === undefined) return;
    slot.isResting = true;
    if (slot.isIdle) void this.#drop(sessionId, slot);
  }

  /**
   * Stops the agent of a deleted session. The run that is being aborted gets time to end on its own, because it then
   * records more than if its process were killed.
   */
  async release(sessionId: string): Promise<void> {
    const slot = this.#slots.get(sessionId);
    if (slot === undefined) return;
    this.rest(sessionId);
    slot.cancelTimer();
    if (!slot.isIdle)
      slot.cancelTimer = this.#options.later(releaseMs, () => void this.#drop(sessionId, slot));
    await slot.gone.promise;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    for (const [sessionId, slot] of [...this.#slots]) void this.#drop(sessionId, slot);
    while (this.#starting.size + this.#stopping.size > 0)
      await Promise.allSettled([...this.#starting, ...this.#stopping]);
  }

  /** Stops an agent immediately. An agent that is starting keeps its slot until its start has been undone. */
  async #drop(sessionId: string, slot: PoolSlot<A>): Promise<void> {
    if (this.#slots.get(sessionId) !== slot) return slot.gone.promise;
    slot.cancelTimer();
    this.#slots.delete(sessionId);
    const { agentName, agent, startAborted, started, gone } = slot;
    startAborted.abort(
      this.#isClosing
        ? closingError(agentName)
        : unavailable(agentName, "its session no longer exists", "Open another session"),
    );
    // If the agent was still starting, its run receives the error.
    await this.#trackStop(agent === null ? started.catch(() => undefined) : agent.stop());
    gone.resolve();
  }

  #hasRoom(): boolean {
    return this.#slots.size + this.#stopping.size < this.#options.settings.maxConcurrentSessions;
  }

  /** Stops the agent that has been idle longest. Throws if every agent is busy. */
  #makeRoom(): Promise<void> {
    const idle = [...this.#slots].filter(([, { isIdle }]) => isIdle);
    const [oldest] = idle.toSorted(([, a], [, b]) => a.idleSince - b.idleSince);
    if (oldest !== undefined && this.#stopping.size === 0) void this.#drop(...oldest);
    if (this.#stopping.size > 0) return Promise.race(this.#stopping);
    const limit = this.#options.settings.maxConcurrentSessions;
    throw new SkeinError("acp_busy", { active: this.#slots.size, limit });
  }

  async #start(sessionId: string, slot: PoolSlot<A>, start: StartAgent<A>, signal: AbortSignal): Promise<A> {
    try {
      const aborted = AbortSignal.any([signal, slot.startAborted.signal]);
      const agent = await start(aborted);
      // While the agent was starting, it was released or its run was aborted.
      if (aborted.aborted) {
        await this.#trackStop(agent.stop());
        throw aborted.reason;
      }
      slot.agent = agent;
      void agent.closed.then(() => {
        // An agent that dies during a turn is dropped when the turn ends, because it might have responded before it
        // died.
        slot.isClosed = true;
        if (slot.isIdle) void this.#drop(sessionId, slot);
      });
      return agent;
    } catch (error) {
      if (this.#slots.get(sessionId) === slot) this.#slots.delete(sessionId);
      slot.cancelTimer();
      slot.gone.resolve();
      throw error;
    }
  }

  #scheduleDrop(sessionId: string, slot: PoolSlot<A>): void {
    const { clock, later, settings } = this.#options;
    const left = slot.idleSince + settings.idleMs - clock.now();
    if (left <= 0) void this.#drop(sessionId, slot);
    else slot.cancelTimer = later(Math.min(left, maxDelayMs), () => this.#scheduleDrop(sessionId, slot));
  }

  #trackStop(work: Promise<unknown>): Promise<void> {
    const stopping: Promise<void> = work
      .then(() => undefined, this.#options.report)
      .finally(() => this.#stopping.delete(stopping));
    this.#stopping.add(stopping);
    return stopping;
  }
}

function closingError(agentName: string): SkeinError {
  return unavailable(agentName, "this Skein instance is closing", "Try again once it is open again");
}
