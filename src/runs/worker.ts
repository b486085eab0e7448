import type { Clock } from "../core/clock.ts";
import { TimeLeft, within } from "../core/concurrency.ts";
import { isOutOfDescriptors, isSharedFault, SkeinError } from "../core/errors.ts";
import type { Claim, HeldRun, Run, RunStore } from "./contract.ts";

/** Why a run's signal was aborted. */
export class RunStopped extends Error {
  override readonly name = "RunStopped";
  /**
   * `lost` means that this process no longer owns the run. `closing` means that this process is stopping and another
   * one will continue the run.
   */
  readonly why: "aborted" | "timeout" | "lost" | "closing";

  constructor(why: RunStopped["why"]) {
    super(`The run was stopped: ${why}.`);
    this.why = why;
  }
}

/**
 * Thrown when a disk or database error, the `cause`, prevents a run from starting, continuing or ending. The run is put
 * back in the queue and retried.
 */
export class RunDeferred extends Error {
  override readonly name = "RunDeferred";

  constructor(cause: unknown) {
    super("The run is waiting until its session can be written to.", { cause });
  }
}

export interface WorkerOptions {
  readonly runs: RunStore;
  /** The owner ID under which this worker claims runs. */
  readonly owner: string;
  readonly clock: Clock;
  readonly leaseMs: number;
  /**
   * `true` if another machine could claim a run whose lease this process fails to renew in time. The worker then stops
   * such a run without knowing whether it has been claimed.
   */
  readonly mustRenew?: boolean;
  /** How long aborted runs have to clean up when the worker closes. */
  readonly unwindMs?: number;
  /** How often to check for changes made by other processes. */
  readonly pollMs?: number;
  /** Executes a run and records how it ended. If it throws, the run is treated as lost. */
  execute(claim: Claim, signal: AbortSignal): Promise<void>;
  report(error: unknown): void;
}

interface ActiveRun {
  readonly held: HeldRun;
  /** When the lease was last renewed, on this process's monotonic clock. */
  renewedAt: number;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

interface ResumingRun {
  readonly held: HeldRun;
  readonly signal: AbortSignal;
  /** Whether a fault has delayed the run. Only its first fault is reported. */
  isDelayed: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** The longest delay that timers support. */
const longestDelay = 2 ** 31 - 1;
const longestSweep = 5000;
const beatsPerLease = 4;
const shortestPauseMs = 250;
const longestPauseMs = 5000;
const everySession = "*";
const usualUnwindMs = 10_000;

/**
 * Claims runs while slots are free, renews their leases, stops them on request or at their deadline, and recovers runs
 * lost by other processes. Each process has one worker.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #active = new Map<string, ActiveRun>();
  readonly #resuming: ResumingRun[] = [];
  #state: "new" | "working" | "closing" = "new";
  #isLooking = false;
  #beating: Promise<void> | null = null;
  /** The wall-clock time of the last renewal. */
  #renewedAt = 0;
  #looking: Promise<void> = Promise.resolve();
  #sweeping: Promise<void> = Promise.resolve();
  #mustLookAgain = false;
  #closing: Promise<void> | null = null;
  #timeLeft: TimeLeft | null = null;
  #sweepTimer: NodeJS.Timeout | undefined;
  #pollTimer: NodeJS.Timeout | undefined;
  #beatTimer: NodeJS.Timeout | undefined;
  /**
   * Sessions for which claims are paused: the uids of sessions whose files are locked or cannot be written now, or
   * `everySession` if no run can start on this machine.
   */
  readonly #pauses = new Map<string, { readonly over: Promise<void>; end(): void }>();
  /** The duration of the next pause. */
  readonly #pauseMs = new Map<string, number>();

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  get activeCount(): number {
    return this.#active.size;
  }

  start(): void {
    if (this.#state !== "new") return;
    this.#state = "working";
    const { leaseMs, pollMs = 250 } = this.#options;
    this.#beatTimer = setInterval(
      () => void this.#beat(),
      Math.max(1, Math.floor(leaseMs / beatsPerLease)),
    ).unref();
    this.#pollTimer = setInterval(() => void this.#poll(), pollMs).unref();
    this.#sweeping = this.#sweep();
  }

  /** Checks for work. */
  wake(): void {
    if (this.#state !== "working") return;
    this.#mustLookAgain = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    // Deferred so that simultaneous changes are handled in one pass.
    this.#looking = immediately().then(() => this.#look());
  }

  /**
   * Resolves when a waiting run has a slot again. Waiting runs get slots before new claims. While the worker closes,
   * the run is aborted before the promise rejects, so that the caller does not attribute the rejection to the run it
   * was waiting for.
   */
  resume(held: HeldRun, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.isClosing) this.#stopOne(held);
      if (signal.aborted) return reject(signal.reason);
      this.#resuming.push({ held, signal, isDelayed: false, resolve, reject });
      signal.addEventListener("abort", () => this.wake(), { once: true });
      return this.wake();
    });
  }

  /** Whether the worker is shutting down. If so, runs should stop at their next durable state. */
  get isClosing(): boolean {
    return this.#state === "closing";
  }

  /**
   * Stops claiming, gives runs `graceMs` to reach a durable state, aborts the rest, and releases all of them. A second
   * call can only shorten the grace period.
   */
  close(graceMs = 0): Promise<void> {
    this.#timeLeft?.shorten(graceMs);
    this.#timeLeft ??= new TimeLeft(graceMs);
    this.#closing ??= this.#close(this.#timeLeft, graceMs > 0);
    return this.#closing;
  }

  async #close(left: TimeLeft, isPatient: boolean): Promise<void> {
    this.#state = "closing";
    for (const timer of [this.#sweepTimer, this.#pollTimer]) clearTimeout(timer);
    for (const { end } of [...this.#pauses.values()]) end();
    this.#rejectResuming();
    await Promise.all([this.#looking, this.#sweeping]);
    this.#rejectResuming(); // `#resumeFirst` might have put runs back.
    await left.wait(isPatient ? this.#endsUnlessWaiting() : Promise.resolve());
    for (const { stop } of this.#active.values()) stop.abort(new RunStopped("closing"));
    await within(this.#options.unwindMs ?? usualUnwindMs, this.#ends());
    clearInterval(this.#beatTimer);
  }

  #ends(): Promise<unknown> {
    return Promise.allSettled([...this.#active.values()].map(({ done }) => done));
  }

  /**
   * Waits until all runs have ended. Waiting runs are aborted immediately, because they are already in a durable state.
   */
  async #endsUnlessWaiting(): Promise<void> {
    for (const { held, stop } of this.#active.values())
      if ((await this.#options.runs.get(held.runId))?.state === "waiting")
        stop.abort(new RunStopped("closing"));
    await this.#ends();
  }

  async #look(): Promise<void> {
    try {
      while (this.#mustLookAgain && this.#state === "working") {
        this.#mustLookAgain = false;
        await this.#stopRequested();
        await this.#resumeFirst();
        await this.#claimAll();
      }
    } catch (error) {
      this.#options.report(error);
    } finally {
      this.#isLooking = false;
    }
    if (this.#mustLookAgain) this.wake();
  }

  async #claimAll(): Promise<void> {
    const { runs, owner } = this.#options;
    const onLocked = (uid: string) => void this.#pauseClaims(uid);
    while (this.#state === "working" && !this.#pauses.has(everySession)) {
      const before = performance.now();
      const claim = await runs.claim(owner, new Set(this.#pauses.keys()), onLocked);
      if (claim === null) return;
      // The worker began to close during the claim, so the run would be aborted immediately.
      if (this.isClosing) return runs.release(claim.held);
      this.#begin(claim, before);
    }
  }

  #begin(claim: Claim, renewedAt: number): void {
    const { run, held } = claim;
    const { runId } = run;
    // This process lost an earlier claim on this run while it was stalled. Work under that claim must stop.
    this.#active.get(runId)?.stop.abort(new RunStopped("lost"));
    const stop = new AbortController();
    const forget = this.#deadline(run, stop);
    const done = this.#execute(claim, stop.signal).finally(() => {
      forget();
      if (this.#active.get(runId)?.stop === stop) this.#active.delete(runId);
      this.wake();
    });
    this.#active.set(runId, { held, renewedAt, stop, done });
  }

  async #execute(claim: Claim, signal: AbortSignal): Promise<void> {
    const { execute, report, runs } = this.#options;
    try {
      await execute(claim, signal);
      for (const paused of [everySession, claim.run.session.uid]) this.#pauseMs.delete(paused);
    } catch (error) {
      if (error instanceof RunDeferred || isOutOfDescriptors(error)) {
        report(error instanceof RunDeferred ? error.cause : error);
        return this.#putBack(claim.held, isSharedFault(error) ? everySession : claim.run.session.uid);
      }
      report(error);
      await runs.lose(claim.held).catch(report);
    }
  }

  /** Requeues the run. On a full disk, even that can fail. Until it succeeds, the run keeps its lease. */
  async #putBack(held: HeldRun, paused: string): Promise<void> {
    for (;;) {
      const over = this.#pauseClaims(paused);
      try {
        return await this.#options.runs.release(held, "deferred");
      } catch (error) {
        if (this.isClosing || isFenced(error)) return;
        await over;
      }
    }
  }

  /**
   * Prevents a run from being claimed again immediately. Resolves when claims resume for the session, or for all
   * sessions.
   */
  #pauseClaims(paused: string): Promise<void> {
    const known = this.#pauses.get(paused);
    if (known !== undefined) return known.over;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const end = () => {
      clearTimeout(timer);
      this.#pauses.delete(paused);
      resolve();
      this.wake();
    };
    const pauseMs = this.#pauseMs.get(paused) ?? shortestPauseMs;
    const timer = setTimeout(end, pauseMs).unref();
    this.#pauses.set(paused, { over, end });
    this.#pauseMs.set(paused, Math.min(longestPauseMs, 2 * pauseMs));
    return over;
  }

  /** Schedules a stop at the run's deadline. Returns a function that cancels it. */
  #deadline({ deadline }: Run, stop: AbortController): () => void {
    if (deadline === null) return () => undefined;
    let timer: NodeJS.Timeout | undefined;
    const wait = () => {
      const left = deadline - this.#options.clock.now();
      if (left <= 0) stop.abort(new RunStopped("timeout"));
      else timer = setTimeout(wait, Math.min(longestDelay, left)).unref();
    };
    wait();
    return () => clearTimeout(timer);
  }

  /** Stops runs that another process has ended or asked to stop. */
  async #stopRequested(): Promise<void> {
    if (this.#active.size === 0) return;
    const { runs, owner } = this.#options;
    const active = [...this.#active.values()].filter(({ stop }) => !stop.signal.aborted);
    const { lost, aborted } = await runs.stopRequests(
      owner,
      active.map(({ held }) => held),
    );
    for (const { held, stop } of active) {
      if (lost.includes(held.runId)) stop.abort(new RunStopped("lost"));
      if (aborted.includes(held.runId)) stop.abort(new RunStopped("aborted"));
    }
  }

  /**
   * Resumes waiting runs in call order. Runs without a free slot stay in the list. So do runs whose row cannot be
   * changed at the moment, because a temporary fault must not become the result of the wait.
   */
  async #resumeFirst(): Promise<void> {
    for (const each of this.#resuming.splice(0)) {
      try {
        if (each.signal.aborted) throw each.signal.reason;
        if (await this.#options.runs.resume(each.held)) each.resolve();
        else this.#resuming.push(each);
      } catch (error) {
        if (each.signal.aborted || !isTemporary(error)) each.reject(error);
        else {
          if (!each.isDelayed) this.#options.report(error);
          each.isDelayed = true;
          this.#resuming.push(each);
        }
      }
    }
  }

  #rejectResuming(): void {
    for (const each of this.#resuming.splice(0)) {
      this.#stopOne(each.held);
      each.reject(new RunStopped("closing"));
    }
  }

  #stopOne({ runId, fence }: HeldRun): void {
    const active = this.#active.get(runId);
    if (active?.held.fence === fence) active.stop.abort(new RunStopped("closing"));
  }

  async #poll(): Promise<void> {
    try {
      if (this.#resuming.length > 0 || (await this.#options.runs.changedByOthers())) this.wake();
    } catch (error) {
      this.#options.report(error);
    }
  }

  /** Renews the leases of this process's runs. */
  #beat(): Promise<void> {
    if (this.#options.mustRenew === true) this.#stopUnrenewed();
    if (this.#active.size === 0) return Promise.resolve();
    this.#beating ??= this.#renew().finally(() => {
      this.#beating = null;
    });
    return this.#beating;
  }

  async #renew(): Promise<void> {
    const began = performance.now();
    this.#renewedAt = this.#options.clock.now();
    const held = [...this.#active.values()].map(({ held: each }) => each);
    try {
      const lost = new Set(await this.#options.runs.renew(this.#options.owner, held));
      for (const { runId, fence } of held) {
        const active = this.#active.get(runId);
        // This process might have reclaimed the run under a new fence.
        if (active?.held.fence !== fence) continue;
        if (lost.has(runId)) active.stop.abort(new RunStopped("lost"));
        else active.renewedAt = began;
      }
    } catch (error) {
      this.#options.report(error);
    }
  }

  #stopUnrenewed(): void {
    const expired = performance.now() - this.#options.leaseMs;
    for (const { renewedAt, stop } of this.#active.values())
      if (renewedAt < expired) stop.abort(new RunStopped("lost"));
  }

  async #sweep(): Promise<void> {
    const { runs, clock, leaseMs, report } = this.#options;
    let next = longestSweep;
    // If the machine was suspended, this process's own leases might have expired too.
    if (clock.now() - this.#renewedAt > leaseMs / 2) await this.#beat();
    try {
      const { nextAt } = await runs.sweep();
      if (nextAt !== null) next = Math.min(longestSweep, Math.max(20, nextAt - clock.now()));
    } catch (error) {
      report(error);
    }
    if (this.#state !== "working") return;
    this.wake();
    this.#sweepTimer = setTimeout(() => {
      this.#sweeping = this.#sweep();
    }, next).unref();
  }
}

function isTemporary(error: unknown): boolean {
  return isSharedFault(error) || (error instanceof SkeinError && error.code === "locked");
}

/** Whether the error means that another process now owns the run. */
export function isFenced(error: unknown): boolean {
  return error instanceof SkeinError && error.code === "fenced";
}

function immediately(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
