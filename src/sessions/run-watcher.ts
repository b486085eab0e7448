import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import type { EventBus, SkeinEvent } from "../core/events.ts";
import type { Run, RunStore } from "../runs/contract.ts";
import { openStates } from "../runs/states.ts";
import { noSuchRun } from "./turn-handle.ts";

const pollMs = 250;
/** Looks of one poll at the most, however many wait. */
const mostLooks = 64;
/** Looks of a poll where no other process has written: for what ends without a word. */
const idleLooks = 8;

type Watched = Pick<RunStore, "get" | "approval" | "list"> & {
  /** Another number once another process has written; left out: it may have at any time. */
  version?(): number;
};

interface Wait {
  /** Which events decide it: {@link signsOf}. */
  readonly sign: string;
  look(): void;
  /** Nobody can look any more after this. */
  close(reason: unknown): void;
}

/**
 * Tells when something of a run is decided: by our own events at once, and by looking, for what other processes do. However many
 * wait, there is one subscription and one timer, and each poll has a bounded number of looks.
 */
export class RunWatcher {
  readonly #runs: Watched;
  readonly #bus: EventBus;
  readonly #clock: Clock;
  readonly #closed: AbortSignal | null;
  /** In the order in which they are looked at. */
  readonly #waits = new Set<Wait>();
  readonly #bySign = new Map<string, Set<Wait>>();
  #version: number | null = null;
  /** How many are still to be looked at since the last change by others. */
  #owed = 0;
  #stop: (() => void) | null = null;

  /** `closed` comes before the store is closed; who still waits then is given its reason. */
  constructor(runs: Watched, bus: EventBus, clock: Clock = systemClock, closed: AbortSignal | null = null) {
    this.#runs = runs;
    this.#bus = bus;
    this.#clock = clock;
    this.#closed = closed;
  }

  /** How many wait, for tests and metrics. */
  get size(): number {
    return this.#waits.size;
  }

  /** The run, once it has ended; `not_found` where there is none. Keeps the process alive until then. */
  untilEnded(runId: string, signal?: AbortSignal): Promise<Run> {
    const look = async () => {
      const run = await this.#runs.get(runId);
      // Never there, or purged with its session while somebody waited.
      if (run === null) throw noSuchRun(runId);
      return run.outcome === null ? null : run;
    };
    return this.#until(look, `run.ended ${runId}`, signal);
  }

  /** What is looked for in a session, once it is there: whenever the session is changed, here or elsewhere. */
  untilUpdated<T>(sessionId: string, look: () => Promise<T | null>, signal?: AbortSignal): Promise<T> {
    return this.#until(look, `session.updated ${sessionId}`, signal);
  }

  /** Resolves when one request and all that it set off has ended. */
  async untilSettled(rootId: string, signal?: AbortSignal): Promise<void> {
    const look = async () =>
      (await this.#runs.list({ rootId, states: openStates, limit: 1 })).length === 0 ? true : null;
    await this.#until(look, "run.ended", signal);
  }

  /** Resolves when an approval is answered or its time is over, and when the signal comes. */
  async untilApproved(approvalId: string, expiresAt: number, signal: AbortSignal): Promise<void> {
    // By looking, and not by a timer of its own: one that is longer than 24 days rings at once.
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
    const leave = this.#bus.subscribe((event) => {
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

  /** In turn, so that each is looked at by and by. */
  #poll(): void {
    if (this.#hasChanged()) this.#owed = this.#waits.size;
    const count = Math.min(mostLooks, Math.max(this.#owed, idleLooks));
    this.#owed = Math.max(0, this.#owed - count);
    for (const wait of [...this.#waits].slice(0, count)) {
      this.#waits.delete(wait);
      this.#waits.add(wait);
      wait.look();
    }
  }

  #hasChanged(): boolean {
    const { version } = this.#runs;
    if (version === undefined) return true;
    try {
      const now = version.call(this.#runs);
      const isOther = now !== this.#version;
      this.#version = now;
      return isOther;
    } catch {
      return true; // what is wrong with the store, the looks themselves tell
    }
  }
}

/** What an event decides. */
function signsOf(event: SkeinEvent): readonly string[] {
  if (event.type === "run.ended") return [`run.ended ${event.runId}`, "run.ended"];
  if (event.type === "session.updated") return [`session.updated ${event.sessionId}`];
  return event.type === "approval.resolved" ? [`approval.resolved ${event.approvalId}`] : [];
}

export interface WaitOptions {
  /** 0: how it stands now. Left out: as long as it takes. At most 24 days. */
  readonly timeoutMs?: number;
  /** Nobody waits any more. */
  readonly signal?: AbortSignal;
}

/**
 * Waits for the end of a run; `null`: it had not come when the time was over, or nobody waited any more. Nothing of the wait is
 * left behind, neither a timer nor a listener.
 */
export async function endedWithin(
  watcher: Pick<RunWatcher, "untilEnded">,
  runId: string,
  { timeoutMs, signal }: WaitOptions,
): Promise<Run | null> {
  if (timeoutMs === 0 || signal?.aborted === true) return null;
  const over = new AbortController();
  const leave = () => over.abort();
  const timer = timeoutMs === undefined ? undefined : setTimeout(leave, timeoutMs);
  signal?.addEventListener("abort", leave, { once: true });
  try {
    return await watcher.untilEnded(runId, over.signal);
  } catch (error) {
    if (error === over.signal.reason) return null;
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}
