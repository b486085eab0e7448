import { describe, expect, test } from "vitest";
import { eventually, gatewayStarter } from "../../../test/support/gateway-server.ts";
import type { Call } from "../methods/dispatch.ts";

const start = gatewayStarter();
const agents = { "agents.list": async () => ({ count: 0, agents: [] }) } as never;
const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  return { status: response.status, code: error.code, error };
};

describe("HTTP", () => {
  test.each([
    ["chunked", "HTTP/1.1 200 OK"],
    ["gzip, chunked", "HTTP/1.1 400 Bad Request"],
  ])("a body that is %s during the upload is answered with %s", async (encoding, status) => {
    const gateway = await start({ handlers: agents });
    const head = [
      "POST /rpc/agents.list HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${gateway.admin}`,
      "Content-Type: application/json",
      `Transfer-Encoding: ${encoding}`,
      "Connection: close",
    ];
    const { text } = await gateway.raw(`${head.join("\r\n")}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`);
    expect((await text).split("\r\n")[0]).toBe(status);
  });

  test("[GSV1] a method is called with its params and returns its payload", async () => {
    const calls: unknown[] = [];
    const sessionsResolve = async (params: unknown, call: Call) => {
      calls.push([params, call.userId, call.isAdmin]);
      return { key: "agent:main:main", sessionId: "s", uid: "u" };
    };
    const gateway = await start({ handlers: { "sessions.resolve": sessionsResolve } });
    const response = await gateway.rpc("sessions.resolve", { key: "main", userId: "ann" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.json()).toEqual({ key: "agent:main:main", sessionId: "s", uid: "u" });
    expect(calls).toEqual([[{ key: "main", userId: "ann" }, "ann", true]]);
  });

  test("[GSV1] params may be omitted", async () => {
    const gateway = await start({ handlers: agents });
    const bare = await gateway.get("/rpc/agents.list", gateway.admin, { method: "POST" });
    expect([bare.status, await bare.json()]).toEqual([200, { count: 0, agents: [] }]);
  });

  const json = { "content-type": "application/json" };
  test.each([
    ["a body that is not JSON", { body: "{torn", headers: json }, 400, "invalid_request"],
    ["no UTF-8", { body: new Uint8Array([0x22, 0xff, 0x22]), headers: json }, 400, "invalid_request"],
    [
      "another content type",
      { body: "{}", headers: { "content-type": "text/plain" } },
      400,
      "invalid_request",
    ],
    ["no content type at all", { body: new Uint8Array([123, 125]) }, 400, "invalid_request"],
    ["an invalid content type", { body: "{}", headers: { "content-type": ";;" } }, 400, "invalid_request"],
    [
      "a compressed body",
      { body: "{}", headers: { ...json, "content-encoding": "gzip" } },
      400,
      "invalid_request",
    ],
    ["invalid params", { body: '{"x":1}', headers: json }, 400, "invalid_request"],
    ["a __proto__ key", { body: '{"__proto__":{"x":1}}', headers: json }, 400, "invalid_request"],
    ["a value that is not an object", { body: "[]", headers: json }, 400, "invalid_request"],
  ])("refuses %s", async (_, init, status, code) => {
    const gateway = await start({ handlers: agents });
    const response = await gateway.get("/rpc/agents.list", gateway.admin, { method: "POST", ...init });
    expect(await errorOf(response)).toMatchObject({ status, code });
  });

  test.each([
    ["POST", "/rpc/agents.lost", 404, "not_found"],
    ["POST", "/rpc/toString", 404, "not_found"],
    ["POST", "/rpc/sessions.subscribe", 400, "invalid_request"],
    ["GET", "/rpc/agents.list", 404, "not_found"],
    ["GET", "/nowhere", 404, "not_found"],
    ["POST", "/channels/none/inbound", 404, "not_found"],
    ["GET", "/%zz", 404, "not_found"],
    ["GET", `/rpc/${"x".repeat(300)}`, 404, "not_found"],
    ["PUT", "/rpc/agents.list", 404, "not_found"],
    ["POST", "/rpc/agents.list/", 404, "not_found"],
    ["POST", "/rpc%2Fagents.list", 404, "not_found"],
    ["GET", "/healthz/", 404, "not_found"],
    ["GET", "/HEALTHZ", 404, "not_found"],
  ])("%s %s is %i", async (method, path, status, code) => {
    const gateway = await start();
    expect(await errorOf(await gateway.get(path, gateway.admin, { method }))).toMatchObject({ status, code });
  });

  test("a path may be percent-encoded, and HEAD is not served", async () => {
    const gateway = await start({ handlers: agents });
    const init = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
    expect((await gateway.get("/%72pc/agents%2Elist?x=1", gateway.admin, init)).status).toBe(200);
    expect((await gateway.get("/healthz", null, { method: "HEAD" })).status).toBe(404);
  });

  test("[GSV3] an unexpected error is internal, with only an ID that is in the log", async () => {
    const secret = "/srv/private";
    const failing = async () => {
      throw new Error(secret);
    };
    const gateway = await start({ handlers: { "agents.list": failing } });
    const { status, error } = await errorOf(await gateway.rpc("agents.list"));
    expect([status, error]).toMatchObject([500, { code: "internal", details: { errorId: "e-1" } }]);
    expect(JSON.stringify(error)).not.toContain(secret);
    expect(gateway.log).toMatchObject([{ fields: { errorId: "e-1", error: { message: secret } } }]);
  });

  test("[GSV4] a body of 26 MiB is too large, declared or not, and the next request is served", async () => {
    const gateway = await start({ handlers: agents });
    const body = new Uint8Array(26 * 1024 * 1024).fill(32);
    const declared = await gateway.get("/rpc/agents.list", gateway.admin, {
      method: "POST",
      headers: json,
      body,
    });
    expect(await errorOf(declared)).toMatchObject({ status: 413, code: "too_large" });
    const pieces = Array.from({ length: 26 }, (_, index) => body.subarray(index << 20, (index + 1) << 20));
    const streamed = await gateway.get("/rpc/agents.list", gateway.admin, {
      method: "POST",
      headers: json,
      body: ReadableStream.from(pieces),
      duplex: "half",
    } as RequestInit);
    expect(await errorOf(streamed)).toMatchObject({ status: 413, code: "too_large" });
    expect((await gateway.rpc("agents.list")).status).toBe(200);
  });

  test("a handler's signal aborts when its client disconnects", async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const waiting = async (_: unknown, { signal }: Call) => {
      begun.resolve(signal);
      return new Promise<never>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
    };
    const gateway = await start({ handlers: { "agent.wait": waiting } });
    const client = new AbortController();
    const asked = gateway.rpc("agent.wait", { runId: "r" }, gateway.admin, { signal: client.signal });
    const signal = await begun.promise;
    const gone = new Promise((resolve) => signal.addEventListener("abort", resolve));
    client.abort();
    await expect(asked).rejects.toThrow();
    await gone;
    expect(gateway.log).toEqual([]);
  });

  test("responses have security headers for browsers", async () => {
    const gateway = await start({ handlers: agents });
    for (const response of [await gateway.rpc("agents.list"), await gateway.get("/nowhere", null)]) {
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      expect(response.headers.get("content-security-policy")).toContain("sandbox");
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
    const page = await gateway.get("/", null);
    expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(await page.text()).toContain("Skein gateway");
  });

  test("a client that sends invalid HTTP, or never ends its headers or body, is disconnected", async () => {
    const gateway = await start({
      tuning: { headersMs: 1000, requestMs: 1500, checkMs: 50 },
      handlers: agents,
    });
    const garbage = await gateway.raw("\x16\x03\x01 hello\r\n\r\n");
    expect(await garbage.text).toMatch(/^HTTP\/1\.1 400 .*"invalid_request"/s);
    const loris = await gateway.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ");
    await loris.text;
    const half = `POST /rpc/agents.list HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${gateway.admin}\r\n`;
    const hanging = await gateway.raw(
      `${half}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    );
    await hanging.text;
    const silent = await gateway.raw(null);
    await silent.text;
    expect((await gateway.get("/healthz", null)).status).toBe(200);
  });

  test("a long response that the client does not read is abandoned", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = async () => {
      asked.resolve();
      return { key: "x".repeat(24 * 1024 * 1024), sessionId: "s", uid: "u" };
    };
    const tuning = { stalledMs: 50, requestsPerToken: 1 };
    const gateway = await start({ tuning, handlers: { ...(agents as object), "sessions.resolve": answer } });
    const { socket, text } = await gateway.raw(null);
    socket.pause();
    const head = `POST /rpc/sessions.resolve HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${gateway.admin}\r\n`;
    socket.write(`${head}Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{"key":"main"}`);
    const isHeld = async () => (await gateway.rpc("agents.list")).status === 429;
    await asked.promise;
    await eventually(isHeld).toBe(false);
    socket.resume();
    expect((await text).length).toBeLessThan(24 * 1024 * 1024);
  });
});
