import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventFrame, GatewayPeer, goodToken } from "../../test/support/gateway-peer.ts";
import { PeerHub } from "../../test/support/peer-hub.ts";
import { soon } from "../../test/support/soon.ts";
import type { EventStream, ReceivedEvent } from "../protocol/calls.ts";
import { closeCodes } from "../protocol/wire.ts";
import { connect } from "./connect.ts";
import type { ConnectOptions, SkeinClient } from "./contract.ts";

let peer: GatewayPeer;
let hub: PeerHub;
const clients: SkeinClient[] = [];

beforeEach(async () => {
  peer = new GatewayPeer();
  hub = new PeerHub();
  peer.answer = (request) => hub.answer(request);
  await peer.listen();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await peer.close();
});

async function open(options: Partial<ConnectOptions> = {}): Promise<SkeinClient> {
  const client = await connect(peer.url, {
    token: goodToken,
    reconnect: { minMs: 1, maxMs: 3 },
    ...options,
  });
  clients.push(client);
  return client;
}

/** Reads in the background. */
function reading(stream: EventStream): { readonly events: ReceivedEvent[]; readonly done: Promise<void> } {
  const events: ReceivedEvent[] = [];
  const done = (async () => {
    for await (const event of stream) events.push(event);
  })();
  done.catch(() => undefined);
  return { events, done };
}
const told = (events: readonly ReceivedEvent[]) =>
  events.map(({ event, seq, payload }) =>
    event === "gap" ? `${payload.reason} ${payload.after}-${payload.upTo}` : seq,
  );

describe("events", () => {
  test("[CLT11] start from now, with the requested filters, over their own socket", async () => {
    hub.emit(3);
    const client = await open();
    const stream = client.events({ keys: ["main"], events: ["run.*"], agentId: "main" });
    const { events } = reading(stream);
    await stream.ready;
    hub.emit(2);
    await soon(() => told(events)).toEqual([4, 5]);
    expect(events[0]).toEqual({ event: "run.ended", seq: 4, payload: { n: 4 } });
    expect(peer.asked("sessions.subscribe")[0]?.params).toEqual({
      keys: ["main"],
      events: ["run.*"],
      agentId: "main",
    });
    expect(peer.sockets.size).toBe(2);
    stream.close();
    await soon(() => peer.sockets.size).toBe(1);
  });

  test("[CLT11] leaving the loop closes the stream, and so does closing the client, without an error", async () => {
    const client = await open();
    const stream = client.events();
    await stream.ready;
    hub.emit(1);
    for await (const { seq } of stream) {
      expect(seq).toBe(1);
      break;
    }
    await soon(() => peer.sockets.size).toBe(1);
    const { done } = reading(client.events());
    await soon(() => peer.sockets.size).toBe(2);
    await client.close();
    await done;
  });

  test("[CLT11] continue after the last one when the connection breaks; duplicates are delivered once", async () => {
    const client = await open();
    const stream = client.events();
    const { events } = reading(stream);
    await stream.ready;
    hub.emit(2);
    await soon(() => events.length).toBe(2);
    hub.repeats = 1;
    peer.drop();
    hub.emit(2);
    await soon(() => told(events)).toEqual([1, 2, 3, 4]);
    expect(peer.asked("sessions.subscribe").at(-1)?.params).toEqual({ after: 2 });
    peer.closeAll(closeCodes.slowReader.code);
    hub.emit(1);
    await soon(() => told(events)).toEqual([1, 2, 3, 4, 5]);
  });

  test("[CLT11] a gap is delivered as an event; a gateway that restarts its numbers causes one too", async () => {
    const client = await open();
    const stream = client.events();
    const { events } = reading(stream);
    await stream.ready;
    hub.emit(10);
    await soon(() => events.length).toBe(10);
    hub.kept = 2;
    hub.cut();
    hub.emit(5);
    peer.drop();
    await soon(() => told(events).slice(10)).toEqual(["gone 10-13", 14, 15]);
    for (const says of [true, false]) {
      events.length = 0;
      hub = new PeerHub();
      hub.tellsOfRestart = says;
      peer.answer = (request) => hub.answer(request);
      peer.drop();
      await soon(() => told(events)).toEqual([`restart ${says ? 15 : 3}-0`]);
      hub.emit(3);
      await soon(() => told(events).slice(1)).toEqual([1, 2, 3]);
    }
  });

  test("[CLT11] a refused subscription ends the stream; a temporarily refused one is retried", async () => {
    const client = await open();
    const refusals = [
      { code: "unavailable", message: "Starting.", retryable: true },
      { code: "forbidden", message: "No." },
    ];
    peer.answer = ({ fail }) => fail(refusals.shift() ?? {});
    const stream = client.events();
    await expect(stream.ready).rejects.toMatchObject({ code: "forbidden" });
    await expect(reading(stream).done).rejects.toMatchObject({ code: "forbidden" });
    expect(peer.asked("sessions.subscribe")).toHaveLength(2);
    expect(client.state).toBe("open");
  });

  test("a starting gateway is retried over the same socket", async () => {
    const client = await open();
    let left = 3;
    peer.answer = (request) => {
      left -= 1;
      if (left < 0) hub.answer(request);
      else request.fail({ code: "unavailable", message: "Starting.", retryable: true, retryAfterMs: 1 });
    };
    const stream = client.events();
    await stream.ready;
    expect([peer.asked("sessions.subscribe").length, peer.connects]).toEqual([4, 2]);
  });

  test("a temporarily refused subscription is made once, even if its socket broke meanwhile", async () => {
    const client = await open();
    const [first] = [{ code: "unavailable", message: "Starting.", retryable: true }];
    peer.answer = ({ fail }) => fail(first as Record<string, unknown>);
    const stream = client.events();
    const { events } = reading(stream);
    await soon(() => peer.asked("sessions.subscribe").length).toBe(1);
    peer.answer = (request) => hub.answer(request);
    peer.drop();
    await stream.ready;
    hub.emit(2);
    await soon(() => told(events)).toEqual([1, 2]);
    await client.call("agents.list", {});
    expect(peer.asked("sessions.subscribe")).toHaveLength(2);
  });

  test("[CLT11] an expired token ends the stream", async () => {
    const client = await open();
    const stream = client.events();
    await stream.ready;
    peer.closeAll(closeCodes.revoked.code);
    await expect(reading(stream).done).rejects.toMatchObject({ code: "unauthorized" });
  });

  test("calls on a stream use the socket of its events, also after a reconnect", async () => {
    const client = await open();
    const stream = client.events();
    await stream.ready;
    const sessionKey = "main";
    for (const time of [0, 1]) {
      await stream.call("chat.live", { sessionKey });
      await client.call("chat.live", { sessionKey });
      const [onStream, other] = peer.asked("chat.live").slice(-2);
      const subscribed = () => peer.asked("sessions.subscribe")[time];
      await soon(() => subscribed()?.socket).toBe(onStream?.socket);
      expect(other?.socket).not.toBe(onStream?.socket);
      peer.drop();
    }
    const subscribing = stream.call("sessions.subscribe", {});
    await expect(subscribing).rejects.toMatchObject({ code: "invalid_request" });
    stream.close();
    await expect(stream.call("chat.live", { sessionKey })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("a slow reader loses deltas first, and gets a gap", async () => {
    const client = await open({ eventsHeld: 4 });
    const stream = client.events();
    await stream.ready;
    hub.emit(1);
    hub.emit(20, "run.delta");
    hub.emit(1);
    await client.call("agents.list", {});
    // On another socket, the events might still be in flight.
    const last = hub.seq;
    const events: ReceivedEvent[] = [];
    for await (const event of stream) {
      events.push(event);
      if (event.seq === last && event.event !== "gap") break;
    }
    const ended = events.filter(({ event }) => event === "run.ended").map(({ seq }) => seq);
    expect(ended).toEqual([1, last]);
    expect(events.some(({ event }) => event === "gap") || events.length === 22).toBe(true);
  });
});

describe("disconnects at any point", () => {
  const act = fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 4 }).map((count) => ({ emit: count })) },
    { weight: 3, arbitrary: fc.constant("drop" as const) },
    { weight: 1, arbitrary: fc.constant("forget" as const) },
    { weight: 1, arbitrary: fc.constant("cut" as const) },
    { weight: 2, arbitrary: fc.constant("settle" as const) },
  );

  test("[CLT11] every event is delivered once and in order, or covered by a gap", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(act, { minLength: 1, maxLength: 14 }),
        fc.boolean(),
        async (acts, answersFirst) => {
          hub = new PeerHub();
          hub.answersFirst = answersFirst;
          hub.repeats = 2;
          const client = await open();
          const stream = client.events();
          const { events } = reading(stream);
          await stream.ready;
          for (const each of acts) {
            if (each === "drop") peer.drop();
            else if (each === "forget") hub.kept = 1;
            else if (each === "cut") hub.cut();
            else if (each === "settle") await client.call("agents.list", {});
            else hub.emit(each.emit);
          }
          hub.emit(1);
          const last = hub.seq;
          await soon(() => events.at(-1)?.seq).toBe(last);
          const seqs = events.filter(({ event }) => event !== "gap").map(({ seq }) => seq);
          expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b));
          const covered = (seq: number) =>
            events.some(
              ({ event, payload }) => event === "gap" && payload.after < seq && seq <= payload.upTo,
            );
          for (let seq = 1; seq <= last; seq++) expect(seqs.includes(seq) || covered(seq)).toBe(true);
          await client.close();
        },
      ),
      { numRuns: 60 },
    );
  });
});

test("[CLT11] broken event frames break the socket, and nothing is missed", async () => {
  const client = await open();
  const stream = client.events();
  const { events } = reading(stream);
  await stream.ready;
  hub.emit(1);
  for (const socket of peer.sockets) socket.send(eventFrame("run.ended", -1));
  hub.emit(2);
  await soon(() => told(events)).toEqual([1, 2, 3]);
});
