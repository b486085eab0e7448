import type { Readable } from "node:stream";
import { pipeline, Transform } from "node:stream";
import { finished } from "node:stream/promises";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { SkeinError } from "../../core/errors.ts";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { wireLimits } from "../../protocol/frames.ts";
import { sessionToolTable } from "../../tools/all.ts";
import type { StdioStreams } from "../calls/stdio-streams.ts";
import { noticesTo } from "./connections.ts";
import type { McpAsker, McpParts } from "./contract.ts";
import type { Notices } from "./notices.ts";
import type { Subscribed } from "./server.ts";
import { mcpServer } from "./server.ts";

/**
 * Speaks MCP over two streams until the input ends. What is under way by then is aborted; runs go on. A line of more than 25 MiB
 * ends it with `body_too_large`: nothing after it can be read.
 */
export async function serveMcpStdio(
  parts: McpParts,
  asker: McpAsker,
  { input, output, signal }: StdioStreams,
): Promise<void> {
  const open = new Set<Notices>();
  const lines = wholeLines(input);
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
      transport: new StdioServerTransport(lines, output, { maxBufferSize: wireLimits.frameBytes + 1 }),
      onerror: parts.report,
    },
  );
  try {
    await untilOver(lines, signal);
  } finally {
    await handle.close();
    lines.destroy();
    for (const notices of open) notices.close();
  }
}

/** The transport copies all that it has buffered with every chunk, so it gets one chunk for each line. */
function wholeLines(input: Readable): Readable {
  const { frameBytes: maxBytes } = wireLimits;
  const lines = new LineGatherer({
    maxBytes,
    tooLong: () => new SkeinError("body_too_large", { bytes: maxBytes }),
  });
  const lineFeed = Buffer.from("\n");
  const whole = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        for (const line of lines.split(chunk)) this.push(Buffer.concat([line, lineFeed]));
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
  // Its errors are those of `whole`, which `untilOver` hears.
  pipeline(input, whole, () => undefined);
  return whole;
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
