import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../support/cli.ts";
import type { Started } from "../support/cli-process.ts";
import { startCli } from "../support/cli-process.ts";
import type { Revision } from "../support/mcp-client.ts";
import { newClient, noticesOf, revisions, subscribe } from "../support/mcp-client.ts";
import { skeinProgram } from "../support/programs.ts";

let home = "";
let dir = "";
const clients: Client[] = [];
const started: Started[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "skein-mcp-"));
  dir = join(home, "skein");
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const each of started.splice(0)) each.child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

async function speaking(revision: Revision, ...args: readonly string[]) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [skeinProgram, "mcp", "--dir", dir, ...args],
    stderr: "pipe",
    cwd: home,
  });
  const notes: string[] = [];
  transport.stderr?.on("data", (chunk: Buffer) => notes.push(chunk.toString()));
  const client = newClient(revision);
  const heard = noticesOf(client);
  clients.push(client);
  await client.connect(transport);
  return { client, heard, notes };
}

describe.each(revisions)("skein mcp, revision %s", (revision) => {
  test("[GMC9] creates a folder, spawns, waits with progress, reads, and reports changes", async () => {
    const { client, heard, notes } = await speaking(revision);
    expect((await client.listTools()).tools).toHaveLength(10);
    const progress: number[] = [];
    const spawned = await client.callTool(
      {
        name: "sessions_spawn",
        arguments: { task: "repeat one", background: false, mode: "session", label: "child" },
      },
      { onprogress: (step) => progress.push(step.progress) },
    );
    const child = spawned.structuredContent as { childSessionKey: string; result: string };
    expect(child).toMatchObject({ status: "ok", outcome: "ok" });
    expect(progress.length).toBeGreaterThan(1);
    const uri = `skein://sessions/${encodeURIComponent(child.childSessionKey)}`;
    expect((await client.listResources()).resources.map((each) => each.uri)).toContain(uri);
    await subscribe(client, revision, uri);
    const sent = await client.callTool({
      name: "sessions_send",
      arguments: { label: "child", message: "repeat two", timeoutSeconds: 600 },
    });
    expect(sent.structuredContent).toMatchObject({ status: "ok", reply: "two" });
    await expect.poll(() => heard).toContain(`updated ${uri}`);
    const { contents } = await client.readResource({ uri });
    expect(JSON.stringify(contents)).toContain("two");
    expect(notes).toEqual([]);
    await client.close();
    const listed = await run(["sessions", "ls", "--json"], { cwd: home, env: { SKEIN_DIR: dir } });
    const keys = (JSON.parse(listed.out) as { sessions: { key: string }[] }).sessions.map(({ key }) => key);
    expect(keys).toContain("agent:main:node:mcp-local");
  });

  test("[GMC10] --user and --agent select the sessions and the acting agent", async () => {
    const other = await speaking(revision, "--agent", "other");
    const { structuredContent } = await other.client.callTool({ name: "agents_list", arguments: {} });
    expect(structuredContent).toMatchObject({ requester: "other" });
    await other.client.close();
    const { client } = await speaking(revision, "--user", "ann");
    await client.callTool({ name: "sessions_spawn", arguments: { task: "repeat one", background: false } });
    await client.close();
    const env = { SKEIN_DIR: dir };
    const unnamed = await run(["sessions", "ls", "--json"], { cwd: home, env });
    expect(JSON.parse(unnamed.out)).toMatchObject({ count: 0 });
    const anns = await run(["sessions", "ls", "--json", "--user", "ann"], { cwd: home, env });
    expect(JSON.parse(anns.out)).toMatchObject({ count: 2 });
  });
});

describe("skein mcp, the process", () => {
  const opening = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "test", version: "0" },
    },
  });

  const toolCall = (name: string, args: object) =>
    JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name, arguments: args } });

  test("[GMC11] ends when its input ends, and its output contains only MCP", async () => {
    const mcp = startCli(dir, "mcp");
    started.push(mcp);
    mcp.write(`${opening}\n`);
    await mcp.until(/"protocolVersion"/);
    mcp.endInput();
    expect(await mcp.end()).toBe(0);
    const lines = mcp.out.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { jsonrpc: string }).jsonrpc)).toEqual(["2.0"]);
    expect(mcp.err).toBe("");
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "[GMC11] %s ends it too, and running work is left in a recoverable state",
    async (signal) => {
      const mcp = startCli(dir, "mcp");
      started.push(mcp);
      mcp.write(`${opening}\n`);
      await mcp.until(/"protocolVersion"/);
      mcp.write(`${toolCall("sessions_spawn", { task: "be slow for 300 seconds" })}\n`);
      await mcp.until(/childSessionKey/);
      mcp.child.kill(signal);
      expect(await mcp.end()).toBe(0);
      const listed = await run(["runs", "ls", "--json"], { cwd: home, env: { SKEIN_DIR: dir } });
      const { runs } = JSON.parse(listed.out) as { runs: { state: string }[] };
      expect(runs.map(({ state }) => state)).toEqual(["queued"]);
    },
  );

  test("[GMC11] a host that ends the input, and asks to stop during the shutdown, waits for the end", async () => {
    const mcp = startCli(dir, "mcp");
    started.push(mcp);
    mcp.write(`${opening}\n`);
    await mcp.until(/"protocolVersion"/);
    mcp.write(`${toolCall("sessions_spawn", { task: "be slow for 300 seconds" })}\n`);
    await mcp.until(/childSessionKey/);
    mcp.endInput();
    mcp.child.kill("SIGTERM");
    expect(await mcp.end()).toBe(0);
  });
});
