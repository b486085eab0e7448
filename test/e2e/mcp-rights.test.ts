import type { Client } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, test } from "vitest";
import { closeAll, connected, rehearsedSkein, revisions } from "../support/mcp-client.ts";
import type { Rights } from "../support/mcp-gateway.ts";
import { startMcp } from "../support/mcp-gateway.ts";

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

describe.each(revisions)("permissions over MCP, revision %s", (revision) => {
  async function open() {
    const skein = await rehearsedSkein({ visibility: "agent" });
    const gateway = await startMcp(skein);
    const connectWith = async (rights: Rights) =>
      connected(gateway, revision, { token: (await gateway.create(rights)).token });
    return { skein, gateway, connectWith };
  }

  test("[GMC4] reading requires the scope read, starting work requires write, and tools/list shows no more", async () => {
    const { connectWith } = await open();
    const reader = await connectWith({ scopes: ["read"] });
    expect(await names(reader)).toEqual(reading);
    const spawn = { name: "sessions_spawn", arguments: { task: "repeat one" } };
    expect(await reader.callTool(spawn)).toMatchObject({
      isError: true,
      structuredContent: { status: "forbidden", code: "forbidden", error: expect.stringContaining("write") },
    });
    const writer = await connectWith({ scopes: ["write"] });
    expect(await names(writer)).toEqual(["sessions_send", "sessions_spawn", "sessions_yield", "subagents"]);
    expect(await writer.callTool(spawn)).toMatchObject({ structuredContent: { status: "ok" } });
    expect(writer.getServerCapabilities()).not.toHaveProperty("resources");
    const other = await connectWith({ scopes: ["tools", "admin"] });
    expect(await names(other)).toEqual([]);
  });

  test("[GMC2] the token determines the user, and a token for all users acts as the unnamed user", async () => {
    const { skein, gateway } = await open();
    const ann = await gateway.create({ userId: "ann", scopes: ["read", "write"] });
    const everyone = await gateway.create({ allUsers: true, scopes: ["read", "write", "admin"] });
    await skein.session({ userId: "ann", sessionKey: "agent:main:main" }).send("repeat hers").result;
    await skein.session({ sessionKey: "agent:main:main" }).send("repeat unnamed").result;
    const read = async (token: string) => {
      const client = await connected(gateway, revision, { token });
      const { contents } = await client.readResource({ uri: "skein://sessions/main" });
      return JSON.stringify(contents);
    };
    expect(await read(ann.token)).toContain("hers");
    expect(await read(everyone.token)).toContain("unnamed");
    const all = await connected(gateway, revision, { token: everyone.token });
    await all.callTool({ name: "sessions_spawn", arguments: { task: "repeat x" } });
    expect(
      await skein.session({ sessionKey: `agent:main:node:mcp-${everyone.tokenId}` }).record(),
    ).not.toBeNull();
  });

  test("only admins see file paths", async () => {
    const { skein, connectWith } = await open();
    await skein.session({ sessionKey: "agent:main:main" }).send("repeat one").result;
    const listed = async (scopes: Rights["scopes"]) => {
      const client = await connectWith({ scopes });
      const { structuredContent } = await client.callTool({ name: "sessions_list", arguments: {} });
      return (structuredContent as { sessions: object[] }).sessions;
    };
    const [shown] = await listed(["read"]);
    expect(shown).toMatchObject({ key: "main" });
    expect(shown).not.toHaveProperty("transcriptPath");
    expect(await listed(["read", "admin"])).toMatchObject([{ transcriptPath: expect.any(String) }]);
  });

  test("?agent= selects the acting agent", async () => {
    const { skein, gateway } = await open();
    const client = await connected(gateway, revision, { agent: "other" });
    await client.callTool({ name: "sessions_spawn", arguments: { task: "repeat x" } });
    expect(
      await skein.session({ sessionKey: `agent:other:node:mcp-${gateway.own.tokenId}` }).record(),
    ).not.toBeNull();
    const nobody = await connected(gateway, revision, { agent: "nobody" });
    const refused = await nobody.callTool({ name: "sessions_spawn", arguments: { task: "repeat x" } });
    expect(refused).toMatchObject({ isError: true, structuredContent: { code: "not_found" } });
    const unfit = await fetch(`${gateway.url}?agent=..%2F..`, { method: "POST", body: "{}" });
    expect([unfit.status, await unfit.text()]).toEqual([400, expect.stringContaining("not an agent ID")]);
  });

  test("a repeated call with one idempotency key is executed once", async () => {
    const { skein, gateway } = await open();
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

describe("connections of older revisions", () => {
  const opening = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "0" } },
  };
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const post = (url: string, body: object, more: Readonly<Record<string, string>> = {}) =>
    fetch(url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });

  test("a connection belongs to the token that opened it, and ends when it is deleted", async () => {
    const gateway = await startMcp(await rehearsedSkein());
    const thief = await gateway.create({ scopes: ["read", "write"] });
    const begun = await post(gateway.url, opening);
    const id = begun.headers.get("mcp-session-id") ?? "";
    expect(id).not.toBe("");
    const ping = { jsonrpc: "2.0", id: 2, method: "ping" };
    const own = { "mcp-session-id": id };
    expect((await post(gateway.url, ping, own)).status).toBe(200);
    const theirs = { ...own, authorization: `Bearer ${thief.token}` };
    expect((await post(gateway.url, ping, theirs)).status).toBe(404);
    expect((await fetch(gateway.url, { method: "DELETE", headers: { ...headers, ...own } })).status).toBe(
      200,
    );
    expect((await post(gateway.url, ping, own)).status).toBe(404);
    expect((await post(gateway.url, ping)).status).toBe(400);
  });

  test("beyond the limit, the connection that was silent longest is closed", async () => {
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
