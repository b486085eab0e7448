// A Skein instance that serves MCP through its own gateway in a server on loopback.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Params, Result } from "../../src/entry-client.ts";
import type { FilesStore } from "../../src/entry-store.ts";
import type { Skein } from "../../src/index.ts";
import { closeLater } from "./mcp-client.ts";

export type Rights = Params<"tokens.create">;

export interface McpGateway {
  readonly url: string;
  /** The token for requests that have none. */
  readonly own: Result<"tokens.create">;
  create(rights: Rights): Promise<Result<"tokens.create">>;
}

/** `rights` are those of requests without a token. The Skein instance needs a folder. */
export async function startMcp(
  skein: Skein,
  rights: Rights = { scopes: ["read", "write"] },
): Promise<McpGateway> {
  const gateway = await skein.mount();
  const admin = readFileSync(join((skein.store as FilesStore).root, "token"), "utf8").trim();
  let usual = "";
  const server = createServer((request, response) => {
    request.headers.authorization ??= `Bearer ${usual}`;
    gateway.handler(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeLater(async () => {
    await gateway.close();
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const create = async (wanted: Rights) => {
    const answer = await fetch(`${url}/rpc/tokens.create`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${admin}` },
      body: JSON.stringify(wanted),
    });
    return (await answer.json()) as Result<"tokens.create">;
  };
  const own = await create(rights);
  usual = own.token;
  return { url: `${url}/mcp`, own, create };
}
