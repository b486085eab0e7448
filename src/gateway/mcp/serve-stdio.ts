import type { Readable, Writable } from "node:stream";
import { addAbortSignal, PassThrough } from "node:stream";
import { parseJSONRPCMessage } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { SkeinError } from "../../core/errors.ts";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { parseJson } from "../../core/parse-json.ts";
import { wireLimits } from "../../protocol/frames.ts";
import { sessionToolTable } from "../../tools/all.ts";
import { noticesTo } from "./create-mcp.ts";
import type { McpAsker, McpBackend } from "./mcp-context.ts";
import type { SubscribedUris } from "./mcp-server.ts";
import { mcpServer } from "./mcp-server.ts";
import type { Notices } from "./notices.ts";

/**
 * Serves MCP over two streams until the input ends. Pending calls are then aborted, but runs continue. A line longer
 * than 25 MiB ends the connection with `body_too_large`.
 */
export async function serveMcpStdio(
  app: McpBackend,
  asker: McpAsker,
  { input, output, signal }: StdioStreams,
): Promise<void> {
  const open = new Set<Notices>();
  // The transport would block the process while parsing a long line, so messages are parsed here, and the transport
  // reads an empty stream.
  const silent = new PassThrough();
  const transport = new StdioServerTransport(silent, output);
  const handle = serveStdio(
    ({ era }) => {
      // In the newer revision, the transport tracks the subscriptions. In older revisions, the server does.
      const subscribed: SubscribedUris | null = era === "legacy" ? new Set() : null;
      const server = mcpServer(app, sessionToolTable, asker, subscribed ?? undefined);
      if (!asker.scopes.includes("read")) return server;
      const notices = noticesTo(app, asker, server, subscribed);
      open.add(notices);
      server.onclose = () => {
        notices.close();
        open.delete(notices);
      };
      return server;
    },
    { transport, onerror: app.report },
  );
  try {
    await readMessages(input, transport, signal);
  } finally {
    await handle.close();
    silent.destroy();
    input.destroy();
    for (const notices of open) notices.close();
  }
}

/** A disconnecting client is a normal end of the input. */
async function readMessages(
  input: Readable,
  transport: StdioServerTransport,
  signal: AbortSignal,
): Promise<void> {
  const { frameBytes: maxBytes } = wireLimits;
  const lines = new LineGatherer({
    maxBytes,
    tooLong: () => new SkeinError("body_too_large", { bytes: maxBytes }),
  });
  try {
    for await (const chunk of addAbortSignal(signal, input)) {
      for (const line of lines.split(chunk as Buffer))
        await readMessage(line.toString("utf8"), transport, signal);
    }
  } catch (error) {
    const isEnd = signal.aborted || (error as NodeJS.ErrnoException).code === "ERR_STREAM_PREMATURE_CLOSE";
    if (!isEnd) throw error;
  }
}

/** Skips lines that are not JSON, as the transport does. */
async function readMessage(
  line: string,
  transport: StdioServerTransport,
  signal: AbortSignal,
): Promise<void> {
  try {
    transport.onmessage?.(parseJSONRPCMessage(await parseJson(line, signal)));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SyntaxError)) transport.onerror?.(error as Error);
  }
}

/** The streams that a protocol is served on. */
export interface StdioStreams {
  readonly input: Readable;
  readonly output: Writable;
  /** Aborting it stops the server before the input ends. */
  readonly signal: AbortSignal;
}
