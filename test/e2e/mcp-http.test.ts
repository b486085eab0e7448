import type { Client } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import {
  closeAll,
  connected,
  noticesOf,
  rehearsedSkein,
  revisions,
  subscribe,
} from "../support/mcp-client.ts";
import { startMcp } from "../support/mcp-gateway.ts";

afterEach(closeAll);

type Fields = Readonly<Record<string, unknown>>;

async function call(client: Client, name: string, args: Fields = {}): Promise<Fields> {
  const { structuredContent } = await client.callTool({ name, arguments: args });
  return structuredContent as Fields;
}

describe.each(revisions)("MCP over HTTP, revision %s", (revision) => {
  test("[GMC1] lists the ten tools with schemas of arguments and results, and annotations", async () => {
    const client = await connected(await startMcp(await rehearsedSkein()), revision);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toHaveLength(10);
    for (const { inputSchema, outputSchema, annotations } of tools) {
      expect(inputSchema.type).toBe("object");
      expect(outputSchema).toMatchObject({ type: "object", anyOf: expect.any(Array) });
      expect(annotations?.title).toEqual(expect.any(String));
    }
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
    expect(hints.sessions_list).toMatchObject({ readOnlyHint: true, openWorldHint: false });
    expect(hints.sessions_send).toMatchObject({ readOnlyHint: false, destructiveHint: false });
    expect(hints.subagents).toMatchObject({ readOnlyHint: false, destructiveHint: true });
    expect(client.getServerVersion()).toMatchObject({ name: "skein", version: manifest.version });
  });

  test("[GMC2] spawns and sends as the token's asker, and reading creates no session", async () => {
    const skein = await rehearsedSkein();
    const gateway = await startMcp(skein);
    const ownKey = `agent:main:node:mcp-${gateway.own.tokenId}`;
    const client = await connected(gateway, revision);
    await client.listTools();
    expect(await call(client, "sessions_list")).toMatchObject({ count: 0 });
    expect(await call(client, "agents_list")).toMatchObject({ requester: "main" });
    expect(await skein.session({ sessionKey: ownKey }).record()).toBeNull();
    const args = { task: "repeat good morning", background: false, mode: "session", label: "child" };
    const spawned = await call(client, "sessions_spawn", args);
    expect(spawned).toMatchObject({ status: "ok", outcome: "ok", label: "child" });
    expect(await skein.session({ sessionKey: ownKey }).record()).not.toBeNull();
    const sent = await call(client, "sessions_send", {
      label: "child",
      message: "repeat good night",
      timeoutSeconds: 600,
    });
    expect(sent).toMatchObject({ status: "ok", reply: "good night" });
    const listed = await call(client, "sessions_list");
    expect(listed).toMatchObject({
      sessions: expect.arrayContaining([
        expect.objectContaining({
          key: spawned.childSessionKey,
          spawnedBy: `node:mcp-${gateway.own.tokenId}`,
        }),
      ]),
    });
  });

  test("a refusal is an error with the same object, also as text", async () => {
    const client = await connected(await startMcp(await rehearsedSkein()), revision);
    await client.listTools();
    const gone = await client.callTool({ name: "sessions_history", arguments: { sessionKey: "cron:none" } });
    expect(gone).toMatchObject({ isError: true, structuredContent: { status: "error", code: "not_found" } });
    const [text] = gone.content as { text: string }[];
    expect(JSON.parse(text?.text ?? "")).toEqual(gone.structuredContent);
    const unfit = await client.callTool({ name: "sessions_list", arguments: { asker: "agent:main:main" } });
    expect(unfit).toMatchObject({ isError: true, structuredContent: { code: "invalid_arguments" } });
    await expect(client.callTool({ name: "nothing", arguments: {} })).rejects.toThrow(/Unknown tool/);
  });

  test("a waiting call reports its progress step by step", async () => {
    const client = await connected(await startMcp(await rehearsedSkein()), revision);
    const heard: { readonly progress: number; readonly message?: string | undefined }[] = [];
    await client.callTool(
      { name: "sessions_spawn", arguments: { task: "repeat good morning", background: false } },
      { onprogress: (progress) => heard.push(progress) },
    );
    expect(heard.map(({ progress }) => progress)).toEqual(heard.map((_, index) => index + 1));
    expect(heard.map(({ message }) => message)).toEqual(
      expect.arrayContaining(["Waiting for the reply.", "Step 1: calling the model."]),
    );
  });

  test("a cancelled call stops waiting, and the run continues", async () => {
    const skein = await rehearsedSkein();
    const client = await connected(await startMcp(skein), revision);
    const leaving = new AbortController();
    const called = client.callTool(
      { name: "sessions_spawn", arguments: { task: "be slow for 300 seconds", background: false } },
      { signal: leaving.signal, onprogress: () => leaving.abort() },
    );
    await expect(called).rejects.toThrow();
    const [run] = await skein.runs.list();
    expect(["queued", "running"]).toContain(run?.state);
  });

  test("[GMC7] lists and reads sessions as resources, and only those visible to the asker", async () => {
    const skein = await rehearsedSkein();
    await skein.session({ sessionKey: "agent:main:main" }).send("repeat secret").result;
    const client = await connected(await startMcp(skein), revision);
    const { childSessionKey } = await call(client, "sessions_spawn", {
      task: "repeat good morning",
      background: false,
      label: "child",
    });
    const uri = `skein://sessions/${encodeURIComponent(String(childSessionKey))}`;
    const { resources } = await client.listResources();
    expect(resources).toContainEqual(
      expect.objectContaining({ uri, title: "child", mimeType: "application/json" }),
    );
    expect(resources.map(({ name }) => name)).not.toContain("main");
    const { contents } = await client.readResource({ uri });
    const [content] = contents as { text: string; mimeType: string; uri: string }[];
    expect(content).toMatchObject({ uri, mimeType: "application/json" });
    expect(JSON.parse(content?.text ?? "")).toMatchObject({
      sessionKey: childSessionKey,
      messages: [expect.objectContaining({ role: "user" }), expect.objectContaining({ role: "assistant" })],
    });
    await expect(client.readResource({ uri: "skein://sessions/main" })).rejects.toThrow(/visibility/);
    await expect(client.readResource({ uri: "skein://sessions/cron%3Anone" })).rejects.toThrow(/not found/);
    await expect(client.readResource({ uri: "skein://runs/1" })).rejects.toThrow(/No such resource/);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates).toMatchObject([{ uriTemplate: "skein://sessions/{key}" }]);
  });

  test("reports changes of its subscriptions and of the list, and nothing else", async () => {
    const skein = await rehearsedSkein();
    const client = await connected(await startMcp(skein), revision);
    const heard = noticesOf(client);
    const { childSessionKey } = await call(client, "sessions_spawn", {
      task: "repeat one",
      background: false,
      mode: "session",
    });
    const uri = `skein://sessions/${encodeURIComponent(String(childSessionKey))}`;
    await subscribe(client, revision, uri);
    heard.length = 0;
    await skein.session({ sessionKey: "agent:main:session:unseen" }).send("repeat two").result;
    await skein.session({ userId: "ann" }).send("repeat three").result;
    expect(heard).toEqual([]);
    await call(client, "sessions_send", {
      sessionKey: childSessionKey,
      message: "repeat four",
      timeoutSeconds: 600,
    });
    await expect.poll(() => heard).toContain(`updated ${uri}`);
    expect(heard.filter((line) => line.startsWith("updated") && line !== `updated ${uri}`)).toEqual([]);
    await call(client, "sessions_spawn", { task: "repeat five", background: false });
    await expect.poll(() => heard).toContain("list changed");
  });
});
