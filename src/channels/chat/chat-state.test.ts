import { afterEach, describe, expect, test } from "vitest";
import type { TokenPlace } from "../../../test/support/token-books.ts";
import { openTokenPlace, tokenPlaces } from "../../../test/support/token-books.ts";
import { queryRows } from "../../core/script.ts";
import { ChatState } from "./chat-state.ts";

const places: TokenPlace[] = [];
afterEach(() => Promise.all(places.splice(0).map((place) => place.close())));

describe.each(tokenPlaces)("the state of a chat channel: %s", (kind) => {
  async function open(context: Parameters<typeof openTokenPlace>[1]) {
    const place = await openTokenPlace(kind, context);
    places.push(place);
    const time = { now: 1_800_000_000_000 };
    const connect = (channel = "team") => new ChatState(place.engine, { now: () => time.now }, channel);
    return { engine: place.engine, time, connect, state: connect() };
  }

  test("values expire, and belong to one channel", async (context) => {
    const { state, connect, time } = await open(context);
    await state.set("a", { text: "ü\u0000" });
    await state.set("b", 1, 1000);
    const again = connect();
    expect([await again.get("a"), await again.get("b"), await connect("other").get("a")]).toEqual([
      { text: "ü\u0000" },
      1,
      null,
    ]);
    time.now += 1000;
    expect(await state.get("b")).toBeNull();
    await state.delete("a");
    expect(await state.get("a")).toBeNull();
  });

  test("a value is set once until it expires", async (context) => {
    const { state, connect, time } = await open(context);
    expect(await state.setIfNotExists("a", 1, 1000)).toBe(true);
    expect(await connect().setIfNotExists("a", 2, 1000)).toBe(false);
    time.now += 1000;
    expect(await state.setIfNotExists("a", 3, 1000)).toBe(true);
    expect(await state.get("a")).toBe(3);
  });

  test("marks are kept only if their request succeeds", async (context) => {
    const { state, connect } = await open(context);
    const mark = async () => {
      const isFirst = await state.setIfNotExists("event", true);
      await state.set("seen", true);
      await state.set("cache", "kept");
      expect([await state.get("seen"), await state.setIfNotExists("event", true)]).toEqual([true, false]);
      return isFirst;
    };
    const failing = state.holdMarks(async () => {
      await mark();
      throw new Error("lost");
    });
    await expect(failing).rejects.toThrow("lost");
    expect([await connect().get("seen"), await connect().get("cache")]).toEqual([null, "kept"]);
    expect(await state.holdMarks(mark)).toBe(true);
    expect(await connect().get("seen")).toBe(true);
    expect(await state.holdMarks(() => state.setIfNotExists("event", true))).toBe(false);
  });

  test("a lock has one holder", async (context) => {
    const { state, connect, time } = await open(context);
    const lock = await state.acquireLock("t", 1000);
    if (lock === null) throw new Error("no lock");
    expect(await connect().acquireLock("t", 1000)).toBeNull();
    expect(await state.extendLock(lock, 5000)).toBe(true);
    time.now += 2000;
    expect(await connect().acquireLock("t", 1000)).toBeNull();
    time.now += 3000;
    const next = await connect().acquireLock("t", 1000);
    expect([next === null, await state.extendLock(lock, 1000)]).toEqual([false, false]);
    await state.releaseLock(lock);
    expect(await state.acquireLock("t", 1000)).toBeNull();
    await state.forceReleaseLock("t");
    expect(await state.acquireLock("t", 1000)).not.toBeNull();
  });

  test("lists keep their newest values, and queues their order", async (context) => {
    const { state } = await open(context);
    await Promise.all([1, 2, 3].map((value) => state.appendToList("l", value, { maxLength: 2 })));
    expect(await state.getList("l")).toHaveLength(2);
    await state.appendToList("none", 1, { maxLength: 0 });
    expect(await state.getList("none")).toEqual([]);
    const entries = [1, 2, 3].map((expiresAt) => ({ expiresAt }));
    for (const entry of entries) await state.enqueue("t", entry, 2);
    expect(await state.queueDepth("t")).toBe(2);
    expect([await state.dequeue("t"), await state.dequeue("t"), await state.dequeue("t")]).toEqual([
      entries[1],
      entries[2],
      null,
    ]);
  });

  test("subscriptions last, and expired rows are removed", async (context) => {
    const { engine, state, connect, time } = await open(context);
    await state.subscribe("slack:C1:1");
    await state.set("x".repeat(2000), 1, 1000);
    time.now += 1000;
    await connect().connect();
    const rows = await engine.read(() =>
      queryRows("SELECT name FROM facts WHERE name LIKE 'channel.team.%'"),
    );
    expect(rows.map(({ name }) => name)).toEqual(["channel.team.subscribed:slack:C1:1"]);
    expect(await connect().isSubscribed("slack:C1:1")).toBe(true);
    await state.unsubscribe("slack:C1:1");
    expect(await connect().isSubscribed("slack:C1:1")).toBe(false);
  });
});
