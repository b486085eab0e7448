import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { GatewayPeer, goodToken } from "../../test/support/gateway-peer.ts";
import { soon } from "../../test/support/soon.ts";
import { closeCodes } from "../protocol/wire.ts";
import { testClock } from "../testing/support/test-clock.ts";
import { connect, connectWith, socketUrl } from "./connect.ts";
import type { ClientState, ConnectOptions, SkeinClient } from "./contract.ts";
import { CallError } from "./contract.ts";

let peer: GatewayPeer;
const clients: SkeinClient[] = [];

beforeEach(async () => {
  peer = new GatewayPeer();
  await peer.listen();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await peer.close();
});

const quick = { minMs: 1, maxMs: 4 };

async function open(options: Partial<ConnectOptions> = {}): Promise<SkeinClient> {
  const client = await connect(peer.url, { token: goodToken, reconnect: quick, ...options });
  clients.push(client);
  return client;
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error,
  );
const unanswered = async (method: string, count = 1) => soon(() => peer.asked(method).length).toBe(count);

describe("connecting", () => {
  test.each([
    ["http://127.0.0.1:18790", "ws://127.0.0.1:18790/ws"],
    ["https://example.org/skein/", "wss://example.org/skein/ws"],
    ["ws://[::1]:80/ws", "ws://[::1]/ws"],
  ])("%s has its sockets at %s", (url, expected) => {
    expect(socketUrl(url)).toBe(expected);
  });

  test("sends the client's name, and has the gateway's greeting", async () => {
    const client = await open({ client: { name: "test", version: "2" } });
    expect(client.hello).toMatchObject({ server: { name: "peer" }, scopes: ["read"] });
    expect(client.state).toBe("open");
    await expect(connect("ftp://127.0.0.1", { token: "x" })).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  test("works over a given WebSocket", async () => {
    const client = await open({ WebSocket });
    expect(await client.call("agents.list", {})).toEqual({});
  });

  test("a rejected token is unauthorized, by a response or only by closing", async () => {
    const bad = { token: "skein_bad" };
    expect(await failure(connect(peer.url, bad))).toBeInstanceOf(CallError);
    await expect(connect(peer.url, bad)).rejects.toMatchObject({ code: "unauthorized", retryable: false });
    peer.greet = ({ socket }) => socket.close(closeCodes.unauthorized.code);
    await expect(connect(peer.url, bad)).rejects.toMatchObject({ code: "unauthorized" });
    expect(peer.connects).toBe(3);
  });

  test("an unreachable or silent gateway and invalid data are unavailable", async () => {
    peer.greet = () => undefined;
    await expect(open({ timeoutMs: 20 })).rejects.toMatchObject({ code: "unavailable", retryable: true });
    peer.greet = ({ socket }) => socket.send("<html>");
    await expect(open()).rejects.toMatchObject({ code: "unavailable" });
    const { url } = peer;
    await peer.close();
    await expect(connect(url, { token: goodToken })).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("a connection that breaks", () => {
  test("is reopened, and listeners are notified", async () => {
    const client = await open();
    const states: ClientState[] = [];
    client.onState((state) => states.push(state));
    peer.drop();
    await soon(() => states).toEqual(["connecting", "open"]);
    peer.closeAll(closeCodes.goingAway.code);
    await soon(() => states).toEqual(["connecting", "open", "connecting", "open"]);
    expect(await client.call("agents.list", {})).toEqual({});
    await client.close();
    expect(states.at(-1)).toBe("closed");
  });

  test.each(
    Object.values(closeCodes).map(({ code, reconnects }) => [code, reconnects ? "open" : "closed"] as const),
  )("closed with %i, it is %s in the end", async (code, state) => {
    const client = await open();
    const ends: (string | null)[] = [];
    client.onState((now, error) => void (now === "connecting" || ends.push(now, error?.code ?? null)));
    peer.closeAll(code);
    await soon(() => ends.length).toBe(2);
    expect([client.state, peer.connects]).toEqual([state, state === "open" ? 2 : 1]);
    const isToken = code === 4401 || code === 4403;
    if (isToken) expect(ends).toEqual(["closed", "unauthorized"]);
    if (state === "closed") await expect(client.call("agents.list", {})).rejects.toBeInstanceOf(CallError);
  });

  test("a token that is rejected on reconnect ends it", async () => {
    const client = await open();
    peer.greet = ({ fail }) => fail({ code: "unauthorized", message: "Over." });
    peer.drop();
    await soon(() => client.state).toBe("closed");
    await expect(client.call("agents.list", {})).rejects.toMatchObject({ code: "unauthorized" });
  });

  test("a busy gateway is retried after the requested delay", async () => {
    const clock = testClock();
    const timing = { now: clock.now, random: () => 0, setTimer: clock.setTimer };
    const client = await connectWith(peer.url, { token: goodToken, reconnect: quick }, timing);
    clients.push(client);
    peer.greet = ({ fail }) =>
      fail({ code: "rate_limited", message: "Slowly.", retryable: true, retryAfterMs: 700 });
    peer.drop();
    await soon(() => client.state).toBe("connecting");
    await clock.advance(10);
    await soon(() => peer.connects).toBe(2);
    // The client received the error and disconnected.
    await soon(() => peer.sockets.size).toBe(0);
    expect(clock.timers).toBe(1);
    peer.greet = (request) => peer.hello(request);
    await clock.advance(600);
    expect(peer.connects).toBe(2);
    await clock.advance(100);
    await soon(() => client.state).toBe("open");
  });

  test("a handshake that timed out gets twice as long the next time, up to a limit", async () => {
    const clock = testClock();
    const timing = { now: clock.now, random: () => 1, setTimer: clock.setTimer };
    const reconnect = { minMs: 10, maxMs: 10 };
    const client = await connectWith(peer.url, { token: goodToken, reconnect, timeoutMs: 100 }, timing);
    clients.push(client);
    peer.greet = () => undefined;
    peer.drop();
    await soon(() => client.state).toBe("connecting");
    for (const [index, ms] of [100, 200, 400, 800, 800].entries()) {
      await clock.advance(10);
      await soon(() => peer.connects).toBe(index + 2);
      await clock.advance(ms - 1);
      // This attempt's socket is still pending.
      expect(peer.sockets.size).toBe(1);
      await clock.advance(1);
      await soon(() => peer.sockets.size).toBe(0);
    }
    peer.greet = (request) => peer.hello(request);
    await clock.advance(10);
    await soon(() => client.state).toBe("open");
  });

  test("gives up after the configured time", async () => {
    const client = await open({ reconnect: { ...quick, forMs: 30 } });
    const once = await open({ reconnect: false });
    peer.greet = ({ socket }) => socket.terminate();
    peer.answer = () => undefined;
    const waiting = [client, once].map((each) => failure(each.call("agents.list", {})));
    await unanswered("agents.list", 2);
    peer.drop();
    for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: "unavailable" });
    expect([client.state, once.state]).toEqual(["closed", "closed"]);
  });

  test("invalid data breaks the socket, and unknown messages are ignored", async () => {
    const client = await open();
    const [socket] = peer.sockets;
    socket?.send(JSON.stringify({ type: "weather", is: "fine" }));
    expect(await client.call("agents.list", {})).toEqual({});
    socket?.send('{"type":"res"');
    await soon(() => peer.connects).toBe(2);
    expect(await client.call("agents.list", {})).toEqual({});
  });

  test("a socket that does not answer a ping is given up", async () => {
    const clock = testClock();
    const timing = { now: clock.now, random: () => 0, setTimer: clock.setTimer };
    const client = await connectWith(peer.url, { token: goodToken, reconnect: quick }, timing);
    clients.push(client);
    await clock.advance(30_000);
    await unanswered("sessions.unsubscribe");
    // The response is already in flight when this call is made.
    await client.call("agents.list", {});
    await clock.advance(30_000);
    peer.answer = () => undefined;
    await clock.advance(30_000);
    await unanswered("sessions.unsubscribe", 2);
    expect(client.state).toBe("open");
    await clock.advance(30_000);
    await clock.advance(10);
    await soon(() => peer.connects).toBe(2);
  });

  test("is reopened at once when it is checked, also the connection of a stream", async () => {
    const clock = testClock();
    const timing = { now: clock.now, random: () => 0, setTimer: clock.setTimer };
    const client = await connectWith(peer.url, { token: goodToken }, timing);
    clients.push(client);
    await client.events().ready;
    peer.drop();
    await soon(() => client.state).toBe("connecting");
    await soon(() => peer.sockets.size).toBe(0);
    client.checkConnection();
    await soon(() => client.state).toBe("open");
    await soon(() => peer.connects).toBe(4);
  });

  test("is replaced when it is checked and stays silent for five seconds", async () => {
    const clock = testClock();
    const timing = { now: clock.now, random: () => 0, setTimer: clock.setTimer };
    const client = await connectWith(peer.url, { token: goodToken, reconnect: quick }, timing);
    clients.push(client);
    client.checkConnection();
    await unanswered("sessions.unsubscribe");
    await client.call("agents.list", {});
    await clock.advance(5000);
    expect(client.state).toBe("open");
    peer.answer = () => undefined;
    client.checkConnection();
    await unanswered("sessions.unsubscribe", 2);
    await clock.advance(5000);
    await clock.advance(10);
    await soon(() => peer.connects).toBe(2);
  });
});

describe("calls", () => {
  test("responses are matched to calls in any order, and refusals are CallErrors", async () => {
    peer.answer = () => undefined;
    const client = await open();
    const [first, second] = [client.call("agents.list", {}), client.call("models.list", {})];
    const third = failure(client.call("sessions.get", { key: "x" }));
    await unanswered("sessions.get");
    peer.asked("sessions.get")[0]?.fail({
      code: "invalid_request",
      message: "No.",
      details: { reason: "invalid_key", problems: [{ path: "key", problem: "is short" }] },
      retryAfterMs: 5,
    });
    peer.asked("models.list")[0]?.ok({ models: 1 });
    peer.asked("agents.list")[0]?.ok({ agents: 1 });
    expect(await Promise.all([first, second])).toEqual([{ agents: 1 }, { models: 1 }]);
    const { code, message, reason, retryable, retryAfterMs, details } = (await third) as CallError;
    expect({ code, message, reason, retryable, retryAfterMs }).toEqual({
      code: "invalid_request",
      message: "No.",
      reason: "invalid_key",
      retryable: false,
      retryAfterMs: 5,
    });
    expect(details.problems).toHaveLength(1);
  });

  test("a signal ends the wait, and a late response is ignored", async () => {
    const client = await open();
    peer.answer = () => undefined;
    const stop = new AbortController();
    const stopped = failure(client.call("agents.list", {}, { signal: stop.signal }));
    await unanswered("agents.list");
    stop.abort(new Error("enough"));
    expect(await stopped).toMatchObject({ message: "enough" });
    peer.asked("agents.list")[0]?.ok({});
    const late = client.call("agents.list", {}, { signal: AbortSignal.timeout(5) });
    await expect(late).rejects.toMatchObject({ name: "TimeoutError" });
    await expect(client.call("agents.list", {}, { signal: stop.signal })).rejects.toThrow("enough");
    expect(client.state).toBe("open");
  });

  test("params that do not fit into a frame are too_large, and not sent", async () => {
    peer.frameBytes = 2000;
    const client = await open();
    const call = (key: string) => client.call("sessions.get", { key });
    await expect(call("ü".repeat(1000))).rejects.toMatchObject({ code: "too_large" });
    await expect(call("x".repeat(3000))).rejects.toMatchObject({ code: "too_large" });
    expect(await call("ü".repeat(900))).toEqual({});
    expect(peer.asked("sessions.get")).toHaveLength(1);
  });

  test("a temporarily refused call is reported, and not repeated", async () => {
    const client = await open();
    peer.answer = ({ fail }) =>
      fail({ code: "rate_limited", message: "Slowly.", retryable: true, retryAfterMs: 9 });
    await expect(client.call("agents.list", {})).rejects.toMatchObject({ retryable: true, retryAfterMs: 9 });
    expect(peer.asked("agents.list")).toHaveLength(1);
  });

  test("subscriptions cannot be called", async () => {
    const client = await open();
    await expect(client.call("sessions.subscribe", {})).rejects.toMatchObject({ code: "invalid_request" });
  });
});
