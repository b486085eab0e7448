import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HttpToolServer } from "../../../test/support/mcp-http.ts";
import { startHttpToolServer } from "../../../test/support/mcp-http.ts";
import { pixel } from "../../../test/support/mcp-tools.ts";
import type { ToolCallContext } from "../contract.ts";
import type { McpTools } from "./open-servers.ts";
import { openMcpServers } from "./open-servers.ts";

let web: HttpToolServer;
let servers: McpTools;
beforeEach(async () => {
  web = await startHttpToolServer();
  servers = await openMcpServers({ t: { url: web.url, headers: { Authorization: "Bearer own" } } });
});
afterEach(async () => {
  await servers.close();
  await web.close();
});

async function use(name: string, args: object = {}, signal = new AbortController().signal) {
  const { tools, diagnostics } = await servers.tools();
  const tool = tools.find((each) => each.name === `t__${name}`);
  if (tool === undefined) throw new Error(`no ${name}: ${JSON.stringify(diagnostics)}`);
  return await tool.execute(args, { signal } as ToolCallContext);
}

describe("MCP tools over HTTP", () => {
  test("are listed and called, with the configured headers on every request", async () => {
    expect(await use("echo", { say: "hello" })).toEqual({ content: [{ type: "text", text: "hello" }] });
    expect(await use("picture")).toMatchObject({ content: [{ type: "image", data: pixel }] });
    expect(await use("fails")).toMatchObject({ isError: true });
    expect(new Set(web.requests.map(({ headers }) => headers.get("authorization")))).toEqual(
      new Set(["Bearer own"]),
    );
  });

  test("an abort is sent to the server", async () => {
    const aborting = new AbortController();
    const outcome = use("wait", {}, aborting.signal).catch((error: unknown) => error);
    const count = async () => {
      const [block] = (await use("counts")).content;
      return JSON.parse(block?.type === "text" ? block.text : "{}");
    };
    while ((await count()).waiting === 0);
    const reason = new Error("enough");
    aborting.abort(reason);
    expect(await outcome).toBe(reason);
    while ((await count()).cancelled === 0);
  });

  test("a session that the server forgot costs one failed call", async () => {
    expect(await use("echo", { say: "one" })).not.toHaveProperty("isError");
    web.forget();
    expect(await use("echo", { say: "two" })).toMatchObject({ isError: true });
    expect(await use("echo", { say: "three" })).toEqual({ content: [{ type: "text", text: "three" }] });
  });

  test("[MCT8] closing ends the session at the server", async () => {
    await use("echo", { say: "hello" });
    await servers.close();
    expect(web.requests.at(-1)?.method).toBe("DELETE");
  });

  test("[LIB23] servers that are unreachable or never answer are left out", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const others = await openMcpServers(
      { closed: { url: "http://127.0.0.1:1/" }, silent: { url: `http://127.0.0.1:${port}/` } },
      { startTimeoutMs: 500 },
    );
    const { tools, diagnostics } = await others.tools();
    await others.close();
    silent.close();
    expect(tools).toEqual([]);
    expect(diagnostics).toMatchObject([
      { server: "closed" },
      { server: "silent", note: expect.stringContaining("did not respond within 0.5 s") },
    ]);
  });

  test.each([
    ["both", { command: "a", url: "http://a" }],
    ["neither", { url: "" }],
    ["another scheme", { url: "file:///etc/passwd" }],
    ["an empty command", { command: "" }],
    ["a timeout of zero", { command: "a", timeoutMs: 0 }],
  ])("rejects a server with %s in the configuration", async (_, config) => {
    await expect(openMcpServers({ t: config })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining('MCP server "t"'),
    });
  });
});
