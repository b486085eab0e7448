import { afterEach, describe, expect, test } from "vitest";
import { TestSink } from "../../../test/support/event-hub.ts";
import { fakeApp } from "../../../test/support/fake-app.ts";
import { answering, closeAll } from "../../../test/support/skein.ts";
import { closeTalking, openTalking } from "../../../test/support/talking.ts";
import { createRedactor } from "../../access/redaction/redactor.ts";
import { findProblems } from "../../core/check-schema.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { EventBus } from "../../core/events.ts";
import type { EventFilter, ReceivedEvent } from "../../protocol/calls.ts";
import { eventTable } from "../../protocol/events.ts";
import { countFrom } from "../events/event-numbers.ts";
import { selectEvents } from "../events/event-selection.ts";
import { createEventHub } from "../events/hub.ts";
import { skeinHandlers } from "./handlers.ts";
import { LocalEvents, localCallsWithEvents, localPrincipal } from "./local-calls.ts";

afterEach(async () => {
  await closeTalking();
  await closeAll();
});

const trip = "agent:main:session:trip";
const delta = (text: string, sessionKey = trip, userId: string | null = null): SkeinEvent => ({
  type: "run.delta",
  at: 1,
  userId,
  sessionKey,
  sessionId: "trip",
  runId: "r",
  kind: "text",
  delta: text,
  step: 1,
  offset: 0,
});

async function watching() {
  const { deps, skein } = await openTalking({ script: answering() });
  return { skein, calls: localCallsWithEvents(skeinHandlers(deps), deps) };
}

const hubDeps = fakeApp({
  store: { sessions: { find: async () => [], trashed: async () => [] } },
  agents: { first: "main" },
  config: { session: { scope: "per-sender" } },
});

/** Returns the sinks of a hub on the same bus with the same filters. */
async function sinksOfHub(bus: EventBus, filters: readonly EventFilter[]): Promise<readonly TestSink[]> {
  const hub = createEventHub({
    numbers: countFrom(1),
    redactor: createRedactor(),
    subscribe: (listener) => bus.subscribe(listener),
  });
  return Promise.all(
    filters.map(async (filter) => {
      const sink = new TestSink();
      const wanted = await selectEvents(filter, localPrincipal, filter.userId ?? null, hubDeps);
      hub.subscribe(localPrincipal, wanted, sink);
      return sink;
    }),
  );
}

async function namesOf(stream: LocalEvents): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const each of stream)
    names.push(
      each.event === "gap" ? `gap ${each.payload.after}-${each.payload.upTo}` : `${each.event} ${each.seq}`,
    );
  return names;
}

describe("events in this process", () => {
  test("cover a run from its acceptance to its end, in the wire format", async () => {
    const { calls } = await watching();
    const stream = calls.events({ keys: ["session:trip"] });
    await stream.ready;
    const params = { message: "Hello", idempotencyKey: "1" };
    await calls.call("chat.send", { sessionKey: "agent:main:session:other", ...params, idempotencyKey: "2" });
    await calls.call("chat.send", { sessionKey: trip, ...params, userId: "ann" });
    const { runId } = await calls.call("chat.send", { sessionKey: trip, ...params });
    const seen: ReceivedEvent[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.event === "gap") throw new Error("nothing is missing");
      expect(
        findProblems(eventTable[event.event].payload, JSON.parse(JSON.stringify(event.payload)), 5),
      ).toEqual([]);
      expect(event.payload).toMatchObject({ sessionKey: trip });
      expect(event.payload).not.toHaveProperty("userId");
      if (event.event === "run.ended") break;
    }
    const kinds = seen.map(({ event }) => event);
    expect(kinds).toEqual(
      expect.arrayContaining(["session.created", "run.queued", "run.delta", "run.ended"]),
    );
    const numbers = seen.map(({ seq }) => seq);
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    expect(seen.at(-1)?.payload).toMatchObject({ runId, state: "ok" });
  });

  test("are those of a hub, in the same order; leaving the loop or closing ends them", async () => {
    const bus = new EventBus();
    const closed: unknown[] = [];
    const open = (filter: EventFilter) =>
      new LocalEvents(
        {
          subscribe: (listener) => bus.subscribe(listener),
          wanted: () => selectEvents(filter, localPrincipal, filter.userId ?? null, hubDeps),
        },
        (stream) => closed.push(stream),
      );
    const filters: readonly EventFilter[] = [
      {},
      { events: ["session.*"] },
      { events: ["run.started"], agentId: "research" },
      { agentId: "Research" },
      { userId: "ann" },
      { keys: [trip] },
      { keys: [trip], userId: "ann" },
    ];
    const sinks = await sinksOfHub(bus, filters);
    const streams = filters.map(open);
    const emit = () => {
      bus.emit(delta("a"));
      bus.emit(delta("b", trip, "ann"));
      bus.emit(delta("c", "agent:research:main"));
      // An event from another agent in this session still belongs to the session.
      bus.emit({ ...delta("d"), type: "run.started", agentId: "research" } as SkeinEvent);
    };
    // Emits once before the selection is resolved and once after.
    emit();
    await Promise.all(streams.map((stream) => stream.ready));
    emit();
    for (const stream of streams) stream.close();
    expect(closed).toHaveLength(filters.length);
    const seen = await Promise.all(streams.map(namesOf));
    expect(seen).toEqual(sinks.map(({ said }) => said));
    expect(seen.map(({ length }) => length)).toEqual([8, 0, 0, 2, 2, 4, 2]);
    const left = open({});
    bus.emit(delta("d"));
    for await (const _ of left) break;
    expect(closed).toContain(left);
  });

  test.each([
    ["before the selection is known", false],
    ["after that", true],
  ])("a reader that is far behind buffers no more than the limit, and gets a gap: %s", async (_, isReady) => {
    const bus = new EventBus();
    const wanted = { keys: null, events: [], of: "everybody" as const, agentId: null };
    const source = { subscribe: bus.subscribe.bind(bus), wanted: async () => wanted };
    const stream = new LocalEvents(source, undefined, 4);
    if (isReady) await stream.ready;
    const resumed = { ...delta("x"), type: "run.resumed" } as SkeinEvent;
    for (const each of [delta("x"), resumed, delta("x"), delta("x"), resumed]) bus.emit(each);
    stream.close();
    expect(await namesOf(stream)).toEqual(["gap 0-4", "run.resumed 2", "run.resumed 5"]);
    const flooded = new LocalEvents(source, undefined, 4);
    if (isReady) await flooded.ready;
    for (let index = 0; index < 1001; index += 1) bus.emit(resumed);
    flooded.close();
    const told = await namesOf(flooded);
    expect(told.length).toBeLessThanOrEqual(4);
    expect(told[0]).toMatch(/^gap 0-/);
    expect(told.at(-1)).toBe("run.resumed 1001");
  });

  test("waiting for or reading a missing session is not_found, and everything ends with its calls", async () => {
    const { calls } = await watching();
    const wrong = calls.events({ keys: ["nothing"] });
    await expect(wrong.ready).rejects.toMatchObject({ code: "not_found" });
    await expect(wrong[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "not_found" });
    const reading = calls.events()[Symbol.asyncIterator]().next();
    await calls.close();
    expect(await reading).toMatchObject({ done: true });
  });
});
