import { afterEach, describe, expect, test } from "vitest";
import { answering, closeAll } from "../../../test/support/skein.ts";
import { closeTalking, openTalking } from "../../../test/support/talking.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { EventBus } from "../../core/events.ts";
import { mistakesIn } from "../../protocol/check-value.ts";
import { eventTable } from "../../protocol/events.ts";
import type { ReceivedEvent } from "../../protocol/methods/calls.ts";
import { talkingHandlers } from "../handlers/talking.ts";
import { LocalEvents } from "./local-events.ts";
import { localWatchedCalls } from "./local-watched.ts";

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
});

async function watching() {
  const { deps, skein } = await openTalking({ script: answering() });
  return { skein, calls: localWatchedCalls(talkingHandlers(deps), deps) };
}

describe("events in this process", () => {
  test("[GTK16] a run is seen from its acceptance to its end, in the form of the wire", async () => {
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
      expect(mistakesIn(eventTable[event.event].payload, JSON.parse(JSON.stringify(event.payload)))).toEqual(
        [],
      );
      expect(event.payload.sessionKey).toBe(trip);
      expect(event.payload.userId).toBeUndefined();
      if (event.event === "run.ended") break;
    }
    const kinds = seen.map(({ event }) => event);
    expect(kinds).toEqual(
      expect.arrayContaining(["session.created", "run.queued", "run.delta", "run.ended"]),
    );
    expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, index) => index + 1));
    expect(seen.at(-1)?.payload).toMatchObject({ runId, state: "ok" });
  });

  test("[GTK16] kinds, agents and users narrow it; leaving the loop, and closing all, ends it", async () => {
    const bus = new EventBus();
    const source = { subscribe: bus.subscribe.bind(bus), keysOf: async (keys: readonly string[]) => keys };
    const closed: unknown[] = [];
    const open = (filter: ConstructorParameters<typeof LocalEvents>[1]) =>
      new LocalEvents(source, filter, (stream) => closed.push(stream));
    const streams = {
      all: open({}),
      kinds: open({ events: ["session.*"] }),
      research: open({ agentId: "Research" }),
      ann: open({ userId: "ann" }),
      keyed: open({ keys: [trip] }),
    };
    bus.emit(delta("a"));
    bus.emit(delta("b", trip, "ann"));
    bus.emit(delta("c", "agent:research:main"));
    await streams.keyed.ready;
    for (const stream of Object.values(streams)) stream.close();
    expect(closed).toHaveLength(5);
    const texts = async (stream: LocalEvents) => {
      const seen: unknown[] = [];
      for await (const { payload } of stream) seen.push((payload as { readonly delta: string }).delta);
      return seen.join("");
    };
    expect(await texts(streams.all)).toBe("abc");
    expect(await texts(streams.kinds)).toBe("");
    expect(await texts(streams.research)).toBe("c");
    expect(await texts(streams.ann)).toBe("b");
    expect(await texts(streams.keyed)).toBe("a");
    const left = open({});
    bus.emit(delta("d"));
    for await (const _ of left) break;
    expect(closed).toContain(left);
  });

  test("[GTK16] a reader that is far behind loses pieces of answers, is told so, and loses nothing else", async () => {
    const bus = new EventBus();
    const stream = new LocalEvents({ subscribe: bus.subscribe.bind(bus), keysOf: async () => [] });
    for (let index = 0; index < 10_002; index += 1) bus.emit(delta("x"));
    bus.emit({ ...delta("x"), type: "run.resumed" } as SkeinEvent);
    bus.emit(delta("y"));
    stream.close();
    const seen: ReceivedEvent[] = [];
    for await (const event of stream) seen.push(event);
    expect(seen).toHaveLength(10_003);
    expect(seen.slice(-3)).toMatchObject([
      { event: "gap", payload: { after: 10_000, upTo: 10_002, reason: "slow" }, seq: 10_002 },
      { event: "run.resumed", seq: 10_003 },
      { event: "gap", payload: { after: 10_003, upTo: 10_004 }, seq: 10_004 },
    ]);
  });

  test("[GTK16] a session that is not there is told to whoever waits or reads, and all ends with its calls", async () => {
    const { calls } = await watching();
    const wrong = calls.events({ keys: ["nothing"] });
    await expect(wrong.ready).rejects.toMatchObject({ code: "not_found" });
    await expect(wrong[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "not_found" });
    const reading = calls.events()[Symbol.asyncIterator]().next();
    await calls.close();
    expect(await reading).toMatchObject({ done: true });
  });
});
