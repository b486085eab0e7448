import { parseAgentId } from "../../core/names.ts";
import { thrownText } from "../../core/text.ts";
import type { Principal } from "../../gateway/auth/principal.ts";
import type { McpParts } from "../../gateway/mcp/mcp-context.ts";
import { askerOf, skeinParts } from "../../gateway/mcp/mcp-context.ts";
import { serveMcpStdio } from "../../gateway/mcp/serve-stdio.ts";
import { localPrincipal } from "../../gateway/methods/local-calls.ts";
import type { HelloPayload } from "../../protocol/frames.ts";
import { partsOver } from "../connection/mcp-over-gateway.ts";
import { connectRunning } from "../connection/running-gateway.ts";
import { defaultAgent, loadSettings, tell } from "../connection/with-folder.ts";
import { withSkein } from "../connection/with-skein-calls.ts";
import type { Spoken } from "../gateway/stdio-protocol.ts";
import { speaking } from "../gateway/stdio-protocol.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

/**
 * Speaks MCP over the standard streams until the input ends: through the gateway that runs on the folder, else on the folder
 * itself, whose runs this process does then. The output carries MCP alone. Asked to stop, it lets runs come to a written
 * state first; asked once more, it ends at once.
 */
export async function mcpCommand(terminal: Terminal, version: string, options: GlobalOptions): Promise<void> {
  await speaking(terminal, (spoken) => serve(spoken, version, options));
}

async function serve(spoken: Spoken, version: string, options: GlobalOptions): Promise<void> {
  const { terminal } = spoken;
  const loaded = await loadSettings(terminal, options);
  const { config } = loaded;
  const known = {
    version,
    defaultAgentId: parseAgentId(options.agent ?? defaultAgent),
    scope: config.session.scope,
    // A gateway sees to it call by call; the folder itself asks for no token.
    isCurrent: () => true,
    report: (error: unknown) => tell(terminal, options, thrownText(error)),
  };
  const running = await connectRunning(terminal, options, config.store.path);
  if (running === null) {
    // Named, so that a folder is begun where there is none.
    const { user = null } = options;
    return withSkein(terminal, options, loaded, { workers: true, ref: "main" }, ({ skein }) =>
      speak(spoken, { ...localPrincipal, user }, skeinParts(skein, known)),
    );
  }
  try {
    await speak(spoken, principalOf(running.hello, options), partsOver(running, known));
  } finally {
    await running.close();
  }
}

/** Whoever the gateway takes the token for: its asker has a session of its own. A token for all users speaks for `--user`. */
function principalOf(hello: HelloPayload, { user }: GlobalOptions): Principal {
  const { tokenId = localPrincipal.tokenId, scopes, allUsers, userId } = hello;
  return { ...localPrincipal, tokenId, scopes, user: (allUsers ? user : userId) ?? null };
}

async function speak(spoken: Spoken, principal: Principal, parts: McpParts): Promise<void> {
  await serveMcpStdio(parts, askerOf(principal, parts.defaultAgentId), spoken);
}
