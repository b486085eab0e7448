import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import { escapeToLine, thrownText } from "../core/text.ts";
import type { OutboxRow, OutboxStore } from "./contract.ts";

/** Calls `act` after a delay. Returns a function that cancels it. */
export type After = (ms: number, act: () => void) => () => void;

export interface OutboxPumpOptions {
  readonly store: OutboxStore;
  /** Sends a row to its channel. Throws on failure. See {@link failureOf}. */
  readonly deliver: (row: OutboxRow, signal: AbortSignal) => Promise<unknown>;
  /** The owner ID under which rows are leased. */
  readonly owner: string;
  /** Receives errors from the store, but not from deliveries. */
  readonly report?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly after?: After;
  readonly random?: () => number;
  /** The maximum number of concurrent deliveries, each to a different target. */
  readonly concurrency?: number;
  /** A delivery that takes longer than this is aborted. */
  readonly timeoutMs?: number;
  /** How often to check for rows added by other processes. */
  readonly idleMs?: number;
}

const rowsPerDelivery = 4;
const leasesInTimeouts = 4;
/**
 * The shortest pause between checks. Without it, a row that another process is delivering could appear to be due at
 * every check.
 */
const leastGapMs = 250;

/** A row leased by this process. */
interface LeasedRow {
  readonly row: OutboxRow;
  leaseEnd: number;
  readonly lane: string;
  /** Aborts the delivery in progress, or `null` if there is none. */
  abort: ((reason: string) => void) | null;
  isDropped: boolean;
  /** The same row, if it was leased again before its delivery had ended. */
  again: OutboxRow | null;
}

/** Delivers outbox rows at least once, one at a time per target, in creation order unless a delivery fails. */
export class OutboxPump {
  readonly #options: Required<OutboxPumpOptions>;
  readonly #held = new Map<string, LeasedRow>();
  /** Waiting rows by target. The target that has waited longest comes first. */
  readonly #lanes = new Map<string, LeasedRow[]>();
  readonly #busy = new Map<string, Promise<void>>();
  #state: "new" | "open" | "closed" = "new";
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #stopTimer: () => void = () => undefined;

  constructor(options: OutboxPumpOptions) {
    this.#options = {
      clock: systemClock,
      after: callAfter,
      random: Math.random,
      report: () => undefined,
      concurrency: 8,
      timeoutMs: 30_000,
      idleMs: 30_000,
      ...options,
    };
  }

  start(): void {
    if (this.#state === "new") this.#state = "open";
    this.wake();
  }

  /** Checks for due rows. */
  wake(): void {
    if (this.#state !== "open") return;
    this.#lookAgain = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
      if (this.#lookAgain) this.wake();
    });
  }

  /** Requeues a dead or dropped row and resets its attempts. Returns `null` if there is no such row. */
  async retry(outboxId: string): Promise<OutboxRow | null> {
    const row = await this.#options.store.retry(outboxId);
    this.wake();
    return row;
  }

  /** Cancels a row and aborts its delivery. Returns `null` if there is no such row. */
  async drop(outboxId: string): Promise<OutboxRow | null> {
    const row = await this.#options.store.drop(outboxId);
    const held = this.#held.get(outboxId);
    if (row?.state === "dropped" && held !== undefined) abortDropped(held);
    return row;
  }

  /**
   * Waits up to `graceMs` for deliveries in progress, then aborts them. Aborted rows are due again at the next start.
   */
  async close(graceMs = 10_000): Promise<void> {
    this.#state = "closed";
    this.#stopTimer();
    await this.#looking;
    const deliveries = Promise.all(this.#busy.values());
    const stop = this.#options.after(graceMs, () => {
      for (const held of this.#held.values()) held.abort?.("Skein was closed during delivery");
    });
    await deliveries;
    stop();
    this.#lanes.clear();
    this.#held.clear();
  }

  async #look(): Promise<void> {
    this.#stopTimer();
    const { store, owner, clock, report, concurrency, timeoutMs, idleMs } = this.#options;
    let nextAt: number | null = null;
    try {
      while (this.#lookAgain && this.#state === "open") {
        this.#lookAgain = false;
        await this.#abortDropped();
        const room = concurrency * rowsPerDelivery - this.#held.size;
        const leaseMs = timeoutMs * leasesInTimeouts;
        const leaseEnd = clock.now() + leaseMs;
        const rows = room > 0 ? await store.due(owner, room, leaseMs) : [];
        for (const row of rows) this.#hold(row, leaseEnd);
        this.#fill();
      }
      nextAt = await store.nextAt();
    } catch (error) {
      report(error);
    }
    if (this.#state !== "open") return;
    // If all slots are busy, the end of a delivery triggers the next check.
    const delay = nextAt === null ? idleMs : Math.min(idleMs, Math.max(leastGapMs, nextAt - clock.now()));
    const isFull = this.#held.size >= concurrency * rowsPerDelivery;
    this.#stopTimer = this.#options.after(isFull ? idleMs : delay, () => this.wake());
  }

  /** Aborts deliveries of rows that another process has dropped in the store. */
  async #abortDropped(): Promise<void> {
    for (const held of [...this.#held.values()]) {
      const row = await this.#options.store.get(held.row.outboxId);
      if (row?.state === "dropped" && !held.isDropped) abortDropped(held);
    }
  }

  #hold(row: OutboxRow, leaseEnd: number): void {
    const known = this.#held.get(row.outboxId);
    if (known !== undefined) {
      known.leaseEnd = leaseEnd;
      if (this.#lanes.get(known.lane)?.includes(known) === true) known.isDropped = false;
      else if (known.isDropped || row.attempts !== known.row.attempts) known.again = row;
      return;
    }
    const held: LeasedRow = {
      row,
      leaseEnd,
      lane: laneOf(row),
      abort: null,
      isDropped: false,
      again: null,
    };
    this.#held.set(row.outboxId, held);
    const lane = [...(this.#lanes.get(held.lane) ?? []), held];
    this.#lanes.set(
      held.lane,
      lane.toSorted((a, b) => a.row.createdAt - b.row.createdAt),
    );
  }

  /** Starts as many deliveries as the limit allows. */
  #fill(): void {
    for (const [lane, waiting] of [...this.#lanes]) {
      if (this.#busy.size >= this.#options.concurrency || this.#state !== "open") return;
      const [first, ...rest] = waiting;
      if (first === undefined || this.#busy.has(lane)) continue;
      this.#lanes.delete(lane);
      const isLate = !first.isDropped && this.#isLeaseEnding(first);
      const taken = isLate ? waiting : [first];
      if (!isLate && rest.length > 0) this.#lanes.set(lane, rest);
      const work = isLate
        ? this.#giveBack(waiting)
        : first.isDropped
          ? Promise.resolve()
          : this.#deliver(first);
      const ended = work.then(() => {
        this.#busy.delete(lane);
        for (const held of taken) {
          this.#held.delete(held.row.outboxId);
          if (held.again !== null) this.#hold(held.again, held.leaseEnd);
        }
        this.#fill();
        this.wake();
      });
      this.#busy.set(lane, ended);
    }
  }

  /** Whether the lease could expire during the delivery, for example because the process was suspended. */
  #isLeaseEnding({ leaseEnd }: LeasedRow): boolean {
    return leaseEnd - this.#options.clock.now() < this.#options.timeoutMs;
  }

  /** Makes rows due again immediately. All of a target's rows are released together so that they stay in order. */
  async #giveBack(rows: readonly LeasedRow[]): Promise<void> {
    const { store, owner, report } = this.#options;
    const ids = rows.map(({ row }) => row.outboxId);
    await store.release(ids, owner).catch(report);
  }

  async #deliver(held: LeasedRow): Promise<void> {
    const { deliver, after, timeoutMs, store, owner, report } = this.#options;
    const controller = new AbortController();
    const aborted = new Promise<never>((_, reject) => {
      held.abort = (reason) => {
        reject(new Error(reason));
        controller.abort(new Error(reason));
      };
    });
    let hasTimedOut = false;
    const stop = after(timeoutMs, () => {
      hasTimedOut = true;
      held.abort?.(`there was no response within ${timeoutMs / 1000} s`);
    });
    try {
      const delivery = (async () => deliver(held.row, controller.signal))();
      const receipt = await Promise.race([delivery, aborted]).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      stop();
      held.abort = null;
      if (held.isDropped) return;
      if ("error" in receipt) await this.#recordFailure(held.row, failureOf(receipt.error));
      else await store.delivered(held.row.outboxId, owner, receipt.value ?? null);
    } catch (error) {
      report(error);
    }
    if (hasTimedOut) this.#giveUpLane(held.lane);
  }

  async #recordFailure(row: OutboxRow, failure: Failure): Promise<void> {
    const { store, owner, clock, random } = this.#options;
    const isClosing = this.#state === "closed" && !failure.permanent;
    const next = isClosing ? { at: clock.now() } : nextTry(row, failure, clock.now(), random);
    await store.failed(row.outboxId, owner, failure.text, next);
  }

  /**
   * Stops delivering to a target after a timeout. The target's next rows would time out too, so they wait until their
   * leases expire.
   */
  #giveUpLane(lane: string): void {
    for (const { row } of this.#lanes.get(lane) ?? []) this.#held.delete(row.outboxId);
    this.#lanes.delete(lane);
  }
}

function laneOf({ target }: OutboxRow): string {
  const { channel, to = null, accountId = null, threadId = null } = target;
  return JSON.stringify([channel, to, accountId, threadId]);
}

/** Uses a timer that does not keep the process alive. */
const callAfter: After = (ms, act) => {
  const timer = setTimeout(act, ms);
  timer.unref();
  return () => clearTimeout(timer);
};

function abortDropped(held: LeasedRow): void {
  held.isDropped = true;
  held.abort?.("it was dropped");
}

const firstDelayMs = 1000;
export const longestDelayMs = 5 * 60_000;
export const giveUpAfterMs = 24 * 3_600_000;
/**
 * The minimum number of attempts regardless of age, for rows that were retried or that waited while the process was
 * stopped.
 */
export const leastTries = 10;

const longestError = 500;

/** A failed delivery. */
interface Failure {
  readonly text: string;
  /** `true` if retrying cannot succeed. */
  readonly permanent: boolean;
  /** The delay that the channel requested, or `null` if it requested none. */
  readonly retryAfterMs: number | null;
}

/** Converts a thrown value, which can have `permanent` and `retryAfterMs`. */
export function failureOf(error: unknown): Failure {
  const fields: { permanent?: unknown; retryAfterMs?: unknown } =
    typeof error === "object" && error !== null ? error : {};
  const { permanent, retryAfterMs } = fields;
  const asked = typeof retryAfterMs === "number" && Number.isFinite(retryAfterMs) && retryAfterMs > 0;
  return {
    text: escapeToLine(thrownText(error).slice(0, longestError)),
    permanent: permanent === true,
    retryAfterMs: asked ? retryAfterMs : null,
  };
}

/** Returns when to retry: exponential backoff from one second to five minutes, with full jitter. */
export function nextTry(
  row: Pick<OutboxRow, "attempts" | "createdAt">,
  failure: Failure,
  now: number,
  random: () => number,
): { readonly at: number } | "dead" {
  if (failure.permanent) return "dead";
  const ceiling = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(row.attempts, 30));
  const asked = Math.min(failure.retryAfterMs ?? 0, giveUpAfterMs);
  const at = now + Math.max(Math.round(random() * ceiling), asked);
  const isExpired = at > row.createdAt + giveUpAfterMs && row.attempts + 1 >= leastTries;
  return isExpired ? "dead" : { at };
}
