import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import { escapeToLine, thrownText } from "../core/text.ts";
import type { OutboxRow, OutboxStore } from "./contract.ts";

/** Calls back once so much time has passed; what it gives takes that back. */
export type After = (ms: number, act: () => void) => () => void;

export interface OutboxPumpOptions {
  readonly store: OutboxStore;
  /** Hands a row to its channel. Throws when it could not; see {@link failureOf}. */
  readonly deliver: (row: OutboxRow, signal: AbortSignal) => Promise<unknown>;
  /** Whose leases they are. */
  readonly owner: string;
  /** A row has died: it will not be tried again unless somebody asks for it. */
  readonly onDead?: (row: OutboxRow) => Promise<void> | void;
  /** What went wrong beside the deliveries themselves: the store, or `onDead`. */
  readonly report?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly after?: After;
  readonly random?: () => number;
  /** Deliveries at once, each to another target. */
  readonly concurrency?: number;
  /** A delivery that takes longer is cut off. */
  readonly timeoutMs?: number;
  /** How often to look although nothing is known to be due: other processes put rows too. */
  readonly idleMs?: number;
}

const rowsPerDelivery = 4;
const leasesInTimeouts = 4;
/** Between two looks that nobody asked for: a row that somebody else has may count as due. */
const leastGapMs = 250;

/** A row that is ours until its lease ends. */
interface Held {
  readonly row: OutboxRow;
  leaseEnd: number;
  readonly lane: string;
  /** Set while it is being delivered. */
  cut: ((reason: string) => void) | null;
  isDropped: boolean;
}

/**
 * Takes rows from the outbox to their channels: at least once, one at a time for each target, in the order of their
 * creation as long as nothing fails. What becomes of a row is told by the store.
 */
export class OutboxPump {
  readonly #options: Required<Omit<OutboxPumpOptions, "onDead">> & Pick<OutboxPumpOptions, "onDead">;
  readonly #held = new Map<string, Held>();
  /** What waits, by target. The target that waited longest is first. */
  readonly #lanes = new Map<string, Held[]>();
  readonly #busy = new Map<string, Promise<void>>();
  #state: "new" | "open" | "closed" = "new";
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #stopTimer: () => void = () => undefined;

  constructor(options: OutboxPumpOptions) {
    this.#options = {
      clock: systemClock,
      after: afterInTime,
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

  /** Something may be due: looks at once. */
  wake(): void {
    if (this.#state !== "open") return;
    this.#lookAgain = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
      if (this.#lookAgain) this.wake();
    });
  }

  /** A dead or dropped row again, from the beginning. `null`: unknown. */
  async retry(outboxId: string): Promise<OutboxRow | null> {
    const row = await this.#options.store.retry(outboxId);
    this.wake();
    return row;
  }

  /** A row that shall not be delivered; a delivery under way is cut off. `null`: unknown. */
  async drop(outboxId: string): Promise<OutboxRow | null> {
    const row = await this.#options.store.drop(outboxId);
    const held = this.#held.get(outboxId);
    if (row?.state === "dropped" && held !== undefined) cutDropped(held);
    return row;
  }

  /** Takes no more; waits for deliveries under way at most so long, then cuts them off: they are due at the next start. */
  async close(graceMs = 10_000): Promise<void> {
    this.#state = "closed";
    this.#stopTimer();
    await this.#looking;
    const deliveries = Promise.all(this.#busy.values());
    const stop = this.#options.after(graceMs, () => {
      for (const held of this.#held.values()) held.cut?.("it was cut off by closing");
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
        await this.#cutOffDropped();
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
    // Rows without room wait for a delivery to end, which looks again; a store that fails is asked at leisure.
    const delay = nextAt === null ? idleMs : Math.min(idleMs, Math.max(leastGapMs, nextAt - clock.now()));
    const isFull = this.#held.size >= concurrency * rowsPerDelivery;
    this.#stopTimer = this.#options.after(isFull ? idleMs : delay, () => this.wake());
  }

  /** Others drop rows too: in the store alone. */
  async #cutOffDropped(): Promise<void> {
    for (const held of [...this.#held.values()]) {
      const row = await this.#options.store.get(held.row.outboxId);
      if (row?.state === "dropped" && !held.isDropped) cutDropped(held);
    }
  }

  #hold(row: OutboxRow, leaseEnd: number): void {
    const known = this.#held.get(row.outboxId);
    if (known !== undefined) {
      known.leaseEnd = leaseEnd;
      if (known.cut === null) known.isDropped = false;
      return;
    }
    const held: Held = { row, leaseEnd, lane: laneOf(row), cut: null, isDropped: false };
    this.#held.set(row.outboxId, held);
    const lane = [...(this.#lanes.get(held.lane) ?? []), held];
    this.#lanes.set(
      held.lane,
      lane.toSorted((a, b) => a.row.createdAt - b.row.createdAt),
    );
  }

  /** Begins as many deliveries as may be. */
  #fill(): void {
    for (const [lane, waiting] of [...this.#lanes]) {
      if (this.#busy.size >= this.#options.concurrency || this.#state !== "open") return;
      if (this.#busy.has(lane) || this.#comesAgain(waiting[0])) continue;
      const held = waiting.shift();
      this.#lanes.delete(lane);
      if (waiting.length > 0) this.#lanes.set(lane, waiting);
      if (held === undefined) continue;
      const delivery = this.#isOurs(held) ? this.#deliver(held) : Promise.resolve();
      const ended = delivery.then(() => {
        this.#held.delete(held.row.outboxId);
        this.#busy.delete(lane);
        this.#fill();
        this.wake();
      });
      this.#busy.set(lane, ended);
    }
  }

  /** A lease that could end under the delivery is left to end: the row comes again, and those behind it wait for it. */
  #comesAgain(held: Held | undefined): boolean {
    if (held === undefined || held.isDropped || this.#isOurs(held)) return false;
    return this.#options.clock.now() <= held.leaseEnd + this.#options.idleMs;
  }

  #isOurs({ isDropped, leaseEnd }: Held): boolean {
    return !isDropped && leaseEnd - this.#options.clock.now() >= this.#options.timeoutMs;
  }

  async #deliver(held: Held): Promise<void> {
    const { deliver, after, timeoutMs, store, owner, report } = this.#options;
    const controller = new AbortController();
    const cut = new Promise<never>((_, reject) => {
      held.cut = (reason) => {
        reject(new Error(reason));
        controller.abort(new Error(reason));
      };
    });
    let hung = false;
    const stop = after(timeoutMs, () => {
      hung = true;
      held.cut?.(`there was no answer within ${timeoutMs / 1000} s`);
    });
    try {
      const delivery = (async () => deliver(held.row, controller.signal))();
      const receipt = await Promise.race([delivery, cut]).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      stop();
      held.cut = null;
      if (held.isDropped) return;
      if ("error" in receipt) await this.#failed(held.row, failureOf(receipt.error));
      else await store.delivered(held.row.outboxId, owner, receipt.value ?? null);
    } catch (error) {
      report(error);
    }
    if (hung) this.#leave(held.lane);
  }

  async #failed(row: OutboxRow, failure: Failure): Promise<void> {
    const { store, owner, clock, random, onDead } = this.#options;
    const isClosing = this.#state === "closed" && !failure.permanent;
    const next = isClosing ? { at: clock.now() } : nextTry(row, failure, clock.now(), random);
    await store.failed(row.outboxId, owner, failure.text, next);
    if (next !== "dead") return;
    const attempts = row.attempts + 1;
    const endedAt = clock.now();
    await onDead?.({ ...row, state: "dead", attempts, endedAt, lastError: failure.text });
  }

  /** Behind a row that hung the next would hang too: they are left until their leases end, and hold up nobody. */
  #leave(lane: string): void {
    for (const { row } of this.#lanes.get(lane) ?? []) this.#held.delete(row.outboxId);
    this.#lanes.delete(lane);
  }
}

function laneOf({ target }: OutboxRow): string {
  const { channel, to = null, accountId = null, threadId = null } = target;
  return JSON.stringify([channel, to, accountId, threadId]);
}

/** Does not keep the process alive. */
const afterInTime: After = (ms, act) => {
  const timer = setTimeout(act, ms);
  timer.unref();
  return () => clearTimeout(timer);
};

function cutDropped(held: Held): void {
  held.isDropped = true;
  held.cut?.("it was dropped");
}

/** When a message that a channel did not take is tried again. */

const firstDelayMs = 1000;
export const longestDelayMs = 5 * 60_000;
export const giveUpAfterMs = 24 * 3_600_000;
/** However old a row is: one that waited for a process that was off, or was asked for again, has its chances too. */
export const leastTries = 10;

const longestError = 500;

/** A failed try: what is known of it. */
interface Failure {
  readonly text: string;
  /** Trying again would give the same. */
  readonly permanent: boolean;
  /** How long the other side asked us to wait; `null`: it did not. */
  readonly retryAfterMs: number | null;
}

/** What a thrown value says about a delivery. It may carry `permanent` and `retryAfterMs`. */
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

/** When to try again: one second at first, twice as long each time, five minutes at the most, with full jitter. */
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
  const isOver = at > row.createdAt + giveUpAfterMs && row.attempts + 1 >= leastTries;
  return isOver ? "dead" : { at };
}
