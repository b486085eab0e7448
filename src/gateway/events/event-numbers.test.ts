import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { adminOfAll, hubWorld, TestSink, updated, want } from "../../../test/support/event-hub.ts";
import { openBooks } from "../../../test/support/token-books.ts";
import type { Ledger } from "../../runs/contract.ts";
import { createDurableNumbers } from "./event-numbers.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-numbers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("event numbers across restarts", () => {
  test("never decrease, whatever was left of a block, and are never assigned by two processes", () => {
    const path = join(folder, "work.db");
    const given: number[] = [];
    for (let start = 0; start < 4; start += 1) {
      const db = openBooks(path);
      const numbers = createDurableNumbers({ ledger: db, blockSize: 10 });
      const other = createDurableNumbers({ ledger: db, blockSize: 10 });
      expect(numbers.last).toBeGreaterThan(Math.max(0, ...given));
      const mine = Array.from({ length: 7 * start }, () => numbers.next());
      const theirs = Array.from({ length: 3 }, () => other.next());
      expect(mine.every((seq) => numbers.owns(seq) && !other.owns(seq))).toBe(true);
      expect(theirs.some((seq) => numbers.owns(seq))).toBe(false);
      expect(mine).toEqual(mine.toSorted((a, b) => a - b));
      given.push(...mine, ...theirs);
      db.close();
    }
    expect(new Set(given).size).toBe(given.length);
  });

  test("take one write per block, in advance and in the background", () => {
    const db = openBooks();
    const later: (() => void)[] = [];
    const numbers = createDurableNumbers({
      ledger: db,
      blockSize: 100,
      later: (act) => void later.push(act),
    });
    const reserved = () => Number(db.sql("SELECT value FROM facts").get()?.value);
    for (let count = 0; count < 60; count += 1) numbers.next();
    expect([reserved(), later.length]).toEqual([100, 1]);
    for (const act of later.splice(0)) act();
    expect(reserved()).toBe(200);
    const before = numbers.last;
    for (let count = 0; count < 80; count += 1) numbers.next();
    expect([numbers.last, reserved(), later.length]).toEqual([before + 80, 200, 0]);
    expect(numbers.owns(before)).toBe(true);
    expect(numbers.owns(numbers.last + 1)).toBe(false);
    db.close();
  });

  test("a temporarily full disk stops nothing until the block is used up", () => {
    const db = openBooks();
    let isFull = false;
    const ledger: Ledger = {
      sql: (text) => db.sql(text),
      run: (text, ...values) => db.run(text, ...values),
      unsynced: (act) => db.unsynced(act),
      changeMark: () => db.changeMark(),
      exclusively: (act) => {
        if (isFull) throw new Error("disk full");
        return db.exclusively(act);
      },
    };
    const problems: unknown[] = [];
    const report = (error: unknown) => void problems.push(error);
    const numbers = createDurableNumbers({ ledger, blockSize: 100, later: (act) => act(), report });
    isFull = true;
    for (let count = 0; count < 99; count += 1) numbers.next();
    expect(() => numbers.next()).toThrow("disk full");
    expect(problems.length).toBeGreaterThan(1);
    expect(numbers.last).toBe(100);
    isFull = false;
    expect(numbers.next()).toBe(101);
    db.close();
  });

  test("[GEV3] a client that resumes from before this process, or from another gateway, gets a gap and the kept events", () => {
    const db = openBooks();
    const before = hubWorld({ numbers: createDurableNumbers({ ledger: db }) });
    before.emit(updated());
    const old = before.hub.seq;
    const { hub, emit, settle, numbers } = hubWorld({ numbers: createDurableNumbers({ ledger: db }) });
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
    db.close();
  });
});
