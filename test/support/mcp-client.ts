// MCP clients over HTTP and a Skein instance that serves them.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { AgentSpec, Skein } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";

export const revisions = ["2025-11-25", "2026-07-28"] as const;
export type Revision = (typeof revisions)[number];

const closing: (() => Promise<unknown>)[] = [];

/** Closed by `closeAll`, most recent first. */
export function closeLater(close: () => Promise<unknown>): void {
  closing.push(close);
}

/** For use in afterEach. */
export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0).reverse()) await close();
}

export async function rehearsedSkein(agent: Partial<AgentSpec> = {}): Promise<Skein> {
  const skein = await createSkein({
    dir: newFolder(),
    config: null,
    env: {},
    agents: [defineAgent({ id: "main", model: "rehearsal/basic", ...agent }), defineAgent({ id: "other" })],
    quiet: true,
  });
  closing.push(() => skein.close({ graceMs: 0 }));
  return skein;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skein-mcp-"));
  closing.push(async () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function newClient(revision: Revision): Client {
  const mode = revision === "2025-11-25" ? "legacy" : { pin: revision };
  return new Client({ name: "test", version: "0" }, { capabilities: {}, versionNegotiation: { mode } });
}

export async function connected(
  { url }: { readonly url: string },
  revision: Revision,
  { token, agent }: { readonly token?: string; readonly agent?: string } = {},
): Promise<Client> {
  const client = newClient(revision);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const place = new URL(agent === undefined ? url : `${url}?agent=${agent}`);
  await client.connect(new StreamableHTTPClientTransport(place, { requestInit: { headers } }));
  closing.push(() => client.close());
  return client;
}

/** Notifications as they arrive, one line each. */
export function noticesOf(client: Client): string[] {
  const heard: string[] = [];
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    heard.push(`updated ${params.uri}`);
  });
  client.setNotificationHandler("notifications/resources/list_changed", () => {
    heard.push("list changed");
  });
  return heard;
}

/** Subscribes to a resource and to the list, as defined by the protocol revision. */
export async function subscribe(client: Client, revision: Revision, uri: string): Promise<void> {
  if (revision === "2025-11-25") await client.subscribeResource({ uri });
  else await client.listen({ resourceSubscriptions: [uri], resourcesListChanged: true });
}
