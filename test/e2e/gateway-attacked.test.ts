import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Params, Result } from "../../src/entry-client.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let gateway: WholeGateway;
const sockets: Socket[] = [];
beforeEach(async () => {
  gateway = await wholeGateway();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await gateway.close();
});

async function minted(request: Params<"tokens.create">): Promise<Result<"tokens.create">> {
  const { body } = await gateway.rpc("tokens.create", request);
  return body as Result<"tokens.create">;
}
const ann: Params<"tokens.create"> = { scopes: ["read", "write", "tools"], userId: "ann" };

function mcp(token: string, body: unknown, { session = "", agent = "main" } = {}): Promise<Response> {
  return fetch(`${gateway.url}/mcp?agent=${agent}`, {
    method: body === null ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...(session === "" ? {} : { "mcp-session-id": session }),
    },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
}
const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
};
async function mcpSession(token: string, agent?: string): Promise<string> {
  const answer = await mcp(token, initialize, agent === undefined ? {} : { agent });
  await answer.text();
  return answer.headers.get("mcp-session-id") ?? "";
}

/** Resolves when the other side has closed the connection. */
async function endOf({ body }: Response): Promise<string> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  while (!(await reader.read()).done);
  return "ended";
}

describe("a client with a token", () => {
  test("[NWU1] a reader of events that disconnects ends only its subscription", async () => {
    const { token } = await minted(ann);
    const figures = async () => {
      const headers = { authorization: `Bearer ${gateway.admin}` };
      return (await fetch(`${gateway.url}/metrics`, { headers })).text();
    };
    for (const _ of [1, 2, 3]) {
      const leave = new AbortController();
      const headers = { authorization: `Bearer ${token}` };
      expect((await fetch(`${gateway.url}/events`, { headers, signal: leave.signal })).status).toBe(200);
      leave.abort();
    }
    await soon(async () => /skein_gateway_subscriptions (\d+)/.exec(await figures())?.[1]).toBe("0");
  });

  test("[ATG3] when it is revoked, every stream and every waiting call ends", async () => {
    const { token, tokenId } = await minted(ann);
    const say = { agentId: "main", message: "be slow for 60 seconds", idempotencyKey: randomUUID() };
    const { runId } = (await gateway.rpc("agent", say, token)).body as Result<"agent">;
    const session = await mcpSession(token);
    const streams = await Promise.all([
      fetch(`${gateway.url}/events`, { headers: { authorization: `Bearer ${token}` } }),
      mcp(token, null, { session }),
    ]);
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    const waiting = [
      ...streams.map(endOf),
      gateway.rpc("agent.wait", { runId, timeoutMs: 50_000 }, token).then(({ status }) => status),
    ];
    await gateway.rpc("tokens.revoke", { tokenId });
    expect(await Promise.all(waiting)).toEqual(["ended", "ended", 401]);
    await gateway.rpc("runs.abort", { runId, userId: "ann" });
  });

  test("using MCP for a thousand agents takes no more connections than for one", async () => {
    const { token } = await minted({ scopes: ["read"], userId: "ann" });
    const sessions: string[] = [];
    for (let each = 0; each < 34; each++) sessions.push(await mcpSession(token, `agent-${each}`));
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
    const statusOf = async (each: number) => {
      const answer = await mcp(token, list, { session: sessions[each] ?? "", agent: `agent-${each}` });
      await answer.body?.cancel();
      return answer.status;
    };
    expect([await statusOf(0), await statusOf(1), await statusOf(2), await statusOf(33)]).toEqual([
      404, 404, 200, 200,
    ]);
  });
});

describe("deeply nested brackets", () => {
  const deep = "[".repeat(200_000) + "]".repeat(200_000);
  test.each([
    ["/rpc/tools.invoke", `{"sessionKey":"main","name":"x","arguments":{"a":${deep}}}`],
    ["/rpc/sessions.list", deep],
    ["/mcp", deep],
  ])("[ATG7] are not parsed at %s", async (path, body) => {
    const headers = {
      authorization: `Bearer ${gateway.admin}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const answer = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body });
    const told = expect.stringMatching(/nested too deeply|Parse error/);
    expect([answer.status, await answer.text()]).toEqual([400, told]);
  });

  test("[ATG7] are not parsed in a frame", async () => {
    const { token } = await minted(ann);
    const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/ws`);
    const closed = new Promise<number>((resolve) => {
      socket.onclose = ({ code }) => resolve(code);
    });
    const params = { protocol: { min: 1, max: 1 }, auth: { token }, client: { name: "x" } };
    socket.onopen = () => socket.send(JSON.stringify({ type: "req", id: "1", method: "connect", params }));
    socket.onmessage = () => socket.send(`{"type":"req","id":"2","method":"sessions.list","params":${deep}}`);
    expect(await closed).toBe(4400);
  });
});

describe("a client without a token", () => {
  /** A client frame whose mask leaves the data unchanged. */
  const frame = (text: string) =>
    Buffer.concat([
      Buffer.from([0x81, 0xfe, text.length >> 8, text.length & 255, 0, 0, 0, 0]),
      Buffer.from(text),
    ]);
  /** The beginning of a 24 MiB frame. */
  const long = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0]);

  test("that keeps sending while its wrong token is delayed is disconnected", async () => {
    const { port, host } = new URL(gateway.url);
    const auth = { token: `skein_${"a".repeat(43)}` };
    const params = { protocol: { min: 1, max: 1 }, auth, client: { name: "nobody" } };
    const hello = frame(JSON.stringify({ type: "req", id: "1", method: "connect", params }));
    // The first errors are answered immediately.
    const mistakes = Array.from({ length: 11 }, () => gateway.rpc("agents.list", {}, auth.token));
    await Promise.all(mistakes);
    const socket = connect(Number(port), "127.0.0.1").on("error", () => undefined);
    sockets.push(socket);
    const over = new Promise((resolve) => socket.once("close", () => resolve("over")));
    let isRefused = false;
    socket.on("data", (bytes) => {
      if (bytes.includes("unauthorized")) isRefused = true;
    });
    await new Promise<void>((resolve) => {
      socket.once("data", () => resolve());
      const key = `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`;
      const upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key];
      socket.write(`${["GET /ws HTTP/1.1", `Host: ${host}`, ...upgrade].join("\r\n")}\r\n\r\n`);
    });
    socket.write(Buffer.concat([hello, long, Buffer.alloc(1024 * 1024)]));
    expect([await over, isRefused]).toEqual(["over", false]);
  });
});
