import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import type { EventBus } from "../../core/events.ts";
import type { Run, RunState, RunStore } from "../../runs/contract.ts";
import { noSuchRun } from "./run-error.ts";

const pollMs = 250;
const open: readonly RunState[] = ["queued", "running", "waiting", "sleeping"];

type Watched = Pick<RunStore, "get" | "approval" | "list">;

/** Tells when something of a run is decided: by our own events at once, and by looking, for what other processes do. */
export class RunWatcher {
  readonly #runs: Watched;
  readonly #bus: EventBus;
  readonly #clock: Clock;
  readonly #closed: AbortSignal | null;

  /** `closed` comes before the store is closed; who still waits then is given its reason. */
  constructor(runs: Watched, bus: EventBus, clock: Clock = systemClock, closed: AbortSignal | null = null) {
    this.#runs = runs;
    this.#bus = bus;
    this.#clock = clock;
    this.#closed = closed;
  }

  /** The run, once it has ended; `not_found` where there is none. Keeps the process alive until then. */
  untilEnded(runId: string, signal?: AbortSignal): Promise<Run> {
    return this.#until(
      async () => {
        const run = await this.#runs.get(runId);
        // Never there, or purged with its session while somebody waited.
        if (run === null) throw noSuchRun(runId);
        return run.outcome === null ? null : run;
      },
      (event) => event.type === "run.ended" && event.runId === runId,
      signal,
    );
  }

  /** Resolves when one request and all that it set off has ended. */
  async untilSettled(rootId: string, signal?: AbortSignal): Promise<void> {
    await this.#until(
      async () => ((await this.#runs.list({ rootId, states: open, limit: 1 })).length === 0 ? true : null),
      ({ type }) => type === "run.ended",
      signal,
    );
  }

  /** Resolves when an approval is answered or its time is over, and when the signal comes. */
  async untilApproved(approvalId: string, expiresAt: number, signal: AbortSignal): Promise<void> {
    // By looking, and not by a timer of its own: one that is longer than 24 days rings at once.
    await this.#until(
      async () => {
        const approval = await this.#runs.approval(approvalId);
        const isOpen = approval !== null && approval.answer === null;
        return isOpen && this.#clock.now() < expiresAt ? null : true;
      },
      (event) => event.type === "approval.resolved" && event.approvalId === approvalId,
      signal,
    ).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  #until<T>(
    look: () => Promise<T | null>,
    isSign: (event: Parameters<Parameters<EventBus["subscribe"]>[0]>[0]) => boolean,
    signal?: AbortSignal,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const stop = () => {
        clearInterval(timer);
        leave();
        signal?.removeEventListener("abort", onAbort);
        this.#closed?.removeEventListener("abort", onClosed);
      };
      const tryIt = () => {
        look().then(
          (found) => {
            if (found === null) return;
            stop();
            resolve(found);
          },
          (error: unknown) => {
            stop();
            reject(error);
          },
        );
      };
      const onAbort = () => {
        stop();
        reject(signal?.reason);
      };
      const onClosed = () => {
        stop();
        look().then((found) => (found === null ? reject(this.#closed?.reason) : resolve(found)), reject);
      };
      const timer = setInterval(tryIt, pollMs);
      const leave = this.#bus.subscribe((event) => void (isSign(event) && tryIt()));
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#closed?.addEventListener("abort", onClosed, { once: true });
      if (signal?.aborted === true) onAbort();
      else tryIt();
    });
  }
}
