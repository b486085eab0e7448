// The server in `mcp-tools.ts` as a process, and processes that are broken servers, each in a different way.
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { ToolServerMode } from "./mcp-tools.ts";
import { toolServer } from "./mcp-tools.ts";

const [mode = "tools"] = process.argv.slice(2);
const stay = () => setInterval(() => undefined, 60_000);

switch (mode) {
  case "silent":
    process.stderr.write("loading the index\n");
    stay();
    break;
  case "endless":
    process.stdout.write("x".repeat(40_000_000));
    stay();
    break;
  case "exits":
    process.stderr.write("no licence\n");
    process.exitCode = 7;
    break;
  default: {
    if (mode === "stubborn") process.on("SIGTERM", stay);
    const served = mode === "stubborn" ? "tools" : (mode as ToolServerMode);
    await toolServer(served).connect(new StdioServerTransport());
    if (mode === "stubborn") stay();
  }
}
