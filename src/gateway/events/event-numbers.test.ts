import { afterEach, describe, expect, test } from "vitest";
import { adminOfAll, hubWorld, TestSink, updated, want } from "../../../test/support/event-hub.ts";
import type { TokenPlace } from "../../../test/support/token-books.ts";
import { openTokenPlace, tokenPlaces } from "../../../test/support/token-books.ts";
import type { ScriptEngine } from "../../core/script.ts";
import { queryRow } from "../../core/script.ts";
import { openDurableNumbers } from "./event-numbers.ts";

const places: TokenPlace[] = [];
afterEach(() => Promise.all(places.splice(0).map((place) => place.close())));

async function openEngine(context: Parameters<typeof openTokenPlace>[1], kind: (typeof tokenPlaces)[number]) {
  const place = await openTokenPlace(kind, context);
  places.push(place);
  return place.engine;
}

/** Rejects changes while `isDown`. */
function unreliable(engine: ScriptEngine) {
  const state = { isDown: false };
  const pending = new Set<Promise<unknown>>();
  const change: ScriptEngine["change"] = async (...args) => {
    if (state.isDown) throw new Error("disk full");
    const changing = engine.change(...args);
    pending.add(changing);
    return changing.finally(() => pending.delete(changing));
  };
  /** Resolves when the changes that have been started are done. */
  const settle = async () => {
    await new Promise(setImmediate);
    while (pending.size > 0) await Promise.all(pending);
  };
  return { state, settle, engine: { read: engine.read.bind(engine), change } };
}

const readReserved = (engine: ScriptEngine) =>
  engine.read(function* () {
    return Number((yield* queryRow("SELECT value FROM facts WHERE name LIKE 'gateway.events.%'"))?.value);
  });

describe.each(tokenPlaces)("event numbers across restarts (%s)", (kind) => {
  test("never decrease, whatever was left of a block, and are never assigned by two processes", async (context) => {
    const { engine, settle } = unreliable(await openEngine(context, kind));
    const given: number[] = [];
    for (let start = 0; start < 4; start += 1) {
      const [numbers, other] = await Promise.all([
        openDurableNumbers({ engine, blockSize: 10 }),
        openDurableNumbers({ engine, blockSize: 10 }),
      ]);
      expect(numbers.last).toBeGreaterThan(Math.max(0, ...given));
      const mine: number[] = [];
      for (let count = 0; count < 7 * start; count += 1) {
        mine.push(numbers.next());
        await settle();
      }
      const theirs = Array.from({ length: 3 }, () => other.next());
      expect(mine.every((seq) => numbers.owns(seq) && !other.owns(seq))).toBe(true);
      expect(theirs.some((seq) => numbers.owns(seq))).toBe(false);
      expect(mine).toEqual(mine.toSorted((a, b) => a - b));
      given.push(...mine, ...theirs);
    }
    expect(new Set(given).size).toBe(given.length);
  });

  test("take one write per block, in advance and in the background", async (context) => {
    const engine = await openEngine(context, kind);
    const numbers = await openDurableNumbers({ engine, blockSize: 100 });
    for (let count = 0; count < 60; count += 1) numbers.next();
    expect(await readReserved(engine)).toBeLessThanOrEqual(200);
    await expect.poll(() => readReserved(engine)).toBe(200);
    const before = numbers.last;
    for (let count = 0; count < 80; count += 1) numbers.next();
    expect(numbers.last).toBe(before + 80);
    expect(numbers.owns(before)).toBe(true);
    expect(numbers.owns(numbers.last + 1)).toBe(false);
  });

  test("a full disk or a database that is down stops nothing, and the block is saved afterwards", async (context) => {
    const real = await openEngine(context, kind);
    const { state, engine } = unreliable(real);
    const problems: unknown[] = [];
    const report = (error: unknown) => void problems.push(error);
    const numbers = await openDurableNumbers({ engine, blockSize: 100, report });
    state.isDown = true;
    for (let count = 0; count < 99; count += 1) numbers.next();
    await expect.poll(() => problems.length).toBeGreaterThan(0);
    const jump = numbers.next();
    expect(jump).toBeGreaterThan(200);
    expect(numbers.owns(jump)).toBe(true);
    state.isDown = false;
    const hasSaved = async () => {
      numbers.next();
      return (await readReserved(real)) >= jump;
    };
    await expect.poll(hasSaved).toBe(true);
    const later = await openDurableNumbers({ engine: real, blockSize: 100 });
    expect(later.last).toBeGreaterThan(numbers.last);
  });

  test("[GEV3] a client that resumes from before this process, or from another gateway, gets a gap and the kept events", async (context) => {
    const engine = await openEngine(context, kind);
    const before = hubWorld({ numbers: await openDurableNumbers({ engine }) });
    before.emit(updated());
    const old = before.hub.seq;
    const { hub, emit, settle, numbers } = hubWorld({ numbers: await openDurableNumbers({ engine }) });
    const first = numbers.last;
    const sinks = [0, old, first - 1, first, first + 1, 2 ** 50].map((after) => {
      const sink = new TestSink();
      hub.subscribe(adminOfAll, want(), sink, after);
      return sink;
    });
    emit(updated());
    settle();
    const restart = (after: number) => [`gap ${after}-${first} restart`, `session.updated ${first + 1}`];
    expect(sinks.map(({ said }) => said)).toEqual([
      restart(0),
      restart(old),
      restart(first - 1),
      [`session.updated ${first + 1}`],
      restart(first + 1),
      restart(2 ** 50),
    ]);
  });
});
