import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let gateway: WholeGateway;
beforeEach(async () => {
  gateway = await wholeGateway();
});
afterEach(() => gateway.close());

async function subscriptions(): Promise<number> {
  const headers = { authorization: `Bearer ${gateway.admin}` };
  const figures = await (await fetch(`${gateway.url}/metrics`, { headers })).text();
  return Number(/^skein_gateway_subscriptions (\d+)$/m.exec(figures)?.[1]);
}

describe("first steps with a gateway", () => {
  test("[NWU1] a reader of /events that disconnects is removed, and the gateway continues", async () => {
    const leaving = new AbortController();
    const headers = { authorization: `Bearer ${gateway.admin}` };
    const stream = await fetch(`${gateway.url}/events?events=run.*`, { headers, signal: leaving.signal });
    const reader = stream.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("retry: 1000\n\n");
    await expect.poll(subscriptions).toBe(1);
    leaving.abort();
    await expect.poll(subscriptions).toBe(0);
    expect((await gateway.rpc("sessions.list")).status).toBe(200);
  });

  test("[NWU2] the session of an MCP client can be inspected before it exists", async () => {
    const invoke = (sessionKey: string, name: string, args = {}) =>
      gateway.rpc("tools.invoke", { sessionKey, name, arguments: args });
    const asker = "agent:main:node:mcp-local";
    expect((await invoke(asker, "sessions_list")).body).toMatchObject({ result: { count: 0 } });
    expect((await gateway.rpc("sessions.list")).body).toMatchObject({ count: 0 });
    expect((await invoke("agent:main:main", "sessions_list")).status).toBe(404);
    expect((await invoke("agent:nobody:node:mcp-local", "sessions_list")).body).toMatchObject({
      result: { count: 0 },
    });
    expect((await gateway.rpc("sessions.list")).body).toMatchObject({ count: 0 });
    const spawned = await invoke(asker, "sessions_spawn", { task: "repeat one", background: false });
    expect(spawned.body).toMatchObject({ isError: false, result: { result: "one" } });
    expect((await gateway.rpc("sessions.resolve", { key: asker })).status).toBe(200);
  });
});
