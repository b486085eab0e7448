import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { hubWorld, updated } from "../../../test/support/event-hub.ts";
import { eventually, gatewayStarter, HandHub } from "../../../test/support/gateway-server.ts";
import { SkeinError } from "../../core/errors.ts";

const start = gatewayStarter();
const mebi = 1024 * 1024;
const ask = (path: string, token: string, method = "GET") =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n`;

/** Opens an event stream on the real hub with unread data in flight. */
async function unreadStream() {
  const { hub, emit } = hubWorld();
  const gateway = await start({ parts: { hub } });
  const { secret, token } = await gateway.books.tokens.create(
    { name: "r", scopes: ["read", "admin"], user: "*" },
    null,
  );
  const { socket } = await gateway.raw(null);
  socket.pause();
  socket.write(`${ask("/events", secret)}\r\n`);
  await eventually(() => hub.size).toBe(1);
  const large = updated({ sessionKey: `agent:main:session:${"x".repeat(mebi)}` });
  for (let sent = 0; sent < 12; sent += 1) emit(large);
  return { gateway, hub, emit, socket, tokenId: token.tokenId };
}

describe("event streams that are not read", () => {
  test("when the token of a stalled reader ends, nothing more is written and the reader is disconnected", async () => {
    const { gateway, hub, emit, tokenId } = await unreadStream();
    const broken = vi.fn();
    process.once("uncaughtException", broken);
    await gateway.books.tokens.revoke(tokenId);
    gateway.timers.fire(1000);
    gateway.timers.fire(15_000);
    emit(updated());
    await new Promise(setImmediate);
    process.off("uncaughtException", broken);
    expect(broken).not.toHaveBeenCalled();
    expect([gateway.log, gateway.timers.count(15_000)]).toEqual([[], 0]);
    gateway.timers.fire(2000);
    await eventually(() => hub.size).toBe(0);
    expect(gateway.timers.count(2000)).toBe(0);
  });

  test("a stalled reader does not delay a server that stops", async () => {
    const { gateway } = await unreadStream();
    const drained = gateway.server.drain(30_000);
    gateway.timers.fire(2000);
    await drained;
  });

  test("the hub disconnects a reader with too much unread data", async () => {
    const { hub, emit, socket } = await unreadStream();
    const large = updated({ sessionKey: `agent:main:session:${"x".repeat(mebi)}` });
    for (let sent = 0; sent < 24; sent += 1) emit(large);
    await eventually(() => hub.size).toBe(0);
    socket.destroy();
  });
});

describe("the end of a request", () => {
  test("a failing end callback affects neither the others nor shuttingDown", async () => {
    class FailingHub extends HandHub {
      override subscribe(...given: Parameters<HandHub["subscribe"]>) {
        const close = () => {
          throw new Error("cannot close");
        };
        return { ...super.subscribe(...given), close };
      }
    }
    const gateway = await start({ parts: { hub: new FailingHub() }, tuning: { socketsPerToken: 1 } });
    const client = new AbortController();
    await gateway.get("/events", gateway.admin, { signal: client.signal });
    client.abort();
    await eventually(() => gateway.log.length).toBe(1);
    expect(gateway.log[0]).toMatchObject({ level: "error", fields: { error: { message: "cannot close" } } });
    expect(gateway.timers.count(15_000)).toBe(0);
    await gateway.server.drain(30_000);
  });

  test("an MCP response that is not read is abandoned, and a silent one is not", async () => {
    const cancelled: string[] = [];
    const silent = () =>
      new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new Uint8Array(1)),
        cancel: () => void cancelled.push("silent"),
      });
    const unread = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(mebi)),
        cancel: () => void cancelled.push("unread"),
      });
    const gateway = await start({
      parts: {
        mcp: async ({ url }) => new Response(url.endsWith("silent") ? silent() : unread()),
      },
      tuning: { stalledMs: 50 },
    });
    for (const name of ["silent", "unread"]) {
      const { socket } = await gateway.raw(null);
      if (name === "unread") socket.pause();
      socket.write(`${ask(`/mcp?${name}`, gateway.admin)}\r\n`);
    }
    await eventually(() => cancelled.length).toBeGreaterThan(0);
    expect(cancelled).toEqual(["unread"]);
  });
});

describe("connections", () => {
  const isClosed = ({ destroyed, readableEnded }: Socket) => destroyed || readableEnded;

  /** Returns an open connection whose request has been answered. */
  async function idleConnection(gateway: Awaited<ReturnType<typeof start>>): Promise<Socket> {
    const { socket } = await gateway.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "data");
    return socket;
  }

  test("of too many idle ones, the one idle longest is closed", async () => {
    const gateway = await start({ tuning: { idleConnections: 3 } });
    const { socket: busy } = await gateway.raw(`${ask("/events", gateway.admin)}\r\n`);
    await once(busy, "data");
    const sockets: Socket[] = [];
    for (let count = 0; count < 5; count += 1) sockets.push(await idleConnection(gateway));
    await eventually(() => sockets.map(isClosed)).toEqual([true, true, false, false, false]);
    expect(isClosed(busy)).toBe(false);
  });

  test("an idle one makes room for a new one; without any, the new one is closed", async () => {
    const gateway = await start({ tuning: { maxConnections: 2 } });
    const idle = await idleConnection(gateway);
    const busy: Socket[] = [];
    for (let count = 0; count < 2; count += 1) {
      const { socket } = await gateway.raw(`${ask("/events", gateway.admin)}\r\n`);
      await once(socket, "data");
      busy.push(socket);
    }
    await eventually(() => isClosed(idle)).toBe(true);
    const { text } = await gateway.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect(await text).toBe("");
    expect(busy.map(isClosed)).toEqual([false, false]);
  });

  test("a call that finds no file descriptor is unavailable, and can be retried", async () => {
    const cause = Object.assign(new Error("too many open files"), { code: "EMFILE" });
    const fails = async () => {
      throw new SkeinError("write_failed", { file: "a", problem: "b", advice: "c" }, { cause });
    };
    const gateway = await start({ handlers: { "agents.list": fails } as never });
    const answer = await gateway.rpc("agents.list", {});
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await answer.json()).toMatchObject({ error: { code: "unavailable", retryable: true } });
  });
});

describe("bodies being uploaded", () => {
  const head = (path: string, token: string, length: number) =>
    `${ask(path, token, "POST")}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  test("large messages without a token share a limit, and small messages are still accepted", async () => {
    const faults: unknown[] = [];
    const take = async (request: Request) => {
      try {
        return new Response(String((await request.arrayBuffer()).byteLength));
      } catch (error) {
        faults.push(error);
        return new Response("fault", { status: 500 });
      }
    };
    const gateway = await start({ parts: { webhook: () => take }, tuning: { unsignedBytes: mebi } });
    const send = (length: number) =>
      gateway.get("/channels/desk/inbound", null, { method: "POST", body: new Uint8Array(length) });
    const flood = async () => {
      const { socket } = await gateway.raw(head("/channels/desk/inbound", "none", 4 * mebi));
      socket.write(new Uint8Array(mebi));
      return socket;
    };
    let socket = await flood();
    await eventually(async () => {
      // The socket was rejected because an earlier message had used all the memory.
      if (socket.bytesRead > 0) socket = await flood();
      return (await send(200_000)).status;
    }).toBe(429);
    const refused = await send(200_000);
    expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toMatchObject([
      429,
      "1",
      { error: { code: "rate_limited", retryable: true } },
    ]);
    expect(faults[0]).toMatchObject({ code: "body_too_large" });
    expect(await (await send(60_000)).text()).toBe("60000");
    socket.destroy();
    await eventually(async () => (await send(200_000)).status).toBe(200);
  });

  test("a token has a limit of uploading bytes over /rpc and /mcp, and another is served meanwhile", async () => {
    const gateway = await start({
      handlers: { "agents.list": async () => ({ count: 0, agents: [] }) } as never,
      parts: { mcp: async (request) => new Response(await request.text()) },
      tuning: { bodyBytesPerToken: mebi },
    });
    const other = await gateway.token({ name: "o", scopes: ["read"], user: null });
    const { socket } = await gateway.raw(head("/rpc/agents.list", gateway.admin, 4 * mebi));
    socket.write(new Uint8Array(mebi - 10));
    const padded = {
      headers: { "content-type": "application/json" },
      method: "POST",
      body: `{}${" ".repeat(100)}`,
    };
    const send = (path: string, token: string) => gateway.get(path, token, padded);
    for (const path of ["/rpc/agents.list", "/mcp"]) {
      await eventually(async () => (await send(path, gateway.admin)).status).toBe(429);
      expect((await send(path, other)).status).toBe(200);
    }
    socket.destroy();
    await eventually(async () => (await send("/rpc/agents.list", gateway.admin)).status).toBe(200);
    expect((await send("/mcp", gateway.admin)).status).toBe(200);
  });

  test("a client that sends too much gets an error while it is still sending", async () => {
    const take = async (request: Request) => new Response(String((await request.arrayBuffer()).byteLength));
    const gateway = await start({ parts: { webhook: () => take }, tuning: { frameBytes: mebi } });
    const { socket, text } = await gateway.raw(
      `${ask("/channels/desk/inbound", "none", "POST")}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(0x10000), Buffer.from("\r\n")]);
    for (let sent = 0; sent < 40; sent += 1) socket.write(chunk);
    expect(await text).toMatch(/^HTTP\/1\.1 413 [\s\S]*"too_large"/);
  });
});
