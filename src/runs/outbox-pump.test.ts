import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { OutboxRow, OutboxStore } from "./contract.ts";
import type { After, OutboxPumpOptions } from "./outbox-pump.ts";
import { failureOf, giveUpAfterMs, leastTries, longestDelayMs, nextTry, OutboxPump } from "./outbox-pump.ts";

const second = 1000;
const hour = 3_600_000;

/** A clock that moves only when the test advances it. Due timers fire in order. */
class Time {
  #now = 0;
  #timers: { at: number; act: () => void }[] = [];
  readonly clock = { now: () => this.#now };
  readonly after: After = (ms, act) => {
    const timer = { at: this.#now + ms, act };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  };

  get waiting(): number {
    return this.#timers.length;
  }

  /** Moves the clock without firing timers, as when a process is suspended. */
  jump(ms: number): void {
    this.#now += ms;
  }

  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (;;) {
      const next = this.#timers.toSorted((a, b) => a.at - b.at).find(({ at }) => at <= end);
      if (next === undefined) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.#now = Math.max(this.#now, next.at);
      next.act();
      await settled();
    }
    this.#now = end;
  }
}

/** Waits until every promise that depends only on other promises has settled. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await Promise.resolve();
}

/** An outbox store backed by a map. */
function memoryOutbox(clock: { now(): number }): OutboxStore {
  type Row = OutboxRow & { owner: string | null; leaseUntil: number };
  const rows = new Map<string, Row>();
  const set = (row: Row | undefined, change: Partial<Row>): Row | null => {
    if (row === undefined) return null;
    rows.set(row.outboxId, { ...row, ...change });
    return rows.get(row.outboxId) ?? null;
  };
  const mine = (outboxId: string, owner: string): Row => {
    const row = rows.get(outboxId);
    if (row?.state !== "queued" || row.owner !== owner) throw new Error(`${outboxId} is not yours`);
    return row;
  };
  const free = ({ state, leaseUntil }: Row) => state === "queued" && leaseUntil <= clock.now();
  return {
    put: async (request) => {
      const known = [...rows.values()].find((row) => row.idempotencyKey === request.idempotencyKey);
      if (known !== undefined) return known;
      const now = clock.now();
      const row: Row = {
        ...request,
        outboxId: `o${rows.size}`,
        state: "queued",
        attempts: 0,
        createdAt: now,
        nextAt: now,
        endedAt: null,
        lastError: null,
        receipt: null,
        app: null,
        waitsForChannel: false,
        owner: null,
        leaseUntil: 0,
      };
      rows.set(row.outboxId, row);
      return row;
    },
    get: async (outboxId) => rows.get(outboxId) ?? null,
    list: async () => [...rows.values()].toReversed(),
    due: async (owner, most, leaseMs) => {
      const due = [...rows.values()].filter((row) => free(row) && row.nextAt <= clock.now());
      return due
        .slice(0, most)
        .map((row) => set(row, { owner, leaseUntil: clock.now() + leaseMs }) as OutboxRow);
    },
    release: async (outboxIds, owner) => {
      for (const outboxId of outboxIds) set(mine(outboxId, owner), { owner: null, leaseUntil: 0 });
    },
    delivered: async (outboxId, owner, receipt) => {
      set(mine(outboxId, owner), { state: "delivered", receipt, endedAt: clock.now() });
    },
    failed: async (outboxId, owner, lastError, next) => {
      const row = rows.get(outboxId);
      if (row?.state !== "queued" || row.owner !== owner) return null;
      const change = next === "dead" ? { state: "dead" as const } : { nextAt: next.at };
      return set(row, { ...change, lastError, attempts: row.attempts + 1, owner: null, leaseUntil: 0 });
    },
    retry: async (outboxId) => {
      const fresh = { state: "queued", attempts: 0, nextAt: clock.now(), endedAt: null } as const;
      return set(rows.get(outboxId), { ...fresh, owner: null, leaseUntil: 0 });
    },
    drop: async (outboxId) => set(rows.get(outboxId), { state: "dropped", endedAt: clock.now() }),
    nextAt: async () => {
      const waiting = [...rows.values()].filter(({ state }) => state === "queued");
      return waiting.length === 0
        ? null
        : Math.min(...waiting.map((row) => Math.max(row.nextAt, row.leaseUntil)));
    },
  };
}

function setUp(
  deliver: OutboxPumpOptions["deliver"],
  more: Partial<OutboxPumpOptions> = {},
  storeOf: typeof memoryOutbox = memoryOutbox,
) {
  const time = new Time();
  const store = storeOf(time.clock);
  const dead: OutboxRow[] = [];
  const { failed } = store;
  store.failed = async (...args) => {
    const row = await failed(...args);
    if (row?.state === "dead") dead.push(row);
    return row;
  };
  const reports: unknown[] = [];
  const pump = new OutboxPump({
    store,
    deliver,
    owner: "me",
    clock: time.clock,
    after: time.after,
    random: () => 1,
    report: (error) => reports.push(error),
    ...more,
  });
  let count = 0;
  const put = (to: string, channel = "desk") => {
    count += 1;
    const session = { uid: "u", userId: "ann", agentId: "main", key: "agent:main:main", sessionId: "s" };
    const text = `${to}${count}`;
    return store.put({ session, runId: "r1", target: { channel, to }, text, idempotencyKey: `k${count}` });
  };
  return { time, store, pump, dead, reports, put };
}

/** Deliveries that finish only when the test completes them. */
function held() {
  const open = new Map<string, { ok: (receipt?: unknown) => void; fail: (error: unknown) => void }>();
  const begun: string[] = [];
  const signals = new Map<string, AbortSignal>();
  const deliver: OutboxPumpOptions["deliver"] = (row, signal) =>
    new Promise((ok, fail) => {
      begun.push(row.text);
      signals.set(row.text, signal);
      open.set(row.text, { ok, fail });
    });
  return { open, begun, signals, deliver };
}

describe("the outbox", () => {
  test("[ANS9] a row is delivered once, with its receipt", async () => {
    const { time, store, pump, put } = setUp(async () => ({ messageId: "m1" }));
    const { outboxId } = await put("ann");
    pump.start();
    await time.pass(hour);
    expect(await store.get(outboxId)).toMatchObject({ state: "delivered", receipt: { messageId: "m1" } });
  });

  test("delivers to one target one at a time in order, and to eight targets at once", async () => {
    const { open, begun, deliver } = held();
    const { time, pump, put } = setUp(deliver);
    for (const to of "aabacdefghij") await put(to);
    pump.start();
    await time.pass(0);
    expect(begun).toEqual(["a1", "b3", "c5", "d6", "e7", "f8", "g9", "h10"]);
    open.get("a1")?.ok();
    await time.pass(0);
    expect(begun.slice(8)).toEqual(["i11"]);
    for (const text of ["b3", "c5"]) open.get(text)?.ok();
    await time.pass(0);
    expect(begun.slice(9)).toEqual(["j12", "a2"]);
    open.get("a2")?.ok();
    await time.pass(0);
    expect(begun.slice(11)).toEqual(["a4"]);
  });

  test("the same address under another channel, account or thread is another target", async () => {
    const { begun, deliver } = held();
    const { time, pump, put } = setUp(deliver);
    await put("a");
    await put("a", "slack");
    pump.start();
    await time.pass(0);
    expect(begun).toHaveLength(2);
  });

  test("for any order of targets, each gets its messages in order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 60 }), async (targets) => {
        const got = new Map<string, number[]>();
        const { time, pump, put } = setUp(async ({ target, text }) => {
          const to = target.to ?? "";
          got.set(to, [...(got.get(to) ?? []), Number(text.slice(1))]);
        });
        for (const to of targets) await put(to);
        pump.start();
        await time.pass(hour);
        expect([...got.values()].flat()).toHaveLength(targets.length);
        for (const numbers of got.values()) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      }),
      { numRuns: 30 },
    );
  });

  test("[OUT3] a failure is retried after 1 s, twice as long each time, at most 5 min, for 24 h", async () => {
    const tries: number[] = [];
    const { time, store, pump, put, dead } = setUp(async () => {
      tries.push(time.clock.now());
      throw new Error("no\nway");
    });
    const { outboxId } = await put("ann");
    pump.start();
    await time.pass(25 * hour);
    const gaps = tries.slice(1).map((at, index) => at - (tries[index] ?? 0));
    expect(gaps.slice(0, 10)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map((each) => each * second));
    expect(Math.max(...gaps)).toBe(longestDelayMs);
    expect(tries.at(-1)).toBeGreaterThan(giveUpAfterMs - longestDelayMs);
    expect(tries.at(-1)).toBeLessThanOrEqual(giveUpAfterMs);
    expect(await store.get(outboxId)).toMatchObject({ state: "dead", lastError: "no\\u000away" });
    expect(dead).toEqual([expect.objectContaining({ outboxId, state: "dead", attempts: tries.length })]);
  });

  test("[OUT3] jitter takes any part of the delay, and a row that waited for a process still gets its attempts", () => {
    const failure = failureOf(new Error("x"));
    fc.assert(
      fc.property(fc.nat({ max: 5000 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempts, random) => {
        const next = nextTry({ attempts, createdAt: 0 }, failure, 0, () => random);
        const ceiling = Math.min(longestDelayMs, second * 2 ** attempts);
        expect(next).toEqual({ at: Math.round(random * ceiling) });
      }),
    );
    const old = (attempts: number) =>
      nextTry({ attempts, createdAt: 0 }, failure, giveUpAfterMs + 1, () => 0);
    expect(old(leastTries - 2)).toEqual({ at: giveUpAfterMs + 1 });
    expect(old(leastTries - 1)).toBe("dead");
  });

  test("[OUT3] a permanent refusal is dead at once; a requested delay is respected", async () => {
    const tries: number[] = [];
    const { time, store, pump, put, dead } = setUp(async ({ target }) => {
      tries.push(time.clock.now());
      const more = target.to === "gone" ? { permanent: true } : { retryAfterMs: 90 * second };
      throw Object.assign(new Error("no"), more);
    });
    const gone = await put("gone");
    pump.start();
    await time.pass(hour);
    expect(tries).toHaveLength(1);
    expect(dead.map(({ outboxId }) => outboxId)).toEqual([gone.outboxId]);
    const busy = await put("busy");
    pump.wake();
    await time.pass(89 * second);
    expect(tries).toHaveLength(2);
    await time.pass(2 * second);
    expect(tries).toHaveLength(3);
    expect(await store.get(busy.outboxId)).toMatchObject({ state: "queued" });
  });

  test.each([null, "x", 5, { permanent: "yes", retryAfterMs: Number.NaN }, { retryAfterMs: -1 }])(
    "[OUT3] thrown %j is not a permanent refusal",
    (thrown) => {
      expect(failureOf(thrown)).toMatchObject({ permanent: false, retryAfterMs: null });
    },
  );

  test("a hanging delivery is cut off, and delays only its own target", async () => {
    const { open, begun, signals, deliver } = held();
    const { time, store, pump, put } = setUp(deliver);
    const first = await put("a");
    await put("a");
    await put("b");
    pump.start();
    await time.pass(0);
    open.get("b3")?.ok();
    await time.pass(29 * second);
    expect(begun).toEqual(["a1", "b3"]);
    await time.pass(second);
    expect(signals.get("a1")?.aborted).toBe(true);
    expect(await store.get(first.outboxId)).toMatchObject({
      state: "queued",
      attempts: 1,
      lastError: "there was no response within 30 s",
    });
    await time.pass(hour);
    expect(begun).toContain("a2");
  });

  test("however many rows wait for a hanging target, other targets are not delayed", async () => {
    const { begun, deliver } = held();
    const { time, pump, put } = setUp(deliver);
    for (let count = 0; count < 40; count += 1) await put("a");
    await put("b");
    pump.start();
    await time.pass(31 * second);
    expect(begun).toContain("b41");
  });

  test("slow deliveries renew their lease: another process sends nothing twice, and the order stays", async () => {
    const got: string[] = [];
    const slowly: OutboxPumpOptions["deliver"] = ({ text }) =>
      new Promise((ok) => {
        got.push(text);
        time.after(25 * second, () => ok(null));
      });
    const { time, store, pump, put, reports } = setUp(slowly);
    for (let count = 0; count < 6; count += 1) await put("a");
    pump.start();
    await time.pass(105 * second);
    await put("a");
    pump.wake();
    await time.pass(hour);
    expect(got).toEqual(["a1", "a2", "a3", "a4", "a5", "a6", "a7"]);
    const other = new OutboxPump({
      store,
      deliver: slowly,
      owner: "b",
      clock: time.clock,
      after: time.after,
    });
    for (let count = 0; count < 6; count += 1) await put("a");
    pump.wake();
    await time.pass(0);
    other.start();
    await time.pass(hour);
    expect([got.length, new Set(got).size, reports]).toEqual([13, 13, []]);
  });

  test("a dropped row is cut off and not tried again; a retry starts over", async () => {
    const { begun, signals, deliver } = held();
    const { time, store, pump, put, reports } = setUp(deliver);
    const { outboxId } = await put("a");
    const behind = await put("a");
    pump.start();
    await time.pass(0);
    expect(await pump.drop(outboxId)).toMatchObject({ state: "dropped" });
    expect(await pump.drop(behind.outboxId)).toMatchObject({ state: "dropped" });
    await time.pass(hour);
    expect(signals.get("a1")?.aborted).toBe(true);
    expect([begun, reports]).toEqual([["a1"], []]);
    expect(await store.get(outboxId)).toMatchObject({ state: "dropped" });
    expect(await pump.retry(outboxId)).toMatchObject({ state: "queued" });
    await time.pass(0);
    expect(begun).toEqual(["a1", "a1"]);
    expect([await pump.retry("x"), await pump.drop("x")]).toEqual([null, null]);
  });

  test("rows that were leased while the process was suspended are delivered at once, in order", async () => {
    const { open, begun, deliver } = held();
    let suspend = () => time.jump(hour);
    const storeOf: typeof memoryOutbox = (clock) => {
      const store = memoryOutbox(clock);
      const due: OutboxStore["due"] = async (...given) => {
        suspend();
        suspend = () => undefined;
        return store.due(...given);
      };
      return { ...store, due };
    };
    const { time, pump, put } = setUp(deliver, {}, storeOf);
    await put("a");
    await put("a");
    pump.start();
    await time.pass(0);
    expect(begun).toEqual(["a1"]);
    open.get("a1")?.ok();
    await time.pass(0);
    expect(begun).toEqual(["a1", "a2"]);
  });

  test("a row that is due again before its failure is confirmed is delivered without waiting for its lease", async () => {
    const { open, begun, deliver } = held();
    const confirmed = Promise.withResolvers<void>();
    const storeOf: typeof memoryOutbox = (clock) => {
      const store = memoryOutbox(clock);
      const failed: OutboxStore["failed"] = async (...given) => {
        const row = await store.failed(...given);
        await confirmed.promise;
        return row;
      };
      return { ...store, failed };
    };
    const { time, pump, put } = setUp(deliver, { random: () => 0 }, storeOf);
    await put("a");
    pump.start();
    await time.pass(0);
    open.get("a1")?.fail(new Error("busy"));
    await time.pass(0);
    pump.wake();
    await time.pass(0);
    confirmed.resolve();
    await time.pass(0);
    expect(begun).toEqual(["a1", "a1"]);
  });

  test("close waits for running deliveries, starts no more, and cuts off those that do not end", async () => {
    const { open, begun, deliver } = held();
    const { time, store, pump, put } = setUp(deliver);
    const slow = await put("a");
    const quick = await put("b");
    await put("a");
    pump.start();
    await time.pass(0);
    const closed = pump.close(5 * second);
    open.get("b2")?.ok();
    await time.pass(4 * second);
    expect(await store.get(quick.outboxId)).toMatchObject({ state: "delivered" });
    expect(await store.get(slow.outboxId)).toMatchObject({ attempts: 0 });
    await time.pass(second);
    await closed;
    expect(await store.get(slow.outboxId)).toMatchObject({
      state: "queued",
      attempts: 1,
      nextAt: 5 * second,
    });
    pump.wake();
    await time.pass(hour);
    expect([begun, time.waiting]).toEqual([["a1", "b2"], 0]);
  });

  test("a failing store is retried, and a delivered row that was not recorded is sent again", async () => {
    let down = true;
    const storeOf: typeof memoryOutbox = (clock) => {
      const store = memoryOutbox(clock);
      const whenUp =
        <A extends unknown[], T>(act: (...given: A) => Promise<T>) =>
        async (...given: A): Promise<T> => {
          if (down) throw new Error("disk full");
          return act(...given);
        };
      return { ...store, due: whenUp(store.due), delivered: whenUp(store.delivered) };
    };
    const keys: string[] = [];
    const deliver = async ({ idempotencyKey }: OutboxRow) => {
      keys.push(idempotencyKey);
      down = keys.length === 1;
    };
    const { time, store, pump, put, reports } = setUp(deliver, {}, storeOf);
    const { outboxId } = await put("a");
    pump.start();
    await time.pass(0);
    expect(reports).toHaveLength(1);
    down = false;
    await time.pass(30 * second);
    expect([keys, reports.length]).toEqual([["k1"], 3]);
    down = false;
    await time.pass(hour);
    expect(keys).toEqual(["k1", "k1"]);
    expect(await store.get(outboxId)).toMatchObject({ state: "delivered" });
  });

  test("a row that another process delivered during a pause is not reported as dead", async () => {
    const { open, deliver } = held();
    const { time, store, pump, dead, put } = setUp(deliver);
    const { outboxId } = await put("a");
    pump.start();
    await time.pass(0);
    time.jump(hour);
    await store.due("other", 1, second);
    await store.delivered(outboxId, "other", null);
    open.get("a1")?.fail(Object.assign(new Error("already received"), { permanent: true }));
    await time.pass(0);
    expect(dead).toEqual([]);
    expect(await store.get(outboxId)).toMatchObject({ state: "delivered", lastError: null });
  });

  test("rows of another process are found, and one that cannot end stops no other", async () => {
    const { time, store, pump, put, reports } = setUp(async () => {
      throw Object.assign(new Error("gone"), { permanent: true });
    });
    pump.start();
    await time.pass(0);
    const { failed } = store;
    store.failed = async () => {
      store.failed = failed;
      throw new Error("no session");
    };
    await put("a");
    const row = await put("b");
    await time.pass(30 * second);
    expect(await store.get(row.outboxId)).toMatchObject({ state: "dead" });
    expect(reports).toHaveLength(1);
  });
});
