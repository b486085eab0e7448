import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { wireLimits } from "../../protocol/frames.ts";
import { sessionToolTable } from "../../tools/all.ts";
import type { StdioStreams } from "../calls/stdio-streams.ts";
import { noticesTo } from "./connections.ts";
import type { McpAsker, McpParts } from "./contract.ts";
import type { Notices } from "./notices.ts";
import type { Subscribed } from "./server.ts";
import { mcpServer } from "./server.ts";

/** Speaks MCP over two streams until the input ends. What is under way by then is aborted; runs go on. */
export async function serveMcpStdio(
  parts: McpParts,
  asker: McpAsker,
  { input, output, signal }: StdioStreams,
): Promise<void> {
  const open = new Set<Notices>();
  const handle = serveStdio(
    ({ era }) => {
      // Of the newer revision the transport knows who wants what; of the older ones the server does.
      const subscribed: Subscribed | null = era === "legacy" ? new Set() : null;
      const server = mcpServer(parts, sessionToolTable, asker, subscribed ?? undefined);
      if (!asker.scopes.includes("read")) return server;
      const notices = noticesTo(parts, asker, server, subscribed);
      open.add(notices);
      server.onclose = () => {
        notices.close();
        open.delete(notices);
      };
      return server;
    },
    {
      transport: new StdioServerTransport(input, output, { maxBufferSize: wireLimits.frameBytes }),
      onerror: parts.report,
    },
  );
  try {
    await untilOver(input, signal);
  } finally {
    await handle.close();
    for (const notices of open) notices.close();
  }
}

/** However it is over: a client that is gone is an end like any other. */
async function untilOver(input: Readable, signal: AbortSignal): Promise<void> {
  try {
    await finished(input, { writable: false, signal });
  } catch (error) {
    const isEnd = signal.aborted || (error as NodeJS.ErrnoException).code === "ERR_STREAM_PREMATURE_CLOSE";
    if (!isEnd) throw error;
  }
}
