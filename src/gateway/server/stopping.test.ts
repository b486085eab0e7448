import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { eventually, gatewayStarter } from "../../../test/support/gateway-server.ts";
import { closeCodes } from "../../protocol/frames.ts";
import type { Call, Handlers } from "../methods/dispatch.ts";
import { urlOf } from "./create-server.ts";

const start = gatewayStarter();

/** A request that the test completes, one that never ends, and one that waits. */
function world() {
  const gate = Promise.withResolvers<void>();
  let begun = 0;
  const aborted: string[] = [];
  const until = (name: string, { signal }: Call) => {
    begun += 1;
    return new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => {
        aborted.push(name);
        reject(name === "wait" ? new DOMException("over", "AbortError") : signal.reason);
      }),
    );
  };
  const handlers = {
    "agents.list": async () => {
      begun += 1;
      await gate.promise;
      return { count: 0, agents: [] };
    },
    "models.list": (_: unknown, call: Call) => until("stuck", call),
    "agent.wait": (_: unknown, call: Call) => until("wait", call),
  };
  return { gate, aborted, until, handlers: handlers as never as Handlers, begun: () => begun };
}

describe("a server that stops", () => {
  test("[GST4] accepts nothing new, answers pending requests, and ends those that only wait", async () => {
    const { gate, aborted, handlers, begun } = world();
    const gateway = await start({ handlers });
    const [idle, busy] = [await gateway.connected(), await gateway.connected()];
    const events = await gateway.get("/events");
    const overHttp = gateway.rpc("agents.list");
    const overSocket = busy.request("agents.list");
    const waiting = gateway.rpc("agent.wait", { runId: "r" });
    await eventually(begun).toBe(3);
    let isDrained = false;
    const drained = gateway.server.drain(30_000).then(() => {
      isDrained = true;
    });

    const refused = await gateway.rpc("agents.list");
    expect([refused.status, refused.headers.get("retry-after"), refused.headers.get("connection")]).toEqual([
      503,
      "1",
      "close",
    ]);
    expect(await refused.json()).toMatchObject({ error: { code: "unavailable", retryable: true } });
    expect((await gateway.get("/nowhere", null)).status).toBe(503);
    expect((await gateway.get("/healthz", null)).status).toBe(200);
    await expect(gateway.socket()).rejects.toThrow("503");
    expect((await idle.closed).code).toBe(closeCodes.goingAway.code);
    expect(await busy.request("agents.list")).toMatchObject({ ok: false, error: { code: "unavailable" } });
    await events.text();
    const waited = await waiting;
    expect([waited.status, aborted]).toEqual([503, ["wait"]]);
    expect(isDrained).toBe(false);

    gate.resolve();
    expect(await overSocket).toMatchObject({ ok: true });
    expect((await busy.closed).code).toBe(closeCodes.goingAway.code);
    const answered = await overHttp;
    expect([answered.status, answered.headers.get("connection")]).toEqual([200, "close"]);
    await drained;
    expect(gateway.timers.count(30_000)).toBe(1); // the heartbeat timer of the sockets
    expect(gateway.log).toEqual([]);
  });

  test.each([
    ["agent.wait", { runId: "r" }],
    ["sessions.send", { key: "main", message: "m", idempotencyKey: "1", timeoutMs: 600_000 }],
    ["tools.invoke", { name: "sessions_send", arguments: { message: "m", timeoutSeconds: 600 } }],
  ])("[GST4] a waiting %s does not delay the stop, over HTTP and on a socket", async (method, params) => {
    const { aborted, until, begun } = world();
    const gateway = await start({
      handlers: { [method]: (_: unknown, call: Call) => until("wait", call) } as never,
    });
    const socket = await gateway.connected();
    const waiting = [gateway.rpc(method, params), socket.request(method, params)];
    await eventually(begun).toBe(2);
    await gateway.server.drain(30_000);
    await Promise.all(waiting);
    expect(aborted).toEqual(["wait", "wait"]);
  });

  test.each([
    ["sessions.send", { key: "main", message: "m", idempotencyKey: "1", timeoutMs: 0 }],
    ["tools.invoke", { name: "own_tool" }],
  ])("[GST4] a working %s is finished first", async (method, params) => {
    const { gate, handlers, begun } = world();
    const work = handlers["agents.list"];
    const gateway = await start({ handlers: { [method]: work } as never });
    const socket = await gateway.connected();
    const working = [gateway.rpc(method, params), socket.request(method, params)];
    await eventually(begun).toBe(2);
    const drained = gateway.server.drain(30_000);
    gate.resolve();
    const [overHttp, overSocket] = await Promise.all(working);
    expect([(overHttp as Response).status, overSocket]).toMatchObject([200, { ok: true }]);
    await drained;
  });

  test("[GST4] waits no longer than the timeout, and then ends the rest", async () => {
    const { aborted, handlers, begun } = world();
    const gateway = await start({ handlers });
    const socket = await gateway.connected();
    const stuck = [gateway.rpc("models.list"), socket.request("models.list")];
    await eventually(begun).toBe(2);
    const drained = gateway.server.drain(77);
    expect(aborted).toEqual([]);
    gateway.timers.fire(77);
    await drained;
    expect(aborted).toEqual(["stuck", "stuck"]);
    const [overHttp, overSocket] = await Promise.all(stuck);
    expect((overHttp as Response).status).toBe(503);
    expect(overSocket).toMatchObject({ ok: false, error: { code: "unavailable" } });
  });

  test("close releases every socket and the port, whatever hangs", async () => {
    const { handlers, begun } = world();
    const gateway = await start({ handlers });
    const [socket, silent] = [await gateway.connected(), await gateway.socket()];
    const { socket: raw } = await gateway.raw("GET /healthz HTTP/1.1\r\nHost: ");
    await gateway.get("/events");
    const hanging = gateway.rpc("agents.list").catch(() => null);
    await eventually(begun).toBe(1);
    const gone = once(raw, "close");
    await gateway.server.close();
    await Promise.all([socket.closed, silent.closed, gone, hanging]);
    expect(gateway.timers.count(30_000) + gateway.timers.count(1000) + gateway.timers.count(15_000)).toBe(0);
    await expect(gateway.get("/healthz", null)).rejects.toThrow();
    await gateway.server.close();
  });

  test.each([
    ["127.0.0.1", "http://127.0.0.1:1"],
    ["::1", "http://[::1]:1"],
    ["localhost", "http://localhost:1"],
    ["0.0.0.0", "http://127.0.0.1:1"],
    ["::", "http://[::1]:1"],
  ])("a server at %s is reached as %s", (host, url) => {
    expect(urlOf(host, 1)).toBe(url);
  });
});
