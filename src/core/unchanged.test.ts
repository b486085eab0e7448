import { describe, expect, test } from "vitest";
import { Unchanged } from "./unchanged.ts";

const reading =
  <T>(value: T) =>
  async () =>
    value;

describe("cached reads", () => {
  test("[GBN6] are reused as long as the mark stays the same, and not without a mark", async () => {
    let mark: string | null = "1";
    let reads = 0;
    const known = new Unchanged<number>(() => mark, 10);
    const get = (name = "a") => known.get(name, async () => ++reads);
    expect([await get(), await get(), await get("b")]).toEqual([1, 1, 2]);
    mark = "2";
    expect([await get(), await get()]).toEqual([3, 3]);
    mark = null;
    expect([await get(), await get()]).toEqual([4, 5]);
    mark = "2";
    expect(await get()).toBe(3);
  });

  test("[GBN6] of many names read only those that are not cached, at once", async () => {
    let mark = "1";
    const asked: (readonly string[])[] = [];
    const known = new Unchanged<string>(() => mark, 10);
    const getEach = async (...names: string[]) => {
      const found = await known.getEach(names, async (unread) => {
        asked.push(unread);
        return new Map(unread.filter((name) => name !== "none").map((name) => [name, `${name}${mark}`]));
      });
      return [...found.values()].toSorted();
    };
    expect(await getEach("a", "b", "none")).toEqual(["a1", "b1"]);
    expect(await getEach("a", "none", "c")).toEqual(["a1", "c1"]);
    expect(await getEach("a", "b", "c")).toEqual(["a1", "b1", "c1"]);
    mark = "2";
    expect(await getEach("a", "b")).toEqual(["a2", "b2"]);
    expect(asked).toEqual([
      ["a", "b", "none"],
      ["none", "c"],
      ["a", "b"],
    ]);
  });

  test("[GBN6] missing values are not cached, and the cache is bounded", async () => {
    const known = new Unchanged<number>(() => "1", 2);
    expect(await known.get("a", reading(null))).toBeNull();
    expect(await known.get("a", reading(1))).toBe(1);
    await known.get("b", reading(2));
    await known.get("c", reading(3));
    expect(known.size).toBe(2);
    // The oldest value was dropped.
    expect(await known.get("c", reading(0))).toBe(3);
    expect(await known.get("a", reading(0))).toBe(0);
  });

  test("[GBN6] a value that changes while it is read is read again the next time", async () => {
    let mark = "1";
    const known = new Unchanged<string>(() => mark, 2);
    const read = async () => {
      const before = mark;
      mark = "2";
      return before;
    };
    expect([await known.get("a", read), await known.get("a", read)]).toEqual(["1", "2"]);
  });

  test("[GBN6] a read that ends after a later one does not replace its value", async () => {
    let mark = "1";
    const known = new Unchanged<string>(() => mark, 2);
    const late = Promise.withResolvers<string>();
    const slow = known.get("a", () => late.promise);
    mark = "2";
    expect(await known.get("a", reading("new"))).toBe("new");
    late.resolve("old");
    expect(await slow).toBe("old");
    expect(await known.get("a", reading("read again"))).toBe("new");
    expect(known.lastRead("a")).toBe("new");
  });

  test("the last value is available while nothing can be read, unless it was dropped", async () => {
    let mark = "1";
    const known = new Unchanged<number>(() => mark, 2);
    await known.get("a", reading(1));
    await known.get("b", reading(2));
    mark = "2";
    const unreadable = async () => {
      throw new Error("damaged");
    };
    await expect(known.get("a", unreadable)).rejects.toThrow("damaged");
    expect([known.lastRead("a"), known.lastRead("b"), known.lastRead("c")]).toEqual([1, 2, null]);
    known.forget((value) => value === 2);
    expect([known.lastRead("a"), known.lastRead("b")]).toEqual([1, null]);
    expect(await known.get("a", reading(null))).toBeNull();
    expect(known.lastRead("a")).toBeNull();
  });
});
