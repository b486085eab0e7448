import { describe, expect, test } from "vitest";
import { eventually, gatewayStarter } from "../../../test/support/gateway-server.ts";

const start = gatewayStarter();
const reader = { name: "r", scopes: ["read"], user: null } as const;
const adminOfOne = { name: "a", scopes: ["read", "admin"], user: "ann" } as const;

/** Returns the stream's output up to the given text. */
async function readUntil(response: Response, wanted: string): Promise<string> {
  const stream = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!text.includes(wanted)) {
    const { value, done } = await stream.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  stream.releaseLock();
  return text;
}

describe("routes next to the methods", () => {
  test("the OpenAPI document is available with any token", async () => {
    const gateway = await start();
    const document = (await (
      await gateway.get("/openapi.json", await gateway.token(reader))
    ).json()) as object;
    expect(document).toMatchObject({ openapi: "3.1.0", info: { version: "1.2.3" } });
  });

  test("metrics require a token of all users with admin", async () => {
    const gateway = await start();
    const figures = await gateway.get("/metrics");
    expect([figures.headers.get("content-type"), await figures.text()]).toEqual([
      "text/plain; version=0.0.4",
      "up 1\n",
    ]);
    for (const token of [await gateway.token(reader), await gateway.token(adminOfOne)]) {
      expect((await gateway.get("/metrics", token)).status).toBe(403);
    }
    const without = await start({ parts: { metrics: async () => null } });
    expect((await without.get("/metrics")).status).toBe(404);
  });

  test("readyz answers without a token, and gives the reasons only to admins", async () => {
    let problems: string[] = [];
    const gateway = await start({ parts: { problems: async () => problems } });
    for (const token of [null, undefined, await gateway.token(reader)])
      expect((await gateway.get("/readyz", token)).status).toBe(200);
    problems = ["/srv/place is not there."];
    const told = await gateway.get("/readyz");
    expect([told.status, told.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await told.json()).toEqual({ status: "not_ready", problems });
    for (const token of [null, await gateway.token(reader)]) {
      const bare = await gateway.get("/readyz", token);
      expect([bare.status, await bare.json()]).toEqual([503, { status: "not_ready" }]);
    }
    expect((await gateway.get("/readyz", "skein_wrong")).status).toBe(401);
  });
});

describe("routes served by other parts", () => {
  test("a channel gets its message unchanged, and its response is returned unchanged", async () => {
    const seen: unknown[] = [];
    const take = async (request: Request) => {
      seen.push([request.method, request.url, request.headers.get("x-signature"), await request.text()]);
      return new Response("taken", {
        status: 202,
        headers: { "x-receipt": "7", "content-type": "text/plain" },
      });
    };
    const gateway = await start({ parts: { webhook: (id) => (id === "desk" ? take : null) } });
    const body = '{ "text" : "ü" }';
    const response = await gateway.get("/channels/desk/inbound?a=1", null, {
      method: "POST",
      body,
      headers: { "x-signature": "s", "content-type": "application/json" },
    });
    expect([response.status, response.headers.get("x-receipt"), await response.text()]).toEqual([
      202,
      "7",
      "taken",
    ]);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(seen).toEqual([["POST", `${gateway.server.url}/channels/desk/inbound?a=1`, "s", body]]);
  });

  test("a channel message is limited in size, and an error thrown by a channel is internal", async () => {
    const take = async (request: Request) => new Response(String((await request.arrayBuffer()).byteLength));
    const gateway = await start({ parts: { webhook: () => take }, tuning: { frameBytes: 1000 } });
    const send = (length: number, isStreamed: boolean) => {
      const bytes = new Uint8Array(length);
      const body = isStreamed ? ReadableStream.from([bytes]) : bytes;
      return gateway.get("/channels/desk/inbound", null, {
        method: "POST",
        body,
        duplex: "half",
      } as RequestInit);
    };
    expect(await (await send(1000, true)).text()).toBe("1000");
    expect((await send(1001, false)).status).toBe(413);
    expect((await send(1001, true)).status).toBe(413);
  });

  test("MCP gets the request and the principal, streams its response, and ends with its client", async () => {
    const seen: unknown[] = [];
    const cancelled = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const gateway = await start({
      parts: {
        mcp: async (request, principal) => {
          seen.push([
            request.method,
            principal.name,
            request.method === "POST" ? await request.json() : null,
          ]);
          request.signal.addEventListener("abort", () => aborted.resolve());
          const body = new ReadableStream<Uint8Array>({
            start: (controller) => controller.enqueue(new TextEncoder().encode("event: one\n\n")),
            cancel: () => cancelled.resolve(),
          });
          return new Response(body, { headers: { "content-type": "text/event-stream" } });
        },
      },
    });
    for (const init of [{ method: "POST", body: "{}" }, { method: "GET" }]) {
      const client = new AbortController();
      const response = await gateway.get("/mcp", gateway.admin, { ...init, signal: client.signal });
      expect(await readUntil(response, "one")).toBe("event: one\n\n");
      client.abort();
      await Promise.all([cancelled.promise, aborted.promise]);
    }
    expect(seen).toEqual([
      ["POST", "admin", {}],
      ["GET", "admin", null],
    ]);
    expect(gateway.log).toEqual([]);
  });

  test("a long body waits for its reader, and a stream ends completely when the server stops", async () => {
    let pulled = 0;
    const chunk = new Uint8Array(1024 * 1024);
    const gateway = await start({
      parts: {
        mcp: async () =>
          new Response(
            new ReadableStream<Uint8Array>({
              pull: (controller) => {
                pulled += 1;
                controller.enqueue(chunk);
              },
            }),
          ),
      },
    });
    const head = `GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${gateway.admin}\r\n\r\n`;
    const { socket, text } = await gateway.raw(null);
    socket.pause();
    socket.write(head);
    await eventually(() => pulled).toBeGreaterThan(2);
    const before = await settled(() => pulled);
    expect(before).toBeLessThan(64);
    const drained = gateway.server.drain(1);
    socket.resume();
    await drained;
    await eventually(() => socket.bytesRead).toBeGreaterThan(2 * chunk.length);
    socket.end();
    expect((await text).endsWith("0\r\n\r\n")).toBe(true);
  });
});

/** Returns a number once it has stopped increasing. */
async function settled(figure: () => number): Promise<number> {
  let last = -1;
  const isSame = () => {
    const before = last;
    last = figure();
    return last === before;
  };
  await eventually(isSame).toBe(true);
  return last;
}

describe("the event stream", () => {
  test("sends events with their seq as ID, starting where a reader was disconnected", async () => {
    const gateway = await start();
    gateway.hub.emit();
    gateway.hub.emit();
    const response = await gateway.get("/events", gateway.admin, { headers: { "last-event-id": "1" } });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    gateway.hub.emit({ text: "line\nline" });
    const text = await readUntil(response, "id: 3\n");
    expect(text).toContain("id: 2\nevent: run.queued\ndata: {");
    expect(text).not.toContain("id: 1\n");
    gateway.timers.fire(15_000);
    expect(text.startsWith("retry: 1000\n\n")).toBe(true);
    expect(await readUntil(response, ": \n\n")).toBe(": \n\n");
  });

  test("a filter has the format of sessions.subscribe", async () => {
    const gateway = await start();
    const token = await gateway.token({ name: "a", scopes: ["read"], user: "ann" });
    await gateway.get("/events?keys=a,b&keys=c&events=run.*&agentId=main", token);
    const [subscribed] = gateway.hub.open;
    expect(subscribed?.wanted).toEqual({
      keys: new Set(["a,b", "c"]),
      events: ["run.*"],
      of: { userId: "ann" },
      agentId: "main",
    });
  });

  test.each([
    ["/events?events=never", {}, 400],
    ["/events?after=1", { "last-event-id": "0" }, 400],
    ["/events?other=1", {}, 400],
    ["/events?agentId=a&agentId=b", {}, 400],
    ["/events?userId=bob", {}, 403],
    ["/events", { "last-event-id": "x" }, 200],
  ])("%s with %j is %i", async (path, headers, status) => {
    const gateway = await start();
    const token = await gateway.token({ name: "a", scopes: ["read"], user: "ann" });
    expect((await gateway.get(path, token, { headers })).status).toBe(status);
    const writer = await gateway.token({ name: "w", scopes: ["write"], user: null });
    expect((await gateway.get("/events", writer)).status).toBe(403);
  });

  test("ends with its client, with its token, and if no one reads it", async () => {
    const gateway = await start({ tuning: { socketsPerToken: 1 } });
    const client = new AbortController();
    await gateway.get("/events", gateway.admin, { signal: client.signal });
    expect((await gateway.get("/events")).status).toBe(429);
    client.abort();
    await eventually(() => gateway.hub.size).toBe(0);
    const { secret, token } = await gateway.books.tokens.create(reader, null);
    const response = await gateway.get("/events", secret);
    await gateway.books.tokens.revoke(token.tokenId);
    gateway.timers.fire(1000);
    await response.text();
    await eventually(() => gateway.hub.size).toBe(0);
    await gateway.get("/events");
    const [subscribed] = gateway.hub.open;
    expect(subscribed?.sink.backlog()).toBe(0);
    subscribed?.sink.drop();
    await eventually(() => gateway.hub.size).toBe(0);
    expect(gateway.timers.count(15_000)).toBe(0);
  });
});
