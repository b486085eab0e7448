import { describe, expect, test } from "vitest";
import { Unchanged } from "./unchanged.ts";

describe("cached reads", () => {
  test("[GBN6] are reused as long as the mark stays the same, and not without a mark", () => {
    let mark: string | null = "1";
    let reads = 0;
    const known = new Unchanged<number>(() => mark, 10);
    const get = (name = "a") => known.get(name, () => ++reads);
    expect([get(), get(), get("b")]).toEqual([1, 1, 2]);
    mark = "2";
    expect([get(), get()]).toEqual([3, 3]);
    mark = null;
    expect([get(), get()]).toEqual([4, 5]);
    mark = "2";
    expect(get()).toBe(3);
  });

  test("[GBN6] missing values are not cached, and the cache is bounded", () => {
    const known = new Unchanged<number>(() => "1", 2);
    expect([known.get("a", () => null), known.get("a", () => 1)]).toEqual([null, 1]);
    known.get("b", () => 2);
    known.get("c", () => 3);
    expect(known.size).toBe(2);
    // The oldest value was dropped.
    expect([known.get("c", () => 0), known.get("a", () => 0)]).toEqual([3, 0]);
  });

  test("[GBN6] a value that changes while it is read is read again the next time", () => {
    let mark = "1";
    const known = new Unchanged<string>(() => mark, 2);
    const read = () => {
      const before = mark;
      mark = "2";
      return before;
    };
    expect([known.get("a", read), known.get("a", read)]).toEqual(["1", "2"]);
  });

  test("the last value is available while nothing can be read, unless it was dropped", () => {
    let mark = "1";
    const known = new Unchanged<number>(() => mark, 2);
    known.get("a", () => 1);
    known.get("b", () => 2);
    mark = "2";
    const unreadable = () => {
      throw new Error("damaged");
    };
    expect(() => known.get("a", unreadable)).toThrow("damaged");
    expect([known.lastRead("a"), known.lastRead("b"), known.lastRead("c")]).toEqual([1, 2, null]);
    known.forget((value) => value === 2);
    expect([known.lastRead("a"), known.lastRead("b")]).toEqual([1, null]);
    expect(known.get("a", () => null)).toBeNull();
    expect(known.lastRead("a")).toBeNull();
  });
});
