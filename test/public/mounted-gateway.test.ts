import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import type { MountedGateway, MountOptions, Skein } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { connected } from "../support/mcp-client.ts";
import { closeAll, newFolder } from "../support/skein.ts";
import { soon } from "../support/soon.ts";

const closing: { close(options?: { graceMs?: number }): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0)) await each.close({ graceMs: 0 });
  await closeAll();
});

async function open(options: Parameters<typeof createSkein>[0]) {
  const skein = await createSkein({ env: {}, quiet: true, ...options });
  closing.push(skein);
  return skein;
}

const agents = [defineAgent({ id: "main", model: "rehearsal/basic" })];

describe("a gateway in your own server", () => {
  async function mounted(
    options: MountOptions = {},
    mount = (skein: Skein): Promise<MountedGateway> => skein.mount(options),
    dir = newFolder(),
  ) {
    const skein = await open({ dir, config: null, agents });
    const gateway = await mount(skein);
    const server = createServer((request, response) => {
      if (request.url === "/mine") response.end("mine");
      else gateway.handler(request, response);
    });
    server.on("upgrade", gateway.upgrade);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.unshift({
      close: async () => {
        server.closeAllConnections();
        server.close();
      },
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const token = readFileSync(join(dir, "token"), "utf8").trim();
    const rpc = (method: string, params: object, headers: Record<string, string> = {}) =>
      fetch(`${url}/rpc/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
        body: JSON.stringify(params),
      });
    return { skein, dir, gateway, url, token, rpc };
  }

  test("[LBR16] serves HTTP, WebSocket and MCP next to the server's own paths", async () => {
    const { skein, url, token, rpc } = await mounted();
    expect(await (await fetch(`${url}/mine`)).text()).toBe("mine");
    const hello = { sessionKey: "main", message: "repeat hello", idempotencyKey: "one" };
    const { runId } = (await (await rpc("chat.send", hello)).json()) as { runId: string };
    expect((await skein.ended(runId)).outcome?.reply).toBe("hello");
    const client = await connect(url, { token });
    expect((await client.call("sessions.list", {})).count).toBe(1);
    await client.close();
    const mcp = await connected({ url: `${url}/mcp` }, "2025-11-25", { token });
    expect((await mcp.listTools()).tools.map(({ name }) => name)).toContain("sessions_send");
    await mcp.close();
  });

  test("[LBR16] [CON3] serves everything under a path, as Express does it", async () => {
    const dir = newFolder();
    const skein = await open({ dir, config: null, agents });
    const gateway = await skein.mount({ basePath: "/skein" });
    // Like `app.use("/skein", gateway.handler)`: Express removes the path and keeps the original URL.
    const server = createServer((request, response) => {
      const { url = "" } = request;
      const rest = /^\/skein(?=[/?]|$)(.*)$/.exec(url)?.[1];
      if (rest === undefined) return void response.end("mine");
      Object.assign(request, { originalUrl: url, url: rest.startsWith("/") ? rest : `/${rest}` });
      gateway.handler(request, response);
    });
    server.on("upgrade", gateway.upgrade).listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.unshift({ close: async () => void server.close() });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await (await fetch(`${url}/mine`)).text()).toBe("mine");
    const page = await fetch(`${url}/skein?x=1`);
    expect([page.status, page.url]).toEqual([200, `${url}/skein/?x=1`]);
    const token = readFileSync(join(dir, "token"), "utf8").trim();
    const client = await connect(`${url}/skein`, { token });
    expect((await client.call("sessions.list", {})).count).toBe(0);
    await client.close();
  });

  test.each(["skein", "/skein/", "/rpc", ""])("[LBR16] refuses %j as a base path", async (basePath) => {
    const skein = await open({ dir: newFolder(), config: null, agents });
    await expect(skein.mount({ basePath })).rejects.toMatchObject({ code: "invalid_arguments" });
  });

  test("[LBR17] requires a token and a known host name", async () => {
    const { rpc, url, token } = await mounted({ allowedHosts: ["agents.example.com"] });
    expect((await rpc("sessions.list", {}, { authorization: "Bearer wrong" })).status).toBe(401);
    const byName = (host: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { host, "content-type": "application/json", authorization: `Bearer ${token}` };
        const sent = request(`${url}/rpc/sessions.list`, { method: "POST", headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on("error", reject);
        sent.end("{}");
      });
    expect(await byName("agents.example.com")).toBe(200);
    expect(await byName("evil.example.com")).toBe(403);
  });

  test("[LBR16] refuses requests after it is closed, and closes with the Skein", async () => {
    const { gateway, rpc, skein } = await mounted();
    await gateway.close();
    expect((await rpc("sessions.list", {})).status).toBe(503);
    await skein.close();
  });

  test("[LBR16] closes with the Skein while it is being mounted", async () => {
    const { rpc } = await mounted(
      {},
      async (skein) => (await Promise.all([skein.mount(), skein.close()]))[0],
    );
    expect((await rpc("sessions.list", {})).status).toBe(503);
  });

  test("[HLT12] a token that was revoked while the disk was full stays revoked", async () => {
    const flag = join(newFolder(), "full");
    vi.stubEnv("FULL_DISK_FLAG", flag);
    await import("../support/full-disk.ts");
    vi.unstubAllEnvs();
    const first = await mounted();
    type Created = Result<"tokens.create">;
    const call = async (method: string, params: object) => (await first.rpc(method, params)).json();
    const create = async () => (await call("tokens.create", { scopes: ["read"] })) as Created;
    const [one, other] = [await create(), await create()];
    const revoke = async ({ tokenId }: Created) => {
      writeFileSync(flag, "");
      expect(await call("tokens.revoke", { tokenId })).toMatchObject({ isUnsaved: true });
      rmSync(flag);
    };
    await revoke(one);
    const isUnsaved = async () => JSON.stringify(await call("tokens.list", {})).includes("isUnsaved");
    await soon(isUnsaved).toBe(false);
    await revoke(other);
    await first.skein.close();
    const { rpc } = await mounted({}, undefined, first.dir);
    const statusOf = async ({ token }: Created) =>
      (await rpc("sessions.list", {}, { authorization: `Bearer ${token}` })).status;
    expect([await statusOf(one), await statusOf(other)]).toEqual([401, 401]);
  });

  test("[LBR16] is refused for a memory store", async () => {
    const skein = await open({ memory: true, config: null, agents });
    await expect(skein.mount()).rejects.toMatchObject({ code: "unavailable" });
  });
});
