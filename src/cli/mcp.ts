import type { Command } from "commander";
import { parseAgentId } from "../core/names.ts";
import { present } from "../core/present.ts";
import { thrownText } from "../core/text.ts";
import type { Principal } from "../gateway/auth/principal.ts";
import type { McpBackend, McpCall } from "../gateway/mcp/mcp-context.ts";
import { mcpAskerOf, skeinMcpBackend } from "../gateway/mcp/mcp-context.ts";
import { serveMcpStdio } from "../gateway/mcp/serve-stdio.ts";
import { localPrincipal } from "../gateway/methods/local-calls.ts";
import type { WatchedCalls } from "../protocol/calls.ts";
import type { HelloPayload } from "../protocol/frames.ts";
import type { ToolCalled } from "../sessions/app.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { toSkeinEvent } from "./connection/watch-run.ts";
import { withGateway } from "./connection/with-calls.ts";
import { defaultAgent } from "./connection/with-folder.ts";
import { withSkein } from "./connection/with-skein-calls.ts";
import type { ProtocolStreams } from "./gateway/stdio-protocol.ts";
import { withProtocolStreams } from "./gateway/stdio-protocol.ts";
import { printNotice } from "./output/answer.ts";
import type { Invocation } from "./output/invocation.ts";

/**
 * Serves MCP over the standard streams until the input ends, either through the folder's gateway or on the folder
 * directly. On a stop request, waits until runs reach a durable state. A second request exits immediately.
 */
export function registerMcp(command: Command, context: CommandContext): void {
  command
    .addHelpText("after", examples("skein mcp", "skein mcp --agent main --user ann"))
    .action(
      action(context, ({ terminal, options }) =>
        withProtocolStreams(terminal, (streams) =>
          serve({ terminal: streams.terminal, options }, context.version, streams),
        ),
      ),
    );
}

async function serve(cli: Invocation, version: string, streams: ProtocolStreams): Promise<void> {
  const known = (scope: McpBackend["scope"]) => ({
    version,
    defaultAgentId: parseAgentId(cli.options.agent ?? defaultAgent),
    scope,
    // A gateway checks the token on every call. Direct access to the folder does not require a token.
    findEndedTokens: async () => new Set<string>(),
    report: (error: unknown) => printNotice(cli, thrownText(error)),
  });
  const speak = (principal: Principal, app: McpBackend) =>
    serveMcpStdio(app, mcpAskerOf(principal, app.defaultAgentId), streams);
  await withGateway(
    cli,
    (running, { config }) =>
      speak(principalOf(running.hello, cli), gatewayMcpBackend(running, known(config.session.scope))),
    // With a session reference, the command creates a missing folder.
    ({ loaded }) =>
      withSkein(cli, loaded, { workers: true, ref: "main" }, ({ skein }) => {
        const principal = { ...localPrincipal, user: cli.options.user ?? null };
        return speak(principal, skeinMcpBackend(skein, known(loaded.config.session.scope)));
      }),
  );
}

/** Returns the principal for the gateway's token. A token for every user acts on behalf of `--user`. */
function principalOf(hello: HelloPayload, { options: { user } }: Invocation): Principal {
  const { tokenId = localPrincipal.tokenId, scopes, allUsers, userId } = hello;
  return { ...localPrincipal, tokenId, scopes, user: (allUsers ? user : userId) ?? null };
}

/**
 * Serves MCP through a running gateway, where every tool call is a `tools.invoke` call. No progress is reported,
 * because the gateway does not report which run a call is waiting for.
 */
export function gatewayMcpBackend(
  calls: WatchedCalls,
  known: Pick<McpBackend, "version" | "defaultAgentId" | "scope" | "findEndedTokens" | "report">,
): McpBackend {
  return {
    ...known,
    callTool: (name, args, call) => invoke(calls, name, args, call),
    allowedTools: async ({ userId, agentId }) => {
      const agent = await findAgent(calls, userId, agentId).catch((error: unknown) => known.report(error));
      return new Set(agent?.configured === true ? agent.tools : await sessionToolNames());
    },
    subscribe: (userId, listener, onLoss) => {
      const stream = calls.events(present({ userId }));
      const hear = async () => {
        for await (const received of stream) {
          if (received.event === "gap") onLoss?.();
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
