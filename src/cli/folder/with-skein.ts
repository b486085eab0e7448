import type { SkeinInside } from "../../compose/open-skein.ts";
import { openSkein } from "../../compose/open-skein.ts";
import type { FilesStore } from "../../compose.ts";
import { holdsSessions } from "../../compose.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import { keyMeant } from "../../core/references.ts";
import { thrownText } from "../../core/text.ts";
import type { Skein } from "../../sessions/skein/skein.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { loadOptions } from "./load-settings.ts";
import { defaultAgent, nothingThere, tell } from "./with-folder.ts";

/** A folder whose sessions answer, with what lies behind it, for methods that are called in this process. */
export interface OpenSkein {
  readonly skein: Skein;
  readonly runs: SkeinInside["runs"];
  readonly files: SkeinInside["files"];
  readonly store: FilesStore;
}

export interface SkeinUse {
  /** Whether this process runs what is queued: nothing, only its own request, or everything. */
  readonly workers: boolean | "own";
  /** The session that is spoken to: a key begins a folder where there is none. */
  readonly ref?: string;
}

/** Opens everything for a command, as the options of the call say, and closes it however that ends. */
export async function withSkein<T>(
  terminal: Terminal,
  options: GlobalOptions,
  loaded: LoadedConfig,
  { workers, ref }: SkeinUse,
  use: (open: OpenSkein) => Promise<T>,
): Promise<T> {
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  const { config } = loaded;
  const asker = { agentId, scope: config.session.scope };
  const begins = ref !== undefined && keyMeant(ref, asker) !== null;
  if (!begins && !holdsSessions(config.store.path)) {
    const toBegin = ref === undefined ? ["sessions", "new"] : ["send", "main", "hello"];
    throw nothingThere(config.store.path, commandLine(terminal, options, toBegin));
  }
  const { cwd, env, root, file } = loadOptions(terminal, options);
  const inside = Promise.withResolvers<SkeinInside>();
  const skein = await openSkein(
    {
      cwd,
      env,
      ...present({ dir: root, config: file }),
      usersInProcessFolder: "unnamed",
      workers,
      quiet: true,
      report: (error) => tell(terminal, options, thrownText(error)),
    },
    inside.resolve,
  );
  try {
    const { runs, files } = await inside.promise;
    // Opened on a folder, never in memory.
    return await use({ skein, runs, files, store: skein.store as FilesStore });
  } finally {
    await skein.close();
  }
}
