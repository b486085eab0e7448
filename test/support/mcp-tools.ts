// A real MCP server for the client tests, with tools that answer, fail, wait, crash, and change.
import { spawn } from "node:child_process";
import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import { ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";
import { leaveProcess } from "./leave-process.ts";

export type ToolServerMode = "tools" | "pages" | "circle" | "twice";

const inputSchema = { $schema: "http://json-schema.org/draft-07/schema#", type: "object" } as const;
const text = (value: unknown): CallToolResult => ({
  content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }],
});

export const pixel = "iVBORw0KGgo=";

type Handler = (
  args: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
) => CallToolResult | Promise<CallToolResult>;

export function toolServer(mode: ToolServerMode): Server {
  const server = new Server(
    { name: "test", version: "1.0.0" },
    { capabilities: { tools: { listChanged: true } } },
  );
  const handlers = handlersOf(server);
  const listed = (): Tool[] => {
    if (mode === "tools") return Object.keys(handlers).map((name) => described(name));
    if (mode === "twice") return [described("echo"), described("echo")];
    return Array.from({ length: 100 }, (_, index) => described(`tool${index}`));
  };
  server.setRequestHandler("tools/list", (request) => {
    const from = Number(request.params?.cursor ?? 0);
    if (mode === "circle") return { tools: [], nextCursor: "0" };
    const tools = listed();
    const next = mode === "pages" && from + 7 < tools.length ? { nextCursor: String(from + 7) } : {};
    return { tools: mode === "pages" ? tools.slice(from, from + 7) : tools, ...next };
  });
  server.setRequestHandler("tools/call", async (request, context) => {
    const handler = handlers[request.params.name];
    if (handler === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "no such tool");
    return await handler(request.params.arguments ?? {}, context.mcpReq.signal);
  });
  return server;
}

function described(name: string): Tool {
  if (name !== "echo") return { name, inputSchema };
  const properties = { say: { type: "string" } } as const;
  return {
    name,
    description: "Says it again.",
    inputSchema: { ...inputSchema, properties },
    annotations: { readOnlyHint: true },
  };
}

function handlersOf(server: Server): Record<string, Handler> {
  let waiting = 0;
  let cancelled = 0;
  const handlers: Record<string, Handler> = {
    echo: ({ say }) => text(say),
    picture: () => ({ content: [{ type: "image", data: pixel, mimeType: "image/png" }] }),
    structured: () => ({ content: [], structuredContent: { degrees: 21 } }),
    fails: () => ({ ...text("the disk is full"), isError: true }),
    refuses: () => {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "say is missing");
    },
    wait: (_, signal) => {
      waiting++;
      const { promise, reject } = Promise.withResolvers<CallToolResult>();
      signal.addEventListener("abort", () => {
        cancelled++;
        reject(new Error("cancelled"));
      });
      return promise;
    },
    counts: () => text({ waiting, cancelled }),
    crash: () => {
      process.stderr.write("out of memory\n");
      process.exit(3);
    },
    /**
     * Returns text with this many characters. If `isLast` is set, the process exits as soon as its response is written.
     */
    long: ({ length, isLast }) => {
      if (isLast === true) {
        const write = process.stdout.write.bind(process.stdout) as (chunk: unknown) => boolean;
        process.stdout.write = (chunk: unknown) => write(chunk) && process.exit(0);
      }
      return text("x".repeat(Number(length)));
    },
    leave: () => {
      leaveProcess(false);
      leaveProcess(true);
      return text("left");
    },
    pid: () => text(process.pid),
    env: () => text({ ...process.env }),
    cwd: () => text(process.cwd()),
    family: ({ port }) => {
      const code = `require("node:net").connect(${Number(port)}, "127.0.0.1").resume()`;
      spawn(process.execPath, ["-e", code], { stdio: ["ignore", "inherit", "inherit"] });
      return text("born");
    },
    ask: async () => {
      const params = { messages: [], maxTokens: 1 };
      return text(await server.request({ method: "sampling/createMessage", params }).catch(String));
    },
    grow: async () => {
      handlers.grown = () => text("new");
      await server.sendToolListChanged();
      return text("grown");
    },
  };
  return handlers;
}
