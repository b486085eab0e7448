import type { Readable } from "node:stream";
import { parseAgentId } from "../../core/names.ts";
import { thrownText } from "../../core/text.ts";
import type { Principal } from "../../gateway/auth/principal.ts";
import { localPrincipal } from "../../gateway/calls/local-calls.ts";
import { askerOf } from "../../gateway/mcp/asker.ts";
import type { McpParts } from "../../gateway/mcp/contract.ts";
import { serveMcpStdio } from "../../gateway/mcp/serve-stdio.ts";
import { skeinParts } from "../../gateway/mcp/skein-parts.ts";
import type { HelloPayload } from "../../protocol/frames.ts";
import { loadSettings } from "../folder/load-settings.ts";
import { partsOver } from "../folder/mcp-over-gateway.ts";
import { connectRunning } from "../folder/running-gateway.ts";
import { defaultAgent, tell } from "../folder/with-folder.ts";
import { withSkein } from "../folder/with-skein.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { rawOutput } from "../output/raw-output.ts";
import { onStopAsked } from "../output/signals.ts";
import { StdoutGuard } from "../output/stdout-guard.ts";
import type { Terminal } from "../output/terminal.ts";
import { untilStopped } from "../start/stopping.ts";

/**
 * Speaks MCP over the standard streams until the input ends: through the gateway that runs on the folder, else on the folder
 * itself, whose runs this process does then. The output carries MCP alone. Asked to stop, it lets runs come to a written
 * state first; asked once more, it ends at once. Hosts end the input and ask to stop a moment later: that is heard until all
 * is closed.
 */
export async function mcpCommand(terminal: Terminal, version: string, options: GlobalOptions): Promise<void> {
  const guard = new StdoutGuard();
  const leaving = new AbortController();
  const stop = untilStopped({ onStop: onStopAsked }, () => process.exit(0));
  void stop.asked.then(() => leaving.abort());
  try {
    const ours = { ...terminal, out: (text: string) => guard.ours(() => terminal.out(text)) };
    await serve(ours, version, options, leaving.signal);
  } finally {
    stop.end();
    guard.release();
  }
}

async function serve(
  terminal: Terminal,
  version: string,
  options: GlobalOptions,
  signal: AbortSignal,
): Promise<void> {
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
      speak(terminal, { ...localPrincipal, user }, skeinParts(skein, known), signal),
    );
  }
  try {
    await speak(terminal, principalOf(running.hello, options), partsOver(running, known), signal);
  } finally {
    await running.close();
  }
}

/** Whoever the gateway takes the token for: its asker has a session of its own. A token for all users speaks for `--user`. */
function principalOf(hello: HelloPayload, { user }: GlobalOptions): Principal {
  const { tokenId = localPrincipal.tokenId, scopes, allUsers, userId } = hello;
  return { ...localPrincipal, tokenId, scopes, user: (allUsers ? user : userId) ?? null };
}

async function speak(
  terminal: Terminal,
  principal: Principal,
  parts: McpParts,
  signal: AbortSignal,
): Promise<void> {
  const asker = askerOf(principal, parts.defaultAgentId);
  const input = terminal.input().stream as Readable;
  await serveMcpStdio(parts, asker, { input, output: rawOutput(terminal), signal });
}
