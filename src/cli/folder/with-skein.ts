import { openSkein } from "../../compose/open-skein.ts";
import type { FilesStore } from "../../compose.ts";
import { holdsSessions } from "../../compose.ts";
import { SkeinError } from "../../core/errors.ts";
import { createIdSource } from "../../core/ids.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import { thrownText } from "../../core/text.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { Skein } from "../../sessions/skein/skein.ts";
import { contextMeant, keyMeant } from "../../sessions/skein/speak-to.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { findSession, isFileName } from "./find-session.ts";
import { loadOptions, loadSettings } from "./load-settings.ts";
import type { Folder } from "./with-folder.ts";
import { defaultAgent, nothingThere, tell } from "./with-folder.ts";

/** An open folder whose sessions answer. */
export interface OpenSkein extends Folder {
  readonly skein: Skein;
  /** `null`: the unnamed user. */
  readonly userId: string | null;
}

export interface SkeinUse {
  /** Whether this process runs what is waiting. */
  readonly workers: boolean;
  /** The session that is spoken to: a key begins a folder where there is none. */
  readonly ref?: string;
}

/** Opens everything for a command, as the options of the call say, and closes it however that ends. */
export async function withSkein<T>(
  terminal: Terminal,
  options: GlobalOptions,
  { workers, ref }: SkeinUse,
  use: (open: OpenSkein) => Promise<T>,
): Promise<T> {
  if (ref !== undefined && isFileName(ref)) throw noFileAnswers(ref);
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  const loaded = await loadSettings(terminal, options);
  const { config } = loaded;
  const asker = { agentId, scope: config.session.scope };
  const begins = ref !== undefined && keyMeant(ref, asker) !== null;
  if (!begins && !holdsSessions(config.store.path)) {
    const toBegin = ref === undefined ? ["sessions", "new"] : ["send", "main", "hello"];
    throw nothingThere(config.store.path, commandLine(terminal, options, toBegin));
  }
  const { cwd, env, root, file } = loadOptions(terminal, options);
  const skein = await openSkein({
    cwd,
    env,
    ...present({ dir: root, config: file }),
    workers,
    quiet: true,
    report: (error) => tell(terminal, options, thrownText(error)),
  });
  try {
    return await use({
      skein,
      userId: options.user ?? null,
      // Opened on a folder, never in memory.
      store: skein.store as FilesStore,
      scope: present({ userId: options.user, agentId: options.agent === undefined ? null : agentId }),
      asker,
      config,
      loaded,
      toType: (...words) => commandLine(terminal, options, words),
    });
  } finally {
    await skein.close();
  }
}

/** The session that is spoken to. What reads as a key need not be there yet; everything else must be. */
export async function contextFor(open: OpenSkein, ref: string): Promise<RuntimeContext> {
  const { store, scope, asker, userId } = open;
  const speaker = { userId, asker, scope, prefix: true, newId: createIdSource() };
  // What is not there is told with where was looked.
  return (
    (await contextMeant(store, speaker, ref)) ??
    findSession(open, ref).then(({ key }) => ({ userId, sessionKey: key }))
  );
}

function noFileAnswers(ref: string): SkeinError {
  const advice = "Import it with `sessions import`, and name the session";
  return new SkeinError("invalid_arguments", { problem: `"${ref}" is a file, and no file answers`, advice });
}
