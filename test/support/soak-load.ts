import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { WebSocket } from "ws";
import type { MethodName, Params, Result } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import { connectParams } from "./gateway-server.ts";

/** People and programs that connect to a gateway, do something, and leave, at about fifty requests per second. */

export interface Place {
  readonly url: string;
  readonly token: string;
}

type Visit = (round: number, signal: AbortSignal) => Promise<unknown>;

export interface Load {
  /** The number of completed visits. */
  readonly visits: number;
  readonly failures: readonly string[];
  /** Resolves when all clients have left. */
  leave(): Promise<void>;
}

export function startLoad(place: Place, name: string): Load {
  const leaving = new AbortController();
  const failures: string[] = [];
  let visits = 0;
  const again = async (kind: string, everyMs: number, visit: Visit) => {
    for (let round = 0; !leaving.signal.aborted; round += 1) {
      await visit(round, leaving.signal).catch((error: unknown) =>
        failures.push(`${kind}: ${String(error)}`),
      );
      visits += 1;
      await pause(everyMs, undefined, { signal: leaving.signal }).catch(() => undefined);
    }
  };
  const all = Object.entries(visitsTo(place, name)).map(([kind, [everyMs, visit]]) =>
    again(kind, everyMs, visit),
  );
  return {
    get visits() {
      return visits;
    },
    failures,
    leave: async () => {
      leaving.abort();
      await Promise.all(all);
    },
  };
}

function visitsTo(place: Place, name: string): Readonly<Record<string, readonly [number, Visit]>> {
  return {
    talks: [200, (round) => talk(place, `agent:main:session:${name}-${round}`)],
    follows: [300, () => follow(place)],
    vanishes: [150, (round) => vanish(place, round)],
    streams: [250, (_round, signal) => stream(place, signal)],
    waits: [400, (round) => waitInVain(place, `agent:main:session:${name}-slow-${round}`)],
    uses: [100, () => useTools(place)],
    mcp: [300, (round) => speakMcp(place, round)],
    errs: [200, (round) => err(place, round)],
  };
}

/** Closes connections that only the client's pool keeps open. */
const close = { connection: "close" };

async function rpc<M extends MethodName>(place: Place, method: M, params: Params<M>): Promise<Result<M>> {
  const response = await fetch(`${place.url}/rpc/${method}`, {
    method: "POST",
    headers: { ...close, authorization: `Bearer ${place.token}`, "content-type": "application/json" },
    body: JSON.stringify(params),
  });
  const body = (await response.json()) as Result<M>;
  if (!response.ok) throw new Error(`${method}: ${JSON.stringify(body)}`);
  return body;
}

async function talk(place: Place, sessionKey: string): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    const message = `repeat good morning, ${turn}`;
    const { runId } = await rpc(place, "chat.send", {
      sessionKey,
      message,
      idempotencyKey: `${sessionKey}-${turn}`,
    });
    await rpc(place, "agent.wait", { runId, timeoutMs: 150_000 });
    await rpc(place, "chat.history", { sessionKey, limit: 20 });
  }
  await rpc(place, "sessions.list", { limit: 20 });
  await remove(place, sessionKey);
}

/** Deleted permanently, so that the folder does not grow with every visit. */
async function remove(place: Place, key: string): Promise<void> {
  const { sessionId } = await rpc(place, "sessions.resolve", { key });
  await rpc(place, "sessions.delete", { key });
  await rpc(place, "sessions.delete", { key: sessionId, purge: true });
}

async function follow(place: Place): Promise<void> {
  const client = await connect(place.url, { token: place.token, reconnect: false, timeoutMs: 150_000 });
  try {
    for (const kinds of [["run.ended"], ["run.*", "session.*"]]) {
      const events = client.events({ events: kinds });
      await events.ready;
      await client.call("sessions.preview", { keys: ["agent:main:main"] });
      events.close();
    }
  } finally {
    await client.close();
  }
}

/** A socket that is closed with pending requests. */
async function vanish({ url, token }: Place, round: number): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws`);
  socket.on("error", () => undefined);
  await once(socket, "open");
  const send = (id: string, method: string, params: unknown) =>
    socket.send(JSON.stringify({ type: "req", id, method, params }));
  send("1", "connect", connectParams(token));
  await once(socket, "message");
  send("2", "sessions.subscribe", { after: 0 });
  send("3", "agent.wait", { runId: "none", timeoutMs: 60_000 });
  send("4", "sessions.list", {});
  if (round % 2 === 0) await once(socket, "message");
  const gone = once(socket, "close");
  socket.terminate();
  await gone;
}

async function stream({ url, token }: Place, leaving: AbortSignal): Promise<void> {
  const ended = new AbortController();
  const headers = { ...close, authorization: `Bearer ${token}`, "last-event-id": "1" };
  const { body } = await fetch(`${url}/events`, { headers, signal: ended.signal });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  for (let part = 0; part < 3 && !leaving.aborted; part += 1) await reader.read();
  ended.abort();
  await reader.closed.catch(() => undefined);
}

async function waitInVain(place: Place, sessionKey: string): Promise<void> {
  const message = "be slow for 300 seconds";
  const { runId } = await rpc(place, "chat.send", { sessionKey, message, idempotencyKey: sessionKey });
  await rpc(place, "agent.wait", { runId, timeoutMs: 200 });
  await rpc(place, "chat.abort", { sessionKey });
  await rpc(place, "agent.wait", { runId, timeoutMs: 150_000 });
  await remove(place, sessionKey);
}

async function useTools(place: Place): Promise<void> {
  const sessionKey = "agent:main:main";
  const { runId } = await rpc(place, "chat.send", {
    sessionKey,
    message: "repeat yes",
    idempotencyKey: "once",
  });
  await rpc(place, "agent.wait", { runId, timeoutMs: 150_000 });
  for (const name of ["sessions_list", "session_status", "agents_list"]) {
    await rpc(place, "tools.invoke", { sessionKey, name, arguments: {} });
  }
}

/** With a handshake. Every other time, there is no close frame. */
async function speakMcp({ url, token }: Place, round: number): Promise<void> {
  const headers = {
    ...close,
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = async (message: object, more: Record<string, string> = {}) => {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    const response = await fetch(`${url}/mcp`, { method: "POST", headers: { ...headers, ...more }, body });
    await response.text();
    if (!response.ok) throw new Error(`${response.status} of /mcp`);
    return response.headers.get("mcp-session-id") ?? "";
  };
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "soak", version: "1" },
  };
  const session = { "mcp-session-id": await post({ id: 1, method: "initialize", params }) };
  await post({ method: "notifications/initialized" }, session);
  await post({ id: 2, method: "tools/call", params: { name: "sessions_list", arguments: {} } }, session);
  if (round % 2 === 0) return;
  await fetch(`${url}/mcp`, { method: "DELETE", headers: { ...headers, ...session } }).then((end) =>
    end.text(),
  );
}

/** Invalid requests are answered and leave nothing behind either. */
async function err(place: Place, round: number): Promise<void> {
  const asks = ["sessions.get", "runs.get", "nothing", "chat.send"];
  const response = await fetch(`${place.url}/rpc/${asks[round % asks.length]}`, {
    method: "POST",
    headers: { ...close, authorization: `Bearer ${place.token}`, "content-type": "application/json" },
    body: round % 3 === 0 ? "{torn" : JSON.stringify({ key: "agent:main:none" }),
  });
  await response.text();
  if (response.ok) throw new Error("A mistake was taken");
}
