import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import type { SharedEvents, SkeinEvent } from "../core/events.ts";
import type { Run, RunStore } from "../runs/contract.ts";
import { openStates } from "../runs/states.ts";
import { noSuchRun } from "./turn-handle.ts";

const pollMs = 250;
/** The maximum number of checks per poll, regardless of how many waits there are. */
const maxLooks = 64;
/** The number of checks per poll if no other process has written. These checks find changes that emit no event. */
const idleLooks = 8;

type Watched = Pick<RunStore, "get" | "approval" | "list"> & {
  /** Changes when another process has written. */
  version(): number;
};

interface Wait {
  /** The event key that triggers a check. See {@link signsOf}. */
  readonly sign: string;
  look(): void;
  /** Checks one last time before the store closes. Rejects with `reason` if there is still no result. */
  close(reason: unknown): void;
}

/**
 * Waits for changes to runs. Events in this process trigger a check immediately, and polling finds changes made by
 * other processes. All waits share one subscription and one timer, and each poll makes a limited number of checks.
 */
export class RunWatcher {
  readonly #runs: Watched;
  readonly #events: SharedEvents;
  readonly #clock: Clock;
  readonly #closed: AbortSignal | null;
  /** In checking order. */
  readonly #waits = new Set<Wait>();
  readonly #bySign = new Map<string, Set<Wait>>();
  #version: number | null = null;
  /** The number of waits still to be checked since the last change by another process. */
  #owed = 0;
  #stop: (() => void) | null = null;

  /** `closed` is aborted before the store closes. Remaining waits reject with its reason. */
  constructor(
    runs: Watched,
    events: SharedEvents,
    clock: Clock = systemClock,
    closed: AbortSignal | null = null,
  ) {
    this.#runs = runs;
    this.#events = events;
    this.#clock = clock;
    this.#closed = closed;
  }

  /** The number of pending waits, for tests and metrics. */
  get size(): number {
    return this.#waits.size;
  }

  /** Resolves to the run when it has ended. Rejects with `not_found`. Keeps the process alive. */
  untilEnded(runId: string, signal?: AbortSignal): Promise<Run> {
    const look = async () => {
      const run = await this.#runs.get(runId);
      // The run has never existed, or was purged with its session during the wait.
      if (run === null) throw noSuchRun(runId);
      if (run.outcome === null) return null;
      // Callers receive the events of the run before its result, even if another process has executed it.
      await this.#events.catchUp();
      return run;
    };
    return this.#until(look, `run.ended ${runId}`, signal);
  }

  /**
   * Resolves to the first result of `look` that is not `null`. `look` is called again after every change to the
   * session.
   */
  untilUpdated<T>(sessionId: string, look: () => Promise<T | null>, signal?: AbortSignal): Promise<T> {
    return this.#until(look, `session.updated ${sessionId}`, signal);
  }

  /** Resolves when a request and everything it started have ended. */
  async untilSettled(rootId: string, signal?: AbortSignal): Promise<void> {
    const look = async () =>
      (await this.#runs.list({ rootId, states: openStates, limit: 1 })).length === 0 ? true : null;
    await this.#until(look, "run.ended", signal);
  }

  /** Resolves when an approval is answered or expires, or the signal is aborted. */
  async untilApproved(approvalId: string, expiresAt: number, signal: AbortSignal): Promise<void> {
    // Polling is used instead of a timer, because timers longer than 24 days fire immediately.
    const look = async () => {
      const approval = await this.#runs.approval(approvalId);
      const isOpen = approval !== null && approval.answer === null;
      return isOpen && this.#clock.now() < expiresAt ? null : true;
    };
    await this.#until(look, `approval.resolved ${approvalId}`, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  #until<T>(look: () => Promise<T | null>, sign: string, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settled = (settle: () => void) => {
        this.#leave(wait);
        signal?.removeEventListener("abort", onAbort);
        settle();
      };
      const onAbort = () => settled(() => reject(signal?.reason));
      const wait: Wait = {
        sign,
        look: () =>
          void look().then(
            (found) => found !== null && settled(() => resolve(found)),
            (error: unknown) => settled(() => reject(error)),
          ),
        close: (reason) =>
          settled(
            () => void look().then((found) => (found === null ? reject(reason) : resolve(found)), reject),
          ),
      };
      if (signal?.aborted === true) return onAbort();
      if (this.#closed?.aborted === true) return reject(this.#closed.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#join(wait);
      wait.look();
    });
  }

  #join(wait: Wait): void {
    if (this.#waits.size === 0) this.#start();
    this.#waits.add(wait);
    const same = this.#bySign.get(wait.sign) ?? new Set();
    this.#bySign.set(wait.sign, same.add(wait));
  }

  #leave(wait: Wait): void {
    if (!this.#waits.delete(wait)) return;
    const same = this.#bySign.get(wait.sign);
    same?.delete(wait);
    if (same?.size === 0) this.#bySign.delete(wait.sign);
    if (this.#waits.size > 0) return;
    this.#stop?.();
    this.#stop = null;
  }

  #start(): void {
    const timer = setInterval(() => this.#poll(), pollMs);
    const leave = this.#events.subscribe((event) => {
      for (const sign of signsOf(event)) for (const wait of this.#bySign.get(sign) ?? []) wait.look();
    });
    const onClosed = () => {
      for (const wait of [...this.#waits]) wait.close(this.#closed?.reason);
    };
    this.#closed?.addEventListener("abort", onClosed, { once: true });
    this.#stop = () => {
      clearInterval(timer);
      leave();
      this.#closed?.removeEventListener("abort", onClosed);
    };
  }

  /** Polls in round-robin order so that every wait is checked eventually. */
  #poll(): void {
    if (this.#hasChanged()) this.#owed = this.#waits.size;
    const count = Math.min(maxLooks, Math.max(this.#owed, idleLooks));
    this.#owed = Math.max(0, this.#owed - count);
    for (const wait of [...this.#waits].slice(0, count)) {
      this.#waits.delete(wait);
      this.#waits.add(wait);
      wait.look();
    }
  }

  #hasChanged(): boolean {
    try {
      const now = this.#runs.version();
      const isOther = now !== this.#version;
      this.#version = now;
      return isOther;
    } catch {
      return true; // Ignored here, because the checks themselves report problems with the store.
    }
  }
}

/** Returns the keys that an event matches. */
function signsOf(event: SkeinEvent): readonly string[] {
  if (event.type === "run.ended") return [`run.ended ${event.runId}`, "run.ended"];
  if (event.type === "session.updated") return [`session.updated ${event.sessionId}`];
  return event.type === "approval.resolved" ? [`approval.resolved ${event.approvalId}`] : [];
}

export interface WaitOptions {
  /**
   * The timeout in milliseconds, at most 24 days. 0 returns the current state immediately. If absent, there is no
   * timeout.
   */
  readonly timeoutMs?: number;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
}

/**
 * Waits for a run to end. Returns `null` if the timeout expires or the signal is aborted first. Leaves no timer or
 * listener behind.
 */
export async function waitForRun(
  watcher: Pick<RunWatcher, "untilEnded">,
  runId: string,
  { timeoutMs, signal }: WaitOptions,
): Promise<Run | null> {
  if (timeoutMs === 0 || signal?.aborted === true) return null;
  const stopped = new AbortController();
  const leave = () => stopped.abort();
  const timer = timeoutMs === undefined ? undefined : setTimeout(leave, timeoutMs);
  signal?.addEventListener("abort", leave, { once: true });
  try {
    return await watcher.untilEnded(runId, stopped.signal);
  } catch (error) {
    if (error === stopped.signal.reason) return null;
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}
