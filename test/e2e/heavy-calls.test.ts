import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, expect, test } from "vitest";
import { gatewayPieces } from "../../src/app/gateway.ts";
import { openGatewayWith } from "../support/gateway-inside.ts";
import { newClient } from "../support/mcp-client.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";

const listed = { name: "sessions_list", arguments: {} };
const light = { name: "agents_list", arguments: {} };
const sessionKey = "agent:main:node:x";

let gateway: WholeGateway | null = null;
afterEach(() => gateway?.close());

async function connectMcp({ url }: WholeGateway, token: string) {
  const mcp = newClient("2025-11-25");
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await mcp.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  return mcp;
}

test.each(["MCP", "tools.invoke"] as const)(
  "a session tool that reads much counts as a heavy call of its token: %s",
  async (door) => {
    const released = Promise.withResolvers<void>();
    const bothBegun = Promise.withResolvers<void>();
    let begun = 0;
    const handlers: typeof gatewayPieces.handlers = (deps) => {
      const all = gatewayPieces.handlers(deps);
      const usage: (typeof all)["sessions.usage"] = async (params, call) => {
        begun += 1;
        if (begun === 2) bothBegun.resolve();
        await released.promise;
        return all["sessions.usage"](params, call);
      };
      return { ...all, "sessions.usage": usage };
    };
    gateway = await openGatewayWith({ config: "", pieces: { handlers }, clock: { now: () => Date.now() } });
    const token = await gateway.token({ scopes: ["read", "write", "tools"], userId: "ann" });
    const client = await gateway.client(token);
    const invoke = (tool: typeof listed) => client.call("tools.invoke", { sessionKey, ...tool });
    const mcp = await connectMcp(gateway, token);
    const call = (tool: typeof listed) => (door === "MCP" ? mcp.callTool(tool) : invoke(tool));
    const held = [client.call("sessions.usage", {}), client.call("sessions.usage", {})];
    await bothBegun.promise;
    const order: string[] = [];
    const queued = call(listed).then(() => order.push("sessions_list"));
    for (let at = 0; at < 10; at += 1) await call(light);
    order.push("released");
    released.resolve();
    await Promise.all([...held, queued]);
    expect(order).toEqual(["released", "sessions_list"]);
    await mcp.close();
  },
);
