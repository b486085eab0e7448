import type { Command } from "commander";
import { parseAgentId } from "../core/names.ts";
import { present } from "../core/present.ts";
import { thrownText } from "../core/text.ts";
import type { Principal } from "../gateway/auth/principal.ts";
import type { McpApp, McpCall } from "../gateway/mcp/mcp-context.ts";
import { mcpAskerOf, skeinMcpApp } from "../gateway/mcp/mcp-context.ts";
import { serveMcpStdio } from "../gateway/mcp/serve-stdio.ts";
import { localPrincipal } from "../gateway/methods/local-calls.ts";
import type { HelloPayload } from "../protocol/frames.ts";
import type { WatchedCalls } from "../protocol/methods/calls.ts";
import type { ToolCalled } from "../sessions/app.ts";
import type { CommandContext } from "./command.ts";
import { examples } from "./command.ts";
import { connectToGateway } from "./connection/running-gateway.ts";
import { toSkeinEvent } from "./connection/watch-run.ts";
import { defaultAgent, loadSettings, tell } from "./connection/with-folder.ts";
import { withSkein } from "./connection/with-skein-calls.ts";
import type { ProtocolStreams } from "./gateway/stdio-protocol.ts";
import { withProtocolStreams } from "./gateway/stdio-protocol.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";

export function registerMcp(command: Command, { terminal, version }: CommandContext): void {
  command
    .addHelpText("after", examples("skein mcp", "skein mcp --agent main --user ann"))
    .action(() => mcpCommand(terminal, version, command.optsWithGlobals()));
}

/**
 * Serves MCP over the standard streams until the input ends, through the folder's gateway or on the folder itself. A stop request
 * lets runs reach a durable state first; a second one ends the process.
 */
async function mcpCommand(terminal: Terminal, version: string, options: GlobalOptions): Promise<void> {
  await withProtocolStreams(terminal, (streams) => serve(streams, version, options));
}

async function serve(streams: ProtocolStreams, version: string, options: GlobalOptions): Promise<void> {
  const { terminal } = streams;
  const loaded = await loadSettings(terminal, options);
  const { config } = loaded;
  const known = {
    version,
    defaultAgentId: parseAgentId(options.agent ?? defaultAgent),
    scope: config.session.scope,
    // A gateway checks the token on every call; the folder itself needs none.
    isCurrent: () => true,
    report: (error: unknown) => tell(terminal, options, thrownText(error)),
  };
  const running = await connectToGateway(terminal, options, config.store.path);
  if (running === null) {
    // The name creates a missing folder.
    const { user = null } = options;
    return withSkein(terminal, options, loaded, { workers: true, ref: "main" }, ({ skein }) =>
      speak(streams, { ...localPrincipal, user }, skeinMcpApp(skein, known)),
    );
  }
  try {
    await speak(streams, principalOf(running.hello, options), gatewayMcpApp(running, known));
  } finally {
    await running.close();
  }
}

/** The principal of the gateway's token. A token for all users acts for `--user`. */
function principalOf(hello: HelloPayload, { user }: GlobalOptions): Principal {
  const { tokenId = localPrincipal.tokenId, scopes, allUsers, userId } = hello;
  return { ...localPrincipal, tokenId, scopes, user: (allUsers ? user : userId) ?? null };
}

async function speak(streams: ProtocolStreams, principal: Principal, parts: McpApp): Promise<void> {
  await serveMcpStdio(parts, mcpAskerOf(principal, parts.defaultAgentId), streams);
}

/**
 * MCP over a running gateway: every tool call is a `tools.invoke`. There is no progress, because the gateway does not tell which run
 * a call waits for.
 */
export function gatewayMcpApp(
  calls: WatchedCalls,
  known: Pick<McpApp, "version" | "defaultAgentId" | "scope" | "isCurrent" | "report">,
): McpApp {
  return {
    ...known,
    callTool: (name, args, call) => invoke(calls, name, args, call),
    allowedTools: async ({ userId, agentId }) => {
      const agent = await findAgent(calls, userId, agentId).catch((error: unknown) => known.report(error));
      return new Set(agent?.configured === true ? agent.tools : await sessionToolNames());
    },
    subscribe: (userId, listener) => {
      const stream = calls.events(present({ userId }));
      const hear = async () => {
        for await (const received of stream) {
          const event = toSkeinEvent(received, userId);
          if (event !== null) listener(event);
        }
      };
      hear().catch(known.report);
      return () => stream.close();
    },
  };
}

async function findAgent(calls: WatchedCalls, userId: string | null, agentId: string) {
  const { agents } = await calls.call("agents.list", present({ userId }));
  return agents.find(({ id }) => id === agentId);
}

async function sessionToolNames(): Promise<readonly string[]> {
  const { sessionToolTable } = await import("../tools/all.ts");
  return sessionToolTable.map(({ name }) => name);
}

async function invoke(
  calls: WatchedCalls,
  name: string,
  args: unknown,
  { sessionKey, userId, idempotencyKey, signal }: McpCall,
): Promise<ToolCalled> {
  const params = {
    sessionKey,
    name,
    arguments: args as Record<string, unknown>,
    ...present({ userId, idempotencyKey }),
  };
  try {
    const { result, rootId = null } = await calls.call("tools.invoke", params, { signal });
    return { result: result as ToolCalled["result"], rootId };
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
    if (typeof code !== "string") throw error;
    const status = code === "forbidden" || code === "unauthorized" ? "forbidden" : "error";
    return { result: { status, code, error: String(message) }, rootId: null };
  }
}
