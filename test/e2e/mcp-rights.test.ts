import type { Client } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, test } from "vitest";
import type { Principal } from "../../src/gateway/auth/principal.ts";
import { closeAll, connected, rehearsedSkein, revisions } from "../support/mcp-client.ts";
import { principal, startMcp } from "../support/mcp-gateway.ts";

afterEach(closeAll);

const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
const reading = [
  "sessions_list",
  "sessions_history",
  "session_status",
  "session_search",
  "session_list",
  "agents_list",
];

describe.each(revisions)("rights over MCP, revision %s", (revision) => {
  async function gatewayFor(tokens: Readonly<Record<string, Partial<Principal>>>) {
    const skein = await rehearsedSkein({ visibility: "agent" });
    const gateway = await startMcp(skein);
    for (const [token, rights] of Object.entries(tokens)) gateway.as(token, principal(rights));
    return { skein, gateway };
  }

  test("[GMC4] looking needs the scope read, setting something off needs write, and tools/list shows no more", async () => {
    const { gateway } = await gatewayFor({
      reader: { scopes: ["read"] },
      writer: { scopes: ["write"] },
      other: { scopes: ["tools", "admin"] },
    });
    const reader = await connected(gateway, revision, { token: "reader" });
    expect(await names(reader)).toEqual(reading);
    const spawn = { name: "sessions_spawn", arguments: { task: "repeat one" } };
    expect(await reader.callTool(spawn)).toMatchObject({
      isError: true,
      structuredContent: { status: "forbidden", code: "forbidden", error: expect.stringContaining("write") },
    });
    const writer = await connected(gateway, revision, { token: "writer" });
    expect(await names(writer)).toEqual(["sessions_send", "sessions_spawn", "sessions_yield", "subagents"]);
    expect(await writer.callTool(spawn)).toMatchObject({ structuredContent: { status: "ok" } });
    expect(writer.getServerCapabilities()).not.toHaveProperty("resources");
    const other = await connected(gateway, revision, { token: "other" });
    expect(await names(other)).toEqual([]);
  });

  test("[GMC2] whose sessions these are is for the token to say, and everybody's token is the unnamed user's", async () => {
    const { skein, gateway } = await gatewayFor({
      ann: { user: "ann" },
      all: { user: "*", tokenId: "ffff", scopes: ["read", "write", "admin"] },
    });
    await skein.session({ userId: "ann", sessionKey: "agent:main:main" }).send("repeat hers").result;
    await skein.session({ sessionKey: "agent:main:main" }).send("repeat unnamed").result;
    const read = async (token: string) => {
      const client = await connected(gateway, revision, { token });
      const { contents } = await client.readResource({ uri: "skein://sessions/main" });
      return JSON.stringify(contents);
    };
    expect(await read("ann")).toContain("hers");
    expect(await read("all")).toContain("unnamed");
    const all = await connected(gateway, revision, { token: "all" });
    await all.callTool({ name: "sessions_spawn", arguments: { task: "repeat x" } });
    expect(await skein.session({ sessionKey: "agent:main:node:mcp-ffff" }).record()).not.toBeNull();
  });

  test("where a file lies is told to admins alone", async () => {
    const skein = await rehearsedSkein({ visibility: "agent" }, { onDisk: true });
    const gateway = await startMcp(skein);
    gateway.as("reader", principal({ scopes: ["read"] }));
    gateway.as("admin", principal({ scopes: ["read", "admin"] }));
    await skein.session({ sessionKey: "agent:main:main" }).send("repeat one").result;
    const listed = async (token: string) => {
      const client = await connected(gateway, revision, { token });
      const { structuredContent } = await client.callTool({ name: "sessions_list", arguments: {} });
      return (structuredContent as { sessions: object[] }).sessions;
    };
    const [shown] = await listed("reader");
    expect(shown).toMatchObject({ key: "main" });
    expect(shown).not.toHaveProperty("transcriptPath");
    expect(await listed("admin")).toMatchObject([{ transcriptPath: expect.any(String) }]);
  });

  test("?agent= names the agent that is spoken for", async () => {
    const { skein, gateway } = await gatewayFor({});
    const client = await connected(gateway, revision, { agent: "other" });
    await client.callTool({ name: "sessions_spawn", arguments: { task: "repeat x" } });
    expect(await skein.session({ sessionKey: "agent:other:node:mcp-a1b2c3" }).record()).not.toBeNull();
    const nobody = await connected(gateway, revision, { agent: "nobody" });
    const refused = await nobody.callTool({ name: "sessions_spawn", arguments: { task: "repeat x" } });
    expect(refused).toMatchObject({ isError: true, structuredContent: { code: "not_found" } });
    const unfit = await fetch(`${gateway.url}?agent=..%2F..`, { method: "POST", body: "{}" });
    expect([unfit.status, await unfit.text()]).toEqual([400, expect.stringContaining("no id of an agent")]);
  });

  test("the same call under one idempotency key is done once", async () => {
    const { skein, gateway } = await gatewayFor({});
    const client = await connected(gateway, revision);
    const call = {
      name: "sessions_spawn",
      arguments: { task: "repeat once", background: false },
      _meta: { "skein/idempotencyKey": "order-17" },
    };
    const [first, second] = [await client.callTool(call), await client.callTool(call)];
    expect(second.structuredContent).toMatchObject({
      runId: (first.structuredContent as { runId: string }).runId,
    });
    const spawned = (await skein.runs.list()).filter(({ kind }) => kind === "spawn");
    expect(spawned).toHaveLength(1);
  });
});

describe("connections of the older revisions", () => {
  const opening = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "0" } },
  };
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const post = (url: string, body: object, more: Readonly<Record<string, string>> = {}) =>
    fetch(url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });

  test("a connection is for the token that began it, and ends when it is deleted", async () => {
    const gateway = await startMcp(await rehearsedSkein());
    gateway.as("thief", principal({ tokenId: "dddd" }));
    const begun = await post(gateway.url, opening);
    const id = begun.headers.get("mcp-session-id") ?? "";
    expect(id).not.toBe("");
    const ping = { jsonrpc: "2.0", id: 2, method: "ping" };
    const own = { "mcp-session-id": id };
    expect((await post(gateway.url, ping, own)).status).toBe(200);
    const theirs = { ...own, authorization: "Bearer thief" };
    expect((await post(gateway.url, ping, theirs)).status).toBe(404);
    expect((await fetch(gateway.url, { method: "DELETE", headers: { ...headers, ...own } })).status).toBe(
      200,
    );
    expect((await post(gateway.url, ping, own)).status).toBe(404);
    expect((await post(gateway.url, ping)).status).toBe(400);
  });

  test("beyond so many the one that was silent longest goes", async () => {
    const gateway = await startMcp(await rehearsedSkein());
    const ids: string[] = [];
    for (let at = 0; at < 33; at++) {
      const begun = await post(gateway.url, opening);
      await begun.text();
      ids.push(begun.headers.get("mcp-session-id") ?? "");
    }
    const ping = { jsonrpc: "2.0", id: 2, method: "ping" };
    const status = async (id = "") => (await post(gateway.url, ping, { "mcp-session-id": id })).status;
    expect(await status(ids[0])).toBe(404);
    expect(await status(ids[1])).toBe(200);
    expect(await status(ids[32])).toBe(200);
  });
});
