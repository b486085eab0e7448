import type { AcpParts } from "../../acp/server/contract.ts";
import { serveAcpStdio } from "../../acp/server/serve-stdio.ts";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import { editorCommands } from "../chat/in-editor.ts";
import { tell } from "../connection/with-folder.ts";
import type { OpenSkeinCalls } from "../connection/with-skein-calls.ts";
import { withSkeinCalls } from "../connection/with-skein-calls.ts";
import { speaking } from "../gateway/stdio-protocol.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

/**
 * Speaks ACP over the standard streams until the input ends: through the gateway that runs on the folder, else on the folder
 * itself, whose runs this process does then. The output carries ACP alone. Asked to stop, it lets runs come to a written
 * state first; asked once more, it ends at once.
 */
export async function acpCommand(terminal: Terminal, version: string, options: GlobalOptions): Promise<void> {
  await speaking(terminal, (spoken) =>
    // Named, so that a folder is begun where there is none.
    withSkeinCalls(spoken.terminal, options, { workers: true, ref: "main" }, (open) =>
      serveAcpStdio(partsOf(spoken.terminal, open, version, options), spoken),
    ),
  );
}

/** As often as runs are looked after: who has the folder is told by no event what other processes do there. */
const lookMs = 250;

const needed = ["sessions.get", "chat.send"] as const;

function partsOf(
  terminal: Terminal,
  open: OpenSkeinCalls,
  version: string,
  options: GlobalOptions,
): AcpParts {
  const { calls, reader, may } = open;
  if (!needed.every(may)) {
    const problem = "An editor has to read and to write, and the token may not do both";
    throw new SkeinError("forbidden", { problem, advice: "Use a token with the scopes read and write" });
  }
  return {
    version,
    calls,
    whose: reader,
    may,
    commands: editorCommands(terminal, open),
    cwd: terminal.cwd,
    ...(open.store === null ? {} : { lookMs }),
    report: (error) => tell(terminal, options, thrownText(error)),
  };
}
