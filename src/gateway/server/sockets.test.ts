import { once } from "node:events";
import { Socket } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { hubWorld, updated } from "../../../test/support/event-hub.ts";
import { connectParams, eventually, gatewayStarter } from "../../../test/support/gateway-server.ts";
import { findProblems } from "../../core/check-schema.ts";
import { closeCodes, HelloSchema } from "../../protocol/frames.ts";
import type { Call } from "../methods/dispatch.ts";

const start = gatewayStarter();
const handlers = { "agents.list": async () => ({ count: 0, agents: [] }) } as never;
const req = (id: string, method: string, params?: unknown) =>
  JSON.stringify({ type: "req", id, method, params });
const wrong = `skein_${"A".repeat(43)}`;

/** The start of a masked text message of 20 MiB, in one frame. */
const longFrame = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 1, 0x40, 0, 0, 0, 0, 0, 0]);

/** Writes bytes that are not a complete frame. */
function writeRaw(ws: unknown, ...parts: readonly Buffer[]): void {
  (ws as { _socket: NodeJS.WritableStream })._socket.write(Buffer.concat(parts));
}

describe("an incomplete message", () => {
  test("counts against its token, on all of its sockets", async () => {
    const gateway = await start({ handlers, tuning: { bodyBytesPerToken: 1_000_000 } });
    const token = await gateway.token({ name: "a", scopes: ["read"], user: null });
    const sockets = await Promise.all([1, 2].map(() => gateway.connected(token)));
    const other = await gateway.connected(gateway.admin);
    for (const { ws } of sockets) writeRaw(ws, longFrame, Buffer.alloc(600_000));
    const { code } = await Promise.race(sockets.map(({ closed }) => closed));
    expect(code).toBe(closeCodes.tooMuchUnfinished.code);
    expect(await other.request("agents.list", {})).toMatchObject({ ok: true });
  });

  test("frees its bytes when it is complete, and when its socket closes", async () => {
    const gateway = await start({ handlers, tuning: { bodyBytesPerToken: 1_000_000 } });
    const padded = { padding: "x".repeat(600_000) };
    const askThrice = async () => {
      const socket = await gateway.connected(gateway.admin);
      const answers = async () => {
        for (let each = 0; each < 3; each += 1) await socket.request("agents.list", padded);
        return "answered";
      };
      const outcome = await Promise.race([answers(), socket.closed.then(() => "closed")]);
      writeRaw(socket.ws, longFrame, Buffer.alloc(600_000));
      socket.ws.terminate();
      return outcome;
    };
    expect(await askThrice()).toBe("answered");
    await eventually(askThrice).toBe("answered");
  });

  test("must be complete in time, whatever control frames come in between", async () => {
    const gateway = await start({ handlers, tuning: { headersMs: 70, requestMs: 77 } });
    const socket = await gateway.connected(gateway.admin);
    const idle = await gateway.connected(gateway.admin);
    idle.ws.ping("still here");
    await once(idle.ws, "pong");
    expect(gateway.timers.count(77)).toBe(0);
    writeRaw(socket.ws, longFrame, Buffer.alloc(10));
    await eventually(() => gateway.timers.count(77)).toBe(1);
    gateway.timers.fire(77);
    expect((await socket.closed).code).toBe(closeCodes.messageTooLate.code);
    expect(await idle.request("agents.list", {})).toMatchObject({ ok: true });
    expect(gateway.timers.count(77)).toBe(0);
  });

  test("before connect counts by its fragments, together with all others without a token", async () => {
    const gateway = await start({ tuning: { unsignedBytes: 400_000 } });
    const fragments = Buffer.concat(
      Array.from({ length: 3000 }, (_, index) => Buffer.from([index === 0 ? 1 : 0, 0x81, 0, 0, 0, 0, 32])),
    );
    const sockets = await Promise.all([1, 2].map(() => gateway.socket()));
    for (const { ws } of sockets) writeRaw(ws, fragments);
    const { code } = await Promise.race(sockets.map(({ closed }) => closed));
    expect(code).toBe(closeCodes.tooMuchUnfinished.code);
  });
});

describe("the first frame of a socket", () => {
  test("connect is answered with hello", async () => {
    const gateway = await start();
    const socket = await gateway.socket();
    const token = await gateway.token({ name: "a", scopes: ["read"], user: "ann" });
    const answer = await socket.request("connect", connectParams(token));
    if (!answer.ok) throw new Error(answer.error.message);
    expect(findProblems(HelloSchema, answer.payload, 5)).toEqual([]);
    expect(answer.payload).toMatchObject({ protocol: 1, scopes: ["read"], userId: "ann", allUsers: false });
    const { methods } = answer.payload as { methods: string[] };
    expect(methods).toContain("sessions.list");
    expect(methods).not.toContain("chat.send");
  });

  test.each([
    ["no JSON", "{torn", "badFrame", null],
    ["an event instead of a request", '{"type":"res","id":"1"}', "badFrame", "invalid_request"],
    ["another request", req("1", "agents.list"), "badFrame", "invalid_request"],
    ["connect without params", req("1", "connect"), "badFrame", "invalid_request"],
    [
      "an unsupported version",
      req("1", "connect", { ...connectParams(wrong), protocol: { min: 2, max: 9 } }),
      "noCommonProtocol",
      "invalid_request",
    ],
    ["a wrong token", req("1", "connect", connectParams(wrong)), "unauthorized", "unauthorized"],
    ["more than 64 KiB", req("1", "connect", { client: "x".repeat(65_536) }), "tooLarge", null],
    ["bytes", Buffer.from(req("1", "connect")), "badFrame", null],
  ] as const)("%s is rejected", async (_, frame, reason, code) => {
    const gateway = await start();
    const socket = await gateway.socket();
    socket.ws.send(frame);
    const { code: closeCode } = await socket.closed;
    expect(closeCode).toBe(closeCodes[reason].code);
    expect(socket.frames).toMatchObject(
      code === null ? [] : [{ type: "res", id: "1", ok: false, error: { code } }],
    );
  });

  test("does not wait for megabytes from an unauthenticated client", async () => {
    const gateway = await start();
    const socket = await gateway.socket();
    // The beginning of a 20 MiB frame whose end never arrives.
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 1, 0x40, 0, 0, 0, 0, 0, 0]);
    const raw = (socket.ws as unknown as { _socket: NodeJS.WritableStream })._socket;
    raw.write(Buffer.concat([head, Buffer.alloc(100_000, 120)]));
    expect((await socket.closed).code).toBe(closeCodes.tooLarge.code);
  });

  test("connect must arrive in time", async () => {
    const gateway = await start();
    const socket = await gateway.socket();
    gateway.timers.fire(10_000);
    expect((await socket.closed).code).toBe(closeCodes.connectTooLate.code);
    await gateway.connected();
    expect(gateway.timers.count(10_000)).toBe(0);
  });

  test("of too many silent sockets, the oldest is closed", async () => {
    const gateway = await start({ tuning: { waitingSockets: 2 } });
    const [first] = [await gateway.socket(), await gateway.socket()];
    const third = await gateway.connected();
    expect((await first.closed).code).toBe(closeCodes.connectTooLate.code);
    expect(await third.request("sessions.unsubscribe", { subscriptionId: "x" })).toMatchObject({ ok: true });
  });

  test("wrong tokens are slowed down as over HTTP, and a valid one is not", async () => {
    const gateway = await start({ handlers });
    for (let index = 0; index < 5; index += 1) await gateway.rpc("agents.list", {}, wrong);
    const socket = await gateway.socket();
    const answer = socket.request("connect", connectParams(wrong));
    await eventually(() => gateway.timers.count(50)).toBe(1);
    await gateway.connected();
    expect(socket.frames).toEqual([]);
    gateway.timers.fire(50);
    expect(await answer).toMatchObject({ ok: false, error: { code: "unauthorized" } });
  });

  test("a token has a limit of sockets, and a closed one frees its place", async () => {
    const gateway = await start({ tuning: { socketsPerToken: 2 } });
    const [first] = [await gateway.connected(), await gateway.connected()];
    const third = await gateway.socket();
    expect(await third.request("connect", connectParams(gateway.admin))).toMatchObject({
      error: { code: "rate_limited" },
    });
    expect((await third.closed).code).toBe(closeCodes.tooManySockets.code);
    first.ws.close();
    await eventually(
      async () => (await (await gateway.socket()).request("connect", connectParams(gateway.admin))).ok,
    ).toBe(true);
  });
});

describe("requests over a socket", () => {
  test("run concurrently, and each has one response", async () => {
    const gate = Promise.withResolvers<void>();
    const slow = async () => {
      await gate.promise;
      return { count: 1, models: [] };
    };
    const gateway = await start({ handlers: { ...(handlers as object), "models.list": slow } as never });
    const socket = await gateway.connected();
    const first = socket.request("models.list");
    expect(await socket.request("agents.list")).toMatchObject({
      ok: true,
      payload: { count: 0, agents: [] },
    });
    gate.resolve();
    expect(await first).toMatchObject({ ok: true, payload: { count: 1 } });
    expect(socket.frames.map(({ id }) => id)).toEqual(["r1", "r3", "r2"]);
  });

  test.each([
    ["nothing.here", {}, "not_found"],
    ["connect", {}, "not_found"],
    ["agents.list", { x: 1 }, "invalid_request"],
    ["agents.list", [], "invalid_request"],
  ])("%s %j is refused as over HTTP", async (method, params, code) => {
    const gateway = await start({ handlers });
    const socket = await gateway.connected();
    expect(await socket.request(method, params)).toMatchObject({ ok: false, error: { code } });
    expect(await socket.request("agents.list")).toMatchObject({ ok: true });
  });

  test("an invalid frame is refused under its ID, and closes the socket if it has none", async () => {
    const gateway = await start();
    const socket = await gateway.connected();
    socket.ws.send('{"type":"req","id":"7"}');
    await once(socket.ws, "message");
    expect(socket.frames.at(-1)).toMatchObject({ id: "7", ok: false, error: { code: "invalid_request" } });
    socket.ws.send("garbage");
    expect((await socket.closed).code).toBe(closeCodes.badFrame.code);
  });

  test.each([
    ["invalid frames", Buffer.from("GET / HTTP/1.1\r\n\r\n"), closeCodes.notFrames.code],
    ["a text that is not UTF-8", Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0xff]), closeCodes.notUtf8.code],
  ])("%s close the socket with their code", async (_, bytes, code) => {
    const gateway = await start();
    const socket = await gateway.connected();
    (socket.ws as unknown as { readonly _socket: Socket })._socket.write(bytes);
    expect(await socket.closed).toMatchObject({ code });
  });

  test("binary data, and a frame of 26 MiB, close the socket", async () => {
    const gateway = await start();
    const binary = await gateway.connected();
    binary.ws.send(Buffer.from("{}"));
    expect((await binary.closed).code).toBe(closeCodes.badFrame.code);
    const large = await gateway.connected();
    large.ws.send("x".repeat(26 * 1024 * 1024));
    expect((await large.closed).code).toBe(closeCodes.tooLarge.code);
  });

  test("more than the limit of concurrent requests, or per second, are refused", async () => {
    const gate = Promise.withResolvers<void>();
    const slow = async () => {
      await gate.promise;
      return { count: 0, agents: [] };
    };
    const tuning = { requestsPerSocket: 2, requestsPerSecond: 5 };
    const gateway = await start({ handlers: { "agents.list": slow } as never, tuning });
    const socket = await gateway.connected();
    const two = [socket.request("agents.list"), socket.request("agents.list")];
    const limited = { ok: false, error: { code: "rate_limited", retryable: true } };
    expect(await socket.request("agents.list")).toMatchObject(limited);
    gate.resolve();
    expect(await Promise.all(two)).toMatchObject([{ ok: true }, { ok: true }]);
    expect(await socket.request("agents.list")).toMatchObject({ ok: true });
    expect(await socket.request("agents.list")).toMatchObject(limited);
  });

  test("concurrent requests have a limit of bytes", async () => {
    const gate = Promise.withResolvers<void>();
    const slow = async () => {
      await gate.promise;
      return { key: "main", sessionId: "s", uid: "u" };
    };
    const gateway = await start({ handlers: { "sessions.resolve": slow }, tuning: { heldBytes: 1500 } });
    const socket = await gateway.connected();
    const first = socket.request("sessions.resolve", { key: "k".repeat(1000) });
    expect(await socket.request("sessions.resolve", { key: "k".repeat(1000) })).toMatchObject({
      error: { code: "rate_limited" },
    });
    gate.resolve();
    expect(await first).toMatchObject({ ok: true });
  });

  test("a response is at most as large as the frame size in hello, in bytes", async () => {
    const answer = async ({ key }: { readonly key?: string }) => ({
      key: key === "small" ? key : "ü".repeat(1000),
      sessionId: "s",
      uid: "u",
    });
    const gateway = await start({ handlers: { "sessions.resolve": answer }, tuning: { frameBytes: 1500 } });
    const socket = await gateway.connected();
    expect(await socket.request("sessions.resolve", { key: "large" })).toMatchObject({
      ok: false,
      error: { code: "too_large" },
    });
    expect(await socket.request("sessions.resolve", { key: "small" })).toMatchObject({ ok: true });
  });

  test("a client that does not read its responses is disconnected", async () => {
    const answer = async () => ({ key: "x".repeat(900_000), sessionId: "s", uid: "u" });
    const tuning = { heldBytes: 1_000_000, socketsPerToken: 1 };
    const gateway = await start({ handlers: { "sessions.resolve": answer }, tuning });
    const socket = await gateway.connected();
    socket.ws.pause();
    const frames = Array.from({ length: 60 }, (_, index) =>
      req(`x${index}`, "sessions.resolve", { key: "main" }),
    );
    for (const frame of frames) socket.ws.send(frame);
    // The socket's slot is free again even though the client has read nothing.
    const connects = async () =>
      (await (await gateway.socket()).request("connect", connectParams(gateway.admin))).ok;
    await eventually(connects).toBe(true);
    socket.ws.resume();
    expect((await socket.closed).code).toBe(1006);
    expect(socket.frames.length).toBeLessThan(60);
  });

  test("a handler's signal aborts when its socket closes", async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const waiting = (_: unknown, { signal }: Call) => {
      begun.resolve(signal);
      return new Promise<never>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
    };
    const gateway = await start({ handlers: { "agent.wait": waiting } });
    const socket = await gateway.connected();
    void socket.request("agent.wait", { runId: "r" });
    const signal = await begun.promise;
    const gone = new Promise((resolve) => signal.addEventListener("abort", resolve));
    socket.ws.terminate();
    await gone;
    expect(gateway.log).toEqual([]);
  });
});

describe("a long-lived socket", () => {
  test("is closed if it gives no sign of life, and kept if it does", async () => {
    const gateway = await start({ handlers });
    const [dead, living] = [await gateway.connected(), await gateway.connected()];
    dead.ws.pause();
    const ponged = once(living.ws, "ping");
    gateway.timers.fire(30_000);
    await ponged;
    await living.request("agents.list");
    const gone = once((dead.ws as unknown as { _socket: NodeJS.EventEmitter })._socket, "close");
    gateway.timers.fire(30_000);
    dead.ws.resume();
    await gone;
    expect(await living.request("agents.list")).toMatchObject({ ok: true });
  });

  test("[ATG3] ends with its token: at the next check, and with the next request", async () => {
    const gateway = await start({ handlers });
    const { secret, token } = await gateway.books.tokens.create(
      { name: "a", scopes: ["read"], user: null },
      null,
    );
    const [idle, busy] = [await gateway.connected(secret), await gateway.connected(secret)];
    const other = await gateway.connected();
    await gateway.books.tokens.revoke(token.tokenId);
    busy.ws.send(req("1", "agents.list"));
    expect((await busy.closed).code).toBe(closeCodes.revoked.code);
    gateway.timers.fire(1000);
    expect((await idle.closed).code).toBe(closeCodes.revoked.code);
    expect(await other.request("agents.list")).toMatchObject({ ok: true });
  });
});

describe("subscriptions of a socket", () => {
  test("events follow the response, once, and end with the subscription", async () => {
    const gateway = await start();
    gateway.hub.emit();
    gateway.hub.emit();
    const socket = await gateway.connected();
    const answer = await socket.request("sessions.subscribe", { after: 1, keys: ["agent:main:main"] });
    expect(answer).toMatchObject({ ok: true, payload: { seq: 2, keys: ["agent:main:main"] } });
    const second = await socket.request("sessions.subscribe", {});
    gateway.hub.emit();
    await eventually(() => socket.events()).toEqual([2, 3]);
    expect(socket.frames.map(({ type }) => type)).toEqual(["res", "res", "event", "res", "event"]);
    const ids = [answer, second].map((each) =>
      each.ok ? (each.payload as { subscriptionId: string }) : null,
    );
    for (const id of ids) {
      const { subscriptionId = "" } = id ?? {};
      const ended = await socket.request("sessions.unsubscribe", { subscriptionId });
      expect(ended).toMatchObject({ payload: { subscriptionId, wasOpen: true } });
    }
    expect(gateway.hub.size).toBe(0);
    const [id] = ids;
    expect(
      await socket.request("sessions.unsubscribe", { subscriptionId: id?.subscriptionId }),
    ).toMatchObject({
      payload: { wasOpen: false },
    });
  });

  test("deltas that arrive at once are sent in one write, and large ones do not pile up", async () => {
    const gateway = await start();
    const socket = await gateway.connected();
    await socket.request("sessions.subscribe", {});
    const writes = vi.spyOn(Socket.prototype as unknown as { _writev(): void }, "_writev");
    const written = () => writes.mock.contexts.filter((each) => (each as Socket).localPort === gateway.port);
    for (let sent = 0; sent < 50; sent += 1) gateway.hub.emit();
    await eventually(() => socket.events().length).toBe(50);
    expect(written()).toHaveLength(1);
    const [subscribed] = gateway.hub.open;
    for (let sent = 0; sent < 8; sent += 1) {
      gateway.hub.emit("x".repeat(40_000));
      expect(subscribed?.sink.backlog()).toBeLessThan(80_000);
    }
    await eventually(() => socket.events().length).toBe(58);
    writes.mockRestore();
  });

  test("a response in transit does not make the reader of events look slow", async () => {
    const { hub, emit } = hubWorld({ limits: { hardBytes: 1_000_000 } });
    const agents = [{ id: "x".repeat(20_000_000) }];
    const handlers = { "agents.list": async () => ({ count: 1, agents }) } as never;
    const gateway = await start({ handlers, parts: { hub } });
    const socket = await gateway.connected();
    await socket.request("sessions.subscribe", {});
    (socket.ws as unknown as { _socket: Socket })._socket.once("data", () => socket.ws.pause());
    const answer = socket.request("agents.list", {});
    await eventually(() => socket.ws.isPaused).toBe(true);
    emit(updated());
    socket.ws.resume();
    await answer;
    const next = socket.request("sessions.unsubscribe", { subscriptionId: "x" });
    expect(await Promise.race([socket.closed, next])).toMatchObject({ ok: true });
    expect(socket.events()).toHaveLength(1);
  });

  test("are checked like a method, limited in number, and end with the socket", async () => {
    const gateway = await start({ tuning: { subscriptionsPerSocket: 1 } });
    const socket = await gateway.connected(await gateway.token({ name: "a", scopes: ["read"], user: "ann" }));
    expect(await socket.request("sessions.subscribe", { userId: "bob" })).toMatchObject({
      error: { code: "forbidden" },
    });
    expect(await socket.request("sessions.subscribe", { events: ["x"] })).toMatchObject({
      error: { code: "invalid_request" },
    });
    expect(await socket.request("sessions.subscribe", {})).toMatchObject({ ok: true });
    expect(await socket.request("sessions.subscribe", {})).toMatchObject({ error: { code: "rate_limited" } });
    const [subscribed] = gateway.hub.open;
    expect(subscribed?.sink.backlog()).toBe(0);
    subscribed?.sink.drop();
    expect((await socket.closed).code).toBe(closeCodes.slowReader.code);
    expect(gateway.hub.size).toBe(0);
  });
});
