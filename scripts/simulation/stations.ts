/** A small discrete-event simulation: a timeline, and stations with one queue in front of several servers. */

type Act = () => void;

/** Runs acts in the order of their times. Acts with the same time run in the order in which they were scheduled. */
export class Timeline {
  readonly #heap: { readonly at: number; readonly order: number; readonly act: Act }[] = [];
  #order = 0;
  #now = 0;

  /** In milliseconds since the start. */
  get now(): number {
    return this.#now;
  }

  after(delayMs: number, act: Act): void {
    const heap = this.#heap;
    const item = { at: this.#now + delayMs, order: this.#order++, act };
    let place = heap.length;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, item)) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = item;
  }

  /** Runs until nothing is scheduled before `endMs`. */
  run(endMs = Number.POSITIVE_INFINITY): void {
    for (let next = this.#heap[0]; next !== undefined && next.at <= endMs; next = this.#heap[0]) {
      this.#removeFirst();
      this.#now = next.at;
      next.act();
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      const left = 2 * place + 1;
      const [one, other] = [heap[left], heap[left + 1]];
      if (one === undefined) break;
      const isOther = other !== undefined && isBefore(other, one);
      const smallest = isOther ? other : one;
      if (isBefore(last, smallest)) break;
      heap[place] = smallest;
      place = isOther ? left + 1 : left;
    }
    heap[place] = last;
  }
}

interface Item {
  readonly at: number;
  readonly order: number;
}

function isBefore(one: Item, other: Item): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at;
}

/** Several servers with one queue. Customers are served in the order of their arrival. */
export class Station {
  readonly name: string;
  readonly servers: number;
  readonly waitsMs: number[] = [];
  readonly #timeline: Timeline;
  readonly #periodMs: number;
  readonly #busyMs: number[] = [];
  readonly #queue: { readonly since: number; readonly start: Act }[] = [];
  #head = 0;
  #busy = 0;

  /** Utilization is counted separately for each period. */
  constructor(timeline: Timeline, name: string, servers: number, periodMs = Number.POSITIVE_INFINITY) {
    this.#timeline = timeline;
    this.name = name;
    this.servers = servers;
    this.#periodMs = periodMs;
  }

  /** Calls `start` as soon as a server is free. The server stays occupied until `release`. */
  acquire(start: (release: Act) => void): void {
    const since = this.#timeline.now;
    const begin = () => {
      this.#busy += 1;
      const startedAt = this.#timeline.now;
      this.waitsMs.push(startedAt - since);
      start(() => this.#release(startedAt));
    };
    if (this.#busy < this.servers) begin();
    else this.#queue.push({ since, start: begin });
  }

  /** Occupies a server for this long, then continues. */
  serve(serviceMs: number, then: Act): void {
    this.acquire((release) => {
      this.#timeline.after(serviceMs, () => {
        release();
        then();
      });
    });
  }

  /** Returns the share of its time that the servers were busy, in the busiest period. */
  peakUtilization(): number {
    const periodMs = Number.isFinite(this.#periodMs) ? this.#periodMs : this.#timeline.now;
    return Math.max(0, ...this.#busyMs.map((busyMs) => busyMs / (periodMs * this.servers)));
  }

  #release(startedAt: number): void {
    this.#count(startedAt, this.#timeline.now);
    this.#busy -= 1;
    const next = this.#queue[this.#head];
    if (next === undefined) return;
    this.#head += 1;
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0;
      this.#head = 0;
    }
    next.start();
  }

  #count(from: number, to: number): void {
    if (!Number.isFinite(this.#periodMs)) {
      this.#busyMs[0] = (this.#busyMs[0] ?? 0) + to - from;
      return;
    }
    for (let at = from; at < to; ) {
      const period = Math.floor(at / this.#periodMs);
      const end = Math.min(to, (period + 1) * this.#periodMs);
      this.#busyMs[period] = (this.#busyMs[period] ?? 0) + end - at;
      at = end;
    }
  }
}

/** Returns the values that 50% and 99% of the values do not exceed. */
export function percentiles(values: readonly number[]): { readonly p50: number; readonly p99: number } {
  const sorted = Float64Array.from(values).sort();
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

export function exponential(random: () => number, mean: number): number {
  return -mean * Math.log(1 - random());
}
