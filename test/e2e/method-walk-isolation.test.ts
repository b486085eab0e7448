import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import { eventually } from "../support/gateway-server.ts";
import { closeAll, connected, revisions } from "../support/mcp-client.ts";
import { WalkCalls } from "../support/walk-calls.ts";
import { insidesIn, markersIn } from "../support/walk-checks.ts";
import { readEvents } from "../support/walk-events.ts";
import type { WalkWorld } from "../support/walk-world.ts";
import { openWalk } from "../support/walk-world.ts";

let world: WalkWorld;
let calls: WalkCalls;

beforeAll(async () => {
  world = await openWalk();
  calls = new WalkCalls(world.gateway.url);
});
afterEach(closeAll);
afterAll(async () => {
  await calls?.close();
  await world?.close();
});

/** Returns one value from `/metrics`. */
async function figure(name: string): Promise<number> {
  const headers = { authorization: `Bearer ${world.gateway.admin}` };
  const text = await (await fetch(`${world.gateway.url}/metrics`, { headers })).text();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
}

const say = (token: string, sessionKey: string, message: string) =>
  calls.http(token, "sessions.send", {
    key: sessionKey,
    message,
    idempotencyKey: crypto.randomUUID(),
    timeoutMs: 150_000,
  });

describe("events of another user", () => {
  test("[GEV6] nothing of ann's is received over sockets and streams, by her keys and from the first event on", async () => {
    const { bob, ann } = world.tokens;
    const { url } = world.gateway;
    // Ann's events, followed by one of Bob's own under the same key, so that every stream has a last event.
    const shared = "agent:main:session:shadow-chat-http";
    const keys = [world.key, world.busy, world.long, shared];
    const socket = await calls.socket(bob);
    for (const params of [{}, { after: 0 }, { keys, after: 0 }, { events: ["run.*"], after: 0 }]) {
      expect((await calls.ws(bob, "sessions.subscribe", params)).code).toBe("ok");
    }
    const query = keys.map((key) => `keys=${encodeURIComponent(key)}`).join("&");
    const streams = await Promise.all([
      readEvents(url, bob, "/events", "0"),
      readEvents(url, bob, "/events"),
      readEvents(url, bob, `/events?${query}`, "1"),
      readEvents(url, bob, "/events?events=entry.appended&events=approval.*", "0"),
    ]);
    await say(ann, world.key, "repeat ANN-SECRET-70");
    await say(ann, shared, "repeat ANN-SECRET-73");
    const { fence } = (await world.runs.get(world.runId)) ?? { fence: -1 };
    const question = { toolCallId: "call-2", toolName: "pay", arguments: { to: "ANN-SECRET-71" } };
    await world.runs.requestApproval(
      { runId: world.runId, fence },
      { ...question, expiresAt: Date.now() + 3_600_000 },
    );
    await calls.http(ann, "sessions.rename", { key: world.key, name: "ANN-SECRET-72" });
    await say(bob, shared, "repeat the end of it");
    const ended = () => streams.map(({ text }) => text().includes("the end of it"));
    await eventually(ended).toEqual([true, true, true, true]);
    const heard = [JSON.stringify(socket.frames), ...streams.map(({ text }) => text())];
    for (const text of heard) {
      expect(markersIn(text, keys)).toEqual([]);
      expect(text).not.toContain(world.runId);
      expect(text).not.toContain(world.approvalId);
    }
    for (const { close } of streams) close();
  });

  test("[GEV6] a stream whose reader disconnects is closed, and the gateway continues", async () => {
    const stream = await readEvents(world.gateway.url, world.tokens.bob, "/events");
    const streams = () => figure("skein_gateway_subscriptions");
    const open = await streams();
    stream.close();
    await eventually(streams).toBe(open - 1);
    expect((await calls.http(world.tokens.bob, "sessions.list", {})).code).toBe("ok");
  });

  test("[GEV6] no stream of a named user is opened, and none without a token", async () => {
    const { url } = world.gateway;
    const status = async (path: string, token: string | null) => {
      const headers = token === null ? {} : { authorization: `Bearer ${token}` };
      const answer = await fetch(`${url}${path}`, { headers });
      await answer.body?.cancel();
      return answer.status;
    };
    expect(await status("/events?userId=ann", world.tokens.bob)).toBe(403);
    expect(await status("/events?userId=ann", world.tokens.unnamed)).toBe(403);
    expect(await status("/events", world.tokens.alone.write)).toBe(403);
    expect(await status("/events", null)).toBe(401);
    for (const path of ["/events", "/metrics", "/openapi.json", "/readyz"]) {
      expect(await status(path, world.tokens.revoked)).toBe(401);
      expect(await status(path, world.tokens.expired)).toBe(401);
    }
    expect(await status("/metrics", world.tokens.ann)).toBe(403);
    expect(await status("/metrics", world.gateway.admin)).toBe(200);
    const figures = await fetch(`${url}/metrics`, {
      headers: { authorization: `Bearer ${world.gateway.admin}` },
    });
    expect(markersIn(await figures.text(), {})).toEqual([]);
  });

  test("[GEV6] a socket whose token is revoked is closed before its next response", async () => {
    const { body } = await world.gateway.rpc("tokens.create", { scopes: ["read"], userId: "ann" });
    const { token, tokenId } = body as Result<"tokens.create">;
    const socket = await calls.socket(token);
    expect((await calls.ws(token, "sessions.get", { key: world.key })).code).toBe("ok");
    await world.gateway.rpc("tokens.revoke", { tokenId });
    const before = socket.frames.length;
    void calls.ws(token, "sessions.get", { key: world.key });
    expect((await socket.closed).code).toBe(4403);
    expect(socket.frames.length).toBe(before);
  });
});

describe("data of another user", () => {
  test("[GEV6] no blob of ann's is found by its hash, from another user's session", async () => {
    const { bob } = world.tokens;
    const key = "agent:main:session:own";
    await calls.http(bob, "sessions.create", { key });
    const nowhere = "0".repeat(64);
    const [theirs, nobodys] = await Promise.all(
      [world.sha256, nowhere].map((sha256) => calls.http(bob, "blobs.get", { key, sha256 })),
    );
    expect(theirs?.code).toBe("not_found");
    expect(theirs?.text.replace(world.sha256, nowhere)).toBe(nobodys?.text);
    expect(
      (await calls.http(world.tokens.ann, "blobs.get", { key: world.key, sha256: world.sha256 })).code,
    ).toBe("ok");
  });

  test("[GEV6] nothing is in lists, searches, totals and the trash", async () => {
    const { unnamed } = world.tokens;
    const asked = [
      ["sessions.list", { search: "ann-secret", includeGlobal: true, includeUnknown: true }],
      ["sessions.list", { archived: true }],
      ["sessions.list", { spawnedBy: world.key }],
      ["sessions.list", { label: world.label }],
      ["sessions.search", { query: "wanted" }],
      ["sessions.search", { query: "ANN-SECRET-8" }],
      ["sessions.trash", {}],
      ["runs.list", { rootId: world.runId }],
      ["runs.list", { startedBy: world.runId }],
      ["approvals.list", { open: false }],
      ["outbox.list", { states: ["queued", "dead"] }],
    ] as const;
    for (const [method, params] of asked) {
      const { payload, text } = await calls.http(unnamed, method, params);
      expect(payload, method).toMatchObject({ count: 0 });
      expect(markersIn(text, params)).toEqual([]);
    }
    const { payload } = await calls.http(unnamed, "sessions.usage", { by: ["day", "model", "agent"] });
    expect(payload).toMatchObject({ total: { totalTokens: 0 } });
  });

  test("[GEV6] the same idempotency key of two users means two runs", async () => {
    const params = {
      sessionKey: "agent:main:session:own",
      message: "repeat x",
      idempotencyKey: "ann-secret-41-once",
    };
    const { payload } = await calls.http(world.tokens.bob, "chat.send", params);
    expect((payload as Result<"chat.send">).runId).not.toBe(world.runId);
  });

  test.each(revisions)(
    "[GEV6] nothing is visible over MCP, revision %s: tools, resources and notifications",
    async (revision) => {
      const { bob, unnamed } = world.tokens;
      for (const token of [bob, unnamed]) {
        const client = await connected({ url: `${world.gateway.url}/mcp` }, revision, { token });
        const tools: [string, Record<string, unknown>][] = [
          ["sessions_list", { limit: 100 }],
          ["sessions_history", { sessionKey: world.busy }],
          ["sessions_history", { sessionKey: "ann-secret-28-busy" }],
          ["session_search", { query: "wanted" }],
          ["session_status", { sessionKey: world.busy }],
          ["session_list", {}],
          ["sessions_send", { sessionKey: world.busy, message: "hello" }],
          ["sessions_send", { label: world.label, message: "hello" }],
          ["subagents", { action: "kill", target: world.busy }],
          ["agents_list", {}],
        ];
        for (const [name, args] of tools) {
          const text = JSON.stringify(await client.callTool({ name, arguments: args }));
          expect(markersIn(text, args), `${name}: ${text}`).toEqual([]);
          expect(insidesIn(text, true), `${name}: ${text}`).toEqual([]);
        }
        const { resources } = await client.listResources();
        expect(markersIn(JSON.stringify(resources), {})).toEqual([]);
        const uri = `skein://sessions/${encodeURIComponent(world.busy)}`;
        await expect(client.readResource({ uri })).rejects.toThrow(/not found|No such/i);
      }
    },
  );
});

describe("limits of a token", () => {
  test("[GSA10] a token for all users requires the scope admin", async () => {
    for (const scopes of [["read"], ["write", "tools"], ["read", "write", "tools"]]) {
      const answer = await calls.http(world.gateway.admin, "tokens.create", { scopes, allUsers: true });
      expect(answer.code).toBe("invalid_request");
    }
  });

  test.each([
    ["agent", { agentId: "main", message: "x", idempotencyKey: "i", extraSystemPrompt: "obey" }],
    [
      "agent",
      { agentId: "main", message: "x", idempotencyKey: "i", provenance: { kind: "internal_system" } },
    ],
    ["sessions.create", { cwd: "/" }],
  ])(
    "[GSA10] %s with admin-only options is forbidden to others, and has no effect",
    async (method, params) => {
      const { plain } = world.tokens;
      const before = await calls.http(plain, "runs.list", {});
      const sessions = await calls.http(plain, "sessions.list", {});
      const answer = await calls.http(plain, method, params);
      expect(answer.code).toBe("forbidden");
      expect((await calls.http(plain, "runs.list", {})).text).toBe(before.text);
      expect((await calls.http(plain, "sessions.list", {})).text).toBe(sessions.text);
    },
  );
});
