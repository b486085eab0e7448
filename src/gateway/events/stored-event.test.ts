import { describe, expect, test } from "vitest";
import { ofUser, toolCall, updated, want } from "../../../test/support/event-hub.ts";
import { createRedactor } from "../../access/redaction/redactor.ts";
import { SubscriberIndex } from "./hub.ts";
import { estimateSize, FrameCache, readerKinds, StoredEvent } from "./stored-event.ts";
import type { Fed } from "./subscriber.ts";
import { ReplayQueue } from "./subscriber.ts";

const redactor = createRedactor();
const keep = (seq: number, event = updated()) =>
  new StoredEvent({ seq, event, masked: null, isTail: false, redactor });

describe("frames", () => {
  const [reader, admin] = readerKinds as [(typeof readerKinds)[0], (typeof readerKinds)[0]];

  test("are cached up to a limit; a larger one is cached while it is the newest", () => {
    const frames = new FrameCache({ size: 1000, report: () => undefined });
    for (let seq = 1; seq < 100; seq += 1) frames.of(keep(seq), reader);
    expect(frames.size).toBeLessThanOrEqual(1000);
    const large = keep(100, toolCall({ text: "x".repeat(3000) }));
    const made = frames.of(large, admin);
    large.frame = () => "made again";
    expect(frames.of(large, admin)).toBe(made);
    frames.of(keep(101), reader);
    expect(frames.size).toBeLessThanOrEqual(1000);
  });

  test("[ERZ3] of forgotten events are not cached", () => {
    const frames = new FrameCache({ size: 10_000, report: () => undefined });
    const kept = keep(1);
    for (const kind of readerKinds) frames.of(kept, kind);
    frames.forget(kept);
    expect(frames.size).toBe(0);
    kept.forget();
    expect(frames.of(kept, reader)).toBe(null);
  });
});

describe("the readers of an event", () => {
  test("are those of its session, its user, or all events, and none that has left", () => {
    const index = new SubscriberIndex<{ readonly wanted: ReturnType<typeof want> }>();
    const keys = new Set(["agent:main:main", "agent:main:session:a"]);
    const all = [
      want({ keys, ...ofUser(null) }),
      want({ keys }),
      want(ofUser(null)),
      want(ofUser("ann")),
      want(),
    ];
    const subscribers = all.map((wanted) => ({ wanted }));
    for (const each of subscribers) index.add(each);
    const asked = (event = updated()) =>
      [...index.about(event)].map((each) => subscribers.indexOf(each)).toSorted();
    expect(asked()).toEqual([0, 1, 2, 4]);
    expect(asked(updated({ userId: "ann" }))).toEqual([1, 3, 4]);
    expect(asked(updated({ sessionKey: "agent:main:session:b" }))).toEqual([2, 4]);
    for (const each of subscribers) index.delete(each);
    expect([asked(), asked(updated({ userId: "ann" })), index.size]).toEqual([[], [], 0]);
  });
});

describe("sending to readers", () => {
  test("serves readers in turn and in parts, at once while there is work, otherwise after a delay", () => {
    const due: { act: () => void; ms: number }[] = [];
    const feeding = new ReplayQueue((act, ms) => void due.push({ act, ms }));
    const served: number[] = [];
    const isFull = new Set<number>();
    const rounds = Array.from({ length: 20 }, () => 2);
    const readers = rounds.map(
      (_, which): Fed => ({
        feed: (work) => {
          served.push(which);
          if (isFull.has(which)) return { left: work, isDone: false };
          rounds[which] = (rounds[which] as number) - 1;
          return { left: 0, isDone: rounds[which] === 0 };
        },
      }),
    );
    for (const reader of readers) feeding.add(reader);
    expect(due.map(({ ms }) => ms)).toEqual([0]);
    const next = () => {
      const { act } = due.shift() as (typeof due)[0];
      served.length = 0;
      act();
      return [...served, `then ${due[0]?.ms}`];
    };
    expect(next()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, "then 0"]);
    isFull.add(9);
    expect(next()).toEqual([8, 9, 10, 11, 12, 13, 14, 15, 16, "then 0"]);
    feeding.delete(readers[17] as Fed);
    expect(next()).toEqual([18, 19, 0, 1, 2, 3, 4, 5, "then 0"]);
    for (let count = 0; count < 2; count += 1) next();
    expect(next()).toEqual([9, "then 20"]);
    isFull.clear();
    expect(next()).toEqual([9, "then 0"]);
    expect(next()).toEqual([9, "then undefined"]);
  });
});

describe("the size of an event", () => {
  test("[GEV3] is about that of its JSON, also for a cyclic value", () => {
    const circle: unknown[] = [];
    circle.push(circle, circle);
    expect(estimateSize(circle)).toBeGreaterThan(0);
    const value = { text: "x".repeat(5000), list: [1, 2, { more: "y".repeat(5000) }], none: null };
    expect(estimateSize(value)).toBeGreaterThan(10_000);
    expect(estimateSize(value)).toBeLessThan(10_500);
  });
});
