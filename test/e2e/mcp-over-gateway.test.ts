import type { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeEach, expect, test } from "vitest";
import { newClient, noticesOf, subscribe } from "../support/mcp-client.ts";
import { skeinProgram } from "../support/programs.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let gateway: WholeGateway;
const clients: Client[] = [];

beforeEach(async () => {
  gateway = await wholeGateway();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await gateway.close();
});

async function speaking(env: Record<string, string>, ...args: readonly string[]) {
  const command = { command: process.execPath, args: [skeinProgram, "mcp", "--dir", gateway.root, ...args] };
  const transport = new StdioClientTransport({ ...command, env, stderr: "pipe", cwd: gateway.root });
  const notes: string[] = [];
  transport.stderr?.on("data", (chunk: Buffer) => notes.push(chunk.toString()));
  const client = newClient("2025-11-25");
  const heard = noticesOf(client);
  clients.push(client);
  await client.connect(transport);
  return { client, heard, notes };
}

async function keysOf(token?: string): Promise<readonly string[]> {
  const { sessions } = await (await gateway.client(token)).call("sessions.list", {});
  return sessions.map(({ key }) => key);
}

test("[CLG7] skein mcp uses the gateway, from a session that its first spawn creates", async () => {
  const { client, heard, notes } = await speaking({});
  const { tokenId = "" } = (await gateway.client()).hello;
  const asker = `agent:main:node:mcp-${tokenId}`;
  await client.callTool({ name: "sessions_list", arguments: {} });
  expect(await keysOf()).toEqual([]);
  const spawned = await client.callTool({
    name: "sessions_spawn",
    arguments: { task: "repeat one", background: false, mode: "session", label: "child" },
  });
  const child = spawned.structuredContent as { childSessionKey: string };
  expect(child).toMatchObject({ status: "ok", outcome: "ok", result: "one" });
  expect(await keysOf()).toContain(asker);
  const uri = `skein://sessions/${encodeURIComponent(child.childSessionKey)}`;
  await subscribe(client, "2025-11-25", uri);
  const message = { label: "child", message: "repeat two", timeoutSeconds: 600 };
  const sent = await client.callTool({ name: "sessions_send", arguments: message });
  expect(sent.structuredContent).toMatchObject({ status: "ok", reply: "two" });
  await expect.poll(() => heard).toContain(`updated ${uri}`);
  expect(notes).toEqual([]);
});

test("[CLG7] SKEIN_TOKEN determines the user and scopes, whatever --user says", async () => {
  const token = await gateway.token({ label: "ann", scopes: ["read", "write", "tools"], userId: "ann" });
  const { client } = await speaking({ SKEIN_TOKEN: token }, "--user", "bob");
  await client.callTool({ name: "sessions_spawn", arguments: { task: "repeat one", background: false } });
  const { tokenId = "" } = (await gateway.client(token)).hello;
  expect(await keysOf(token)).toContain(`agent:main:node:mcp-${tokenId}`);
  expect(await keysOf()).toEqual([]);
});
