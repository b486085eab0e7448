import type { IncomingMessage } from "node:http";
import { request } from "node:http";
import { describe, expect, test } from "vitest";
import type { TestGateway } from "../../../test/support/gateway-server.ts";
import { eventually, gatewayStarter } from "../../../test/support/gateway-server.ts";
import { findProblems } from "../../core/check-schema.ts";
import { LinkedSchema } from "../../protocol/tokens.ts";
import { createLinkCode, exchangeLinkCode } from "../auth/link-codes.ts";
import { createServer } from "./create-server.ts";

const start = gatewayStarter();
const handlers = { "agents.list": async () => ({ count: 0, agents: [] }) } as never;
const codeOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string } };
  return [response.status, error.code];
};
const wrong = `skein_${"A".repeat(43)}`;

/** Returns the first line of the response to headers that fetch would not send. */
async function ask(gateway: TestGateway, target: string, ...headers: readonly string[]): Promise<string> {
  const lines = [`GET ${target} HTTP/1.1`, ...headers, "Connection: close", "", ""];
  const { text } = await gateway.raw(lines.join("\r\n"));
  return (await text).split("\r\n")[0] ?? "";
}

/**
 * Makes a call on a separate connection. `fetch` fails if connecting takes ten seconds, which can happen with many
 * calls on a busy machine.
 */
function callWith(gateway: TestGateway, token: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const call = request(`${gateway.server.url}/rpc/agents.list`, { method: "POST", agent: false, headers });
    call.on("response", (response) => resolve(response.resume())).on("error", reject);
    call.end("{}");
  });
}

describe("authentication and origins", () => {
  const upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
  const places = ["/healthz", "/", "/nowhere", "/rpc/agents.list", "/ws", "/%zz", "/events"];
  test.each([
    ["another name that resolves to this machine", ["Host: evil.example"]],
    ["no Host", []],
    ["two Host headers", ["Host: localhost", "Host: localhost"]],
    ["a page of another site", ["Host: localhost", "Origin: https://evil.example"]],
    ["a page without an origin", ["Host: localhost", "Origin: null"]],
    ["another port of this machine", ["Host: localhost", "Origin: http://localhost:1"]],
    ["a cross-site request without Origin", ["Host: localhost", "Sec-Fetch-Site: cross-site"]],
  ])("[GSA14] %s is refused on every path, including sockets", async (_, headers) => {
    const gateway = await start();
    for (const place of places)
      expect([place, await ask(gateway, place, ...headers)]).toEqual([place, "HTTP/1.1 403 Forbidden"]);
    expect(await ask(gateway, "/ws", ...upgrade, key, ...headers)).toBe("HTTP/1.1 403 Forbidden");
  });

  test("[GSA14] a full URL as the target is not a path", async () => {
    const gateway = await start();
    expect(await ask(gateway, "http://localhost/healthz", "Host: localhost")).toBe("HTTP/1.1 403 Forbidden");
  });

  test("[GSA14] the gateway's own pages, local names and allowed hosts are accepted", async () => {
    const settings = {
      host: "127.0.0.1",
      port: 0,
      isExposed: false,
      allowedHosts: ["skein.example"],
      trustProxy: [],
      basePath: "",
      servesClients: true,
      consoleFolder: null,
    };
    const gateway = await start({ parts: { settings } });
    for (const host of ["localhost", `127.0.0.1:${gateway.port}`, "[::1]", "skein.example"]) {
      expect(await ask(gateway, "/healthz", `Host: ${host}`)).toBe("HTTP/1.1 200 OK");
    }
    const own = `http://127.0.0.1:${gateway.port}`;
    expect(await ask(gateway, "/healthz", `Host: 127.0.0.1:${gateway.port}`, `Origin: ${own}`)).toBe(
      "HTTP/1.1 200 OK",
    );
  });

  const socket = ["Host: localhost", ...upgrade];
  test.each([
    ["an unsupported Expect header", "GET /healthz", ["Host: localhost", "Expect: tea"], 400],
    ["the same under another name", "GET /healthz", ["Host: evil.example", "Expect: tea"], 403],
    ["a tunnel", "CONNECT localhost:1", ["Host: localhost"], 403],
    ["a socket by POST", "POST /ws", [...socket, key], 400],
    ["a socket without a key", "GET /ws", socket, 400],
    [
      "a socket of version 1",
      "GET /ws",
      ["Host: localhost", ...upgrade.slice(0, 2), "Sec-WebSocket-Version: 1", key],
      400,
    ],
    ["invalid subprotocols", "GET /ws", [...socket, key, "Sec-WebSocket-Protocol: ,,"], 400],
  ])("%s gets the gateway's own response", async (_, line, headers, status) => {
    const gateway = await start();
    const { text } = await gateway.raw(`${[`${line} HTTP/1.1`, ...headers].join("\r\n")}\r\n\r\n`);
    const [head = "", body = ""] = (await text).split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(body)).toEqual({ error: expect.objectContaining({ message: expect.any(String) }) });
  });

  test.each(["/other", "/healthz"])("[GSA14] refuses an upgrade at %s", async (place) => {
    const gateway = await start();
    expect(await ask(gateway, place, "Host: localhost", ...upgrade, key)).toBe("HTTP/1.1 404 Not Found");
  });

  test("[GSA14] a client that offers another protocol is answered in this one", async () => {
    const gateway = await start();
    const offer = [
      "Host: localhost",
      "Connection: Upgrade, HTTP2-Settings",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABk",
    ];
    expect(await ask(gateway, "/healthz", ...offer)).toBe("HTTP/1.1 200 OK");
    expect(await ask(gateway, "/healthz", ...offer, "Origin: https://evil.example")).toBe(
      "HTTP/1.1 403 Forbidden",
    );
  });

  test("[GSV9] without a token, only responses without information are sent", async () => {
    const gateway = await start({ handlers });
    for (const place of ["/healthz", "/readyz"]) expect((await gateway.get(place, null)).status).toBe(200);
    for (const place of ["/openapi.json", "/events", "/metrics", "/mcp"]) {
      expect([place, ...(await codeOf(await gateway.get(place, null)))]).toEqual([
        place,
        401,
        "unauthorized",
      ]);
    }
    const bare = await gateway.get("/rpc/agents.list", null, { method: "POST" });
    expect(bare.headers.get("www-authenticate")).toBe("Bearer");
    expect(await codeOf(bare)).toEqual([401, "unauthorized"]);
  });

  test.each([`/rpc/agents.list?token=`, `/rpc/agents.list?access_token=`])(
    "[GSV9] a token in %s is ignored",
    async (path) => {
      const gateway = await start({ handlers });
      const response = await gateway.get(`${path}${gateway.admin}`, null, { method: "POST" });
      expect(response.status).toBe(401);
    },
  );

  test.each(["Basic x", "Bearer", "Bearer a b", `Bearer ${wrong}`, "Bearer  "])(
    "[GSV9] %s is not a token",
    async (authorization) => {
      const gateway = await start({ handlers });
      const response = await gateway.get("/rpc/agents.list", null, {
        method: "POST",
        headers: { authorization },
      });
      expect(await codeOf(response)).toEqual([401, "unauthorized"]);
    },
  );

  test("[GSV9] a revoked or expired token is rejected with the next request", async () => {
    const gateway = await start({ handlers });
    const { secret, token } = await gateway.books.tokens.create(
      { name: "a", scopes: ["read"], user: null },
      null,
    );
    expect((await gateway.rpc("agents.list", {}, secret)).status).toBe(200);
    await gateway.books.tokens.revoke(token.tokenId);
    expect((await gateway.rpc("agents.list", {}, secret)).status).toBe(401);
  });

  test("a thousand wrong tokens are delayed or refused, and a valid one is served meanwhile", async () => {
    const gateway = await start({ handlers, tuning: { requestsPerSecond: 2000 } });
    const tries = Array.from({ length: 1000 }, () => callWith(gateway, wrong));
    const early = await Promise.race(tries);
    expect(early.statusCode).toBe(401);
    for (let index = 0; index < 20; index += 1) expect((await gateway.rpc("agents.list")).status).toBe(200);
    let isOver = false;
    const all = Promise.all(tries).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      gateway.timers.fireAllOnce();
      await gateway.get("/healthz", null);
    }
    const answers = await all;
    const statuses = new Set(answers.map(({ statusCode }) => statusCode));
    expect([...statuses].toSorted()).toEqual([401, 429]);
    const limited = answers.find(({ statusCode }) => statusCode === 429);
    expect(Number(limited?.headers["retry-after"])).toBeGreaterThan(0);
    expect((await gateway.rpc("agents.list")).status).toBe(200);
  });

  test("a token has a limit of requests per second, separate from other tokens", async () => {
    const gateway = await start({ handlers, tuning: { requestsPerSecond: 3 } });
    for (let index = 0; index < 3; index += 1) expect((await gateway.rpc("agents.list")).status).toBe(200);
    const refused = await gateway.rpc("agents.list");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({ error: { code: "rate_limited", retryAfterMs: 334 } });
    const other = await gateway.token({ name: "b", scopes: ["read"], user: "ann" });
    expect((await gateway.rpc("agents.list", {}, other)).status).toBe(200);
    gateway.books.now += 334;
    expect((await gateway.rpc("agents.list")).status).toBe(200);
  });

  test("a token has a limit of concurrent requests", async () => {
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const slow = async () => {
      begun.resolve();
      await gate.promise;
      return { count: 0, agents: [] };
    };
    const gateway = await start({
      handlers: { "agents.list": slow } as never,
      tuning: { requestsPerToken: 1 },
    });
    const first = gateway.rpc("agents.list");
    await begun.promise;
    expect(await codeOf(await gateway.rpc("agents.list"))).toEqual([429, "rate_limited"]);
    gate.resolve();
    expect((await first).status).toBe(200);
    await eventually(async () => (await gateway.rpc("agents.list")).status).toBe(200);
  });

  test("a link code gives one token, and a wrong code is slowed down like a wrong token", async () => {
    let books: TestGateway["books"] | null = null;
    const exchange = async (code: unknown) => (books === null ? null : exchangeLinkCode(books.tokens, code));
    const gateway = await start({ handlers, parts: { exchange } });
    books = gateway.books;
    const [admin] = await books.tokens.list();
    const { code } = await createLinkCode(books.tokens, { tokenId: admin?.tokenId ?? "" });
    const link = (body: unknown) =>
      gateway.get("/link", null, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": "application/json" },
      });
    const linked = (await (await link({ code })).json()) as { token: string };
    expect(findProblems(LinkedSchema, linked, 5)).toEqual([]);
    expect((await gateway.rpc("agents.list", {}, linked.token)).status).toBe(200);
    expect(await codeOf(await link({ code }))).toEqual([401, "unauthorized"]);
    expect(await codeOf(await link({}))).toEqual([400, "invalid_request"]);
    expect(await codeOf(await link({ code: "x".repeat(5000) }))).toEqual([413, "too_large"]);
    for (let index = 0; index < 4; index += 1) await link({ code });
    const held = link({ code });
    await eventually(() => gateway.timers.count(50)).toBe(1);
    gateway.timers.fire(50);
    expect(await codeOf(await held)).toEqual([401, "unauthorized"]);
  });

  test("a port that is in use is reported, and other machines are admitted only if configured", async () => {
    const gateway = await start();
    const taken = {
      host: "127.0.0.1",
      port: gateway.port,
      isExposed: false,
      allowedHosts: [],
      trustProxy: [],
      basePath: "",
      servesClients: true,
      consoleFolder: null,
    };
    await expect(start({ parts: { settings: taken } })).rejects.toMatchObject({ code: "EADDRINUSE" });
    const settings = { ...taken, host: "0.0.0.0", port: 0 };
    await expect(createServer({ settings } as never)).rejects.toMatchObject({ code: "forbidden" });
  });
});
