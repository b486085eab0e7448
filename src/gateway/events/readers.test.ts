import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { World } from "../../../test/support/event-hub.ts";
import {
  adminOfAll,
  appended,
  delta,
  hubWorld,
  ofUser,
  TestSink,
  updated,
  want,
} from "../../../test/support/event-hub.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { isWanted } from "../../protocol/events.ts";
import type { GapPayload } from "../../protocol/frames.ts";
import type { EventSelection } from "./event-selection.ts";
import type { Subscription } from "./subscriber.ts";

describe("slow readers", () => {
  const limits = { softBytes: 1000, hardBytes: 5000 };

  test("[GEV17] drops lossy events only for the slow reader, and sends it a gap before the next event", () => {
    const { hub, emit } = hubWorld({ limits });
    const [slow, fast] = [new TestSink(false), new TestSink()];
    hub.subscribe(adminOfAll, want(), slow);
    hub.subscribe(adminOfAll, want(), fast);
    slow.unread = 1001;
    emit(delta("one"));
    emit(delta("two"));
    emit(updated());
    slow.unread = 400;
    emit(delta("four"));
    expect(fast.seqs).toEqual([1, 2, 3, 4]);
    expect(slow.said).toEqual(["gap 0-2 slow", "session.updated 3", "run.delta 4"]);
  });

  test("[GEV17] sends a gap without another event once half of the backlog is read", () => {
    const { hub, emit, tick } = hubWorld({ limits });
    const sink = new TestSink(false);
    hub.subscribe(adminOfAll, want(), sink);
    sink.unread = 1001;
    emit(delta("one"));
    tick();
    sink.unread = 600;
    emit(delta("two"));
    tick();
    expect(sink.said).toEqual([]);
    sink.unread = 500;
    tick();
    expect(sink.said).toEqual(["gap 0-2 slow"]);
    tick();
    emit(delta("three"));
    expect(sink.said).toEqual(["gap 0-2 slow", "run.delta 3"]);
  });

  test("disconnects a reader that is far behind, whether it reads new or kept events", () => {
    for (const after of [undefined, 0]) {
      const { hub, emit, tick } = hubWorld({ limits });
      const sink = new TestSink(false);
      hub.subscribe(adminOfAll, want(), sink, after);
      sink.unread = 5001;
      emit(updated());
      tick();
      expect([sink.isDropped, sink.said, hub.size]).toEqual([true, [], 0]);
    }
  });

  test("sends kept events as fast as the reader reads, and new events wait after them", () => {
    const { hub, emit, tick, settle } = hubWorld({ limits: { ...limits, hardBytes: 1_000_000 } });
    for (let count = 0; count < 2000; count += 1) emit(appended("user", "x".repeat(300)));
    const sink = new TestSink(false);
    hub.subscribe(adminOfAll, want(), sink, 0);
    for (let round = 0; round < 3000 && sink.frames.length < 2100; round += 1) {
      if (round < 100) emit(updated());
      tick();
      sink.unread = 0;
    }
    settle(10);
    expect(sink.mostUnread).toBeLessThan(limits.softBytes + 700);
    expect(sink.seqs).toEqual(Array.from({ length: 2100 }, (_, index) => index + 1));
    emit(updated());
    expect(sink.seqs.at(-1)).toBe(2101);
  });

  test("a reader that misses events that are no longer kept gets a gap", () => {
    const { hub, emit, settle } = hubWorld({ limits: { ...limits, events: 5 } });
    emit(updated());
    emit(updated());
    const sink = new TestSink(false);
    hub.subscribe(adminOfAll, want(), sink, 1);
    sink.unread = 1001;
    for (let count = 0; count < 10; count += 1) emit(updated());
    settle(10);
    sink.unread = 0;
    settle(10);
    expect(sink.said.slice(0, 2)).toEqual(["gap 1-7 slow", "session.updated 8"]);
    expect(sink.frames).toHaveLength(6);
  });
});

interface Reader {
  readonly wanted: EventSelection;
  readonly sink: TestSink;
  readonly subscription: Subscription;
  readonly after: number | null;
  /** The range of sequence numbers during which the reader was open. */
  readonly from: number;
  to: number | null;
}

type Step = (world: World, readers: Reader[], told: SkeinEvent[]) => void;

const users = [null, "ann", "bob"];
const keys = ["agent:main:main", "agent:main:session:a", "agent:other:main"];
const anyEvent = fc
  .record({ userId: fc.constantFrom(...users), sessionKey: fc.constantFrom(...keys), isDelta: fc.boolean() })
  .map(({ isDelta, ...about }) => (isDelta ? delta("some words", about) : updated(about)));
const anyWanted: fc.Arbitrary<EventSelection> = fc.record({
  keys: fc.option(fc.uniqueArray(fc.constantFrom(...keys), { minLength: 1 }).map((each) => new Set(each))),
  events: fc.constantFrom([], ["run.*"], ["session.updated"]),
  of: fc.constantFrom("everybody" as const, ...users.map((user) => ofUser(user).of)),
  agentId: fc.constantFrom(null, "main"),
});

const emitStep = anyEvent.map<Step>((event) => ({ emit }, _, told) => {
  told.push(event);
  emit(event);
});
const tickStep = fc.constant<Step>(({ tick }) => tick());
const closeStep = fc.nat(9).map<Step>((which) => ({ hub }, readers) => {
  const reader = readers[which];
  if (reader === undefined || reader.to !== null) return;
  reader.subscription.close();
  reader.to = hub.seq;
});
const subscribeStep = (isFast: boolean) =>
  fc.tuple(anyWanted, fc.option(fc.nat(60))).map<Step>(([wanted, after]) => ({ hub }, readers) => {
    const sink = new TestSink(isFast);
    const subscription = hub.subscribe(adminOfAll, wanted, sink, after ?? undefined);
    readers.push({ wanted, sink, subscription, after, from: hub.seq, to: null });
  });
const readStep = fc.tuple(fc.nat(9), fc.nat(600)).map<Step>(([which, bytes]) => (_, readers) => {
  const sink = readers[which]?.sink;
  if (sink !== undefined) sink.unread = Math.max(0, sink.unread - bytes);
});

function isTheirs(event: SkeinEvent, { keys: only, events, of, agentId }: EventSelection): boolean {
  if (of !== "everybody" && of.userId !== event.userId) return false;
  if (only !== null && !only.has(event.sessionKey)) return false;
  return isWanted(event.type, events) && (agentId === null || event.sessionKey.split(":")[1] === agentId);
}

/** Returns the numbers of all events that a reader must receive. The first event has the number 1. */
function expected(told: readonly SkeinEvent[], { wanted, after, from, to }: Reader): number[] {
  const begin = after === null || after > from ? from : after;
  return told
    .map((event, index) => ({ event, seq: index + 1 }))
    .filter(({ event, seq }) => seq > begin && (to === null || seq <= to) && isTheirs(event, wanted))
    .map(({ seq }) => seq);
}

describe("order and completeness", () => {
  test("fast readers that subscribe, resume and leave get exactly the events of the full list", () => {
    const step = fc.oneof({ weight: 5, arbitrary: emitStep }, subscribeStep(true), closeStep);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const world = hubWorld();
        const [readers, told]: [Reader[], SkeinEvent[]] = [[], []];
        for (const act of steps) {
          act(world, readers, told);
          // Keeps other readers' replays in progress.
          if (told.length % 3 === 0) world.tick();
        }
        world.settle();
        for (const reader of readers.filter(({ to }) => to === null)) {
          const isBeyond = reader.after !== null && reader.after > reader.from;
          const [first, ...rest] = reader.sink.said;
          if (isBeyond) {
            expect(first).toBe(`gap ${reader.after}-0 restart`);
            const all = expected(told, { ...reader, after: 0 });
            expect(rest).toEqual(all.map((seq) => `${told[seq - 1]?.type} ${seq}`));
          } else expect(reader.sink.seqs).toEqual(expected(told, reader));
        }
        for (const { sink } of readers) expectOrder(sink);
      }),
      { numRuns: 150 },
    );
  });

  test("slow readers with few kept events get each event once, or a gap in its place", () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: emitStep },
      tickStep,
      subscribeStep(false),
      { weight: 2, arbitrary: readStep },
      closeStep,
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const world = hubWorld({ limits: { events: 12, softBytes: 400, hardBytes: 4000 } });
        const [readers, told]: [Reader[], SkeinEvent[]] = [[], []];
        for (const act of steps) act(world, readers, told);
        for (let round = 0; round < 100; round += 1) {
          for (const { sink } of readers) sink.unread = 0;
          world.tick();
        }
        for (const reader of readers.filter(({ to, sink }) => to === null && !sink.isDropped)) {
          const gaps = reader.sink.frames
            .filter(({ event }) => event === "gap")
            .map(({ payload }) => payload as GapPayload);
          const got = new Set(
            reader.sink.frames.filter(({ event }) => event !== "gap").map(({ seq }) => seq),
          );
          const wanted = expected(told, reader);
          const isLost = (seq: number) =>
            !got.has(seq) && !gaps.some((gap) => gap.after < seq && seq <= gap.upTo);
          expect(wanted.filter(isLost)).toEqual([]);
          if (reader.after === null) expect([...got].filter((seq) => !wanted.includes(seq))).toEqual([]);
        }
        for (const { sink } of readers) expectOrder(sink);
        expect(world.problems).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });
});

function expectOrder({ seqs }: TestSink): void {
  for (const [index, seq] of seqs.entries()) {
    if (index > 0) expect(seq).toBeGreaterThan(seqs[index - 1] as number);
  }
}
