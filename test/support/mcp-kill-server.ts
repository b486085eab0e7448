// An MCP server for the tests in which Skein exits. Reports itself, leaves processes behind, and never answers a call.
// It implements the protocol directly so that it starts quickly. Usage: `mcp-kill-server.ts <folder> <deaf | plain>`
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { leaveProcess } from "./leave-process.ts";

type Json = Readonly<Record<string, unknown>>;

const [folder = "", name = ""] = process.argv.slice(2);
const isDeaf = name === "deaf";
const tell = (what: string) => appendFileSync(join(folder, "told"), `${name} ${what}\n`);

if (isDeaf) {
  process.on("SIGTERM", () => undefined);
  setInterval(() => undefined, 60_000);
}
leaveProcess(!isDeaf);
tell(`mark ${process.env.SKEIN_CHILD}`);

function answer(method: unknown, params: Json): Json | null {
  if (method === "tools/call") tell("called");
  if (method === "initialize") {
    const { protocolVersion } = params;
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version: "1.0.0" } };
  }
  return method === "tools/list" ? { tools: [{ name: "hold", inputSchema: { type: "object" } }] } : null;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as Json;
  const result = answer(method, params as Json);
  if (result !== null) process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
if (!isDeaf) process.exit(0);
