import { setImmediate as nextTurn } from "node:timers/promises";
import { folderDeps } from "../../app/call-deps.ts";
import type { FilesStore, FolderStore } from "../../app/folder.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Config } from "../../config/sections/all.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { Asker } from "../../core/references.ts";
import { Tokens } from "../../gateway/auth/tokens.ts";
import { tokenHandlers } from "../../gateway/methods/admin.ts";
import type { FolderMethod, TokenMethod } from "../../gateway/methods/handlers.ts";
import { folderHandlers } from "../../gateway/methods/handlers.ts";
import { localCalls } from "../../gateway/methods/local-calls.ts";
import type { Calls } from "../../protocol/methods/calls.ts";
import type { MethodName } from "../../protocol/methods/method-table.ts";
import { checkScope } from "../../store/rules.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import { withProgress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import { connectToGateway } from "./running-gateway.ts";
import type { MissingFolder } from "./with-folder.ts";
import { defaultAgent, loadSettings, processFolder, withLoadedFolder } from "./with-folder.ts";

/** Methods as a command calls them, on somebody's behalf. */
export interface OpenCalls<M extends MethodName = FolderMethod | TokenMethod> extends CallerContext {
  readonly calls: Calls<M>;
  /** The folder itself, for what is too large for a call; `null`: a gateway is in between. */
  readonly store: FilesStore | null;
  /** Where the sessions are, for people: a folder. */
  readonly place: string;
}

/** The same, with the configuration of this process. */
export interface OpenFolderCalls extends OpenCalls {
  readonly loaded: LoadedConfig;
}

/**
 * Calls methods: of the gateway that runs on the folder, else of the folder itself, with the very same handlers. A folder that
 * holds no sessions is begun only by what creates some.
 */
export async function withCalls<T>(
  terminal: Terminal,
  options: GlobalOptions,
  use: (open: OpenFolderCalls) => Promise<T>,
  ifMissing: MissingFolder = "refuse",
): Promise<T> {
  const loaded = await loadSettings(terminal, options);
  const { config } = loaded;
  checkScope(present({ userId: options.user }));
  const running = await connectToGateway(terminal, options, config.store.path);
  const about = callerContext(terminal, options, config, running?.hello.userId);
  if (running !== null) {
    try {
      return await use({ ...about, calls: running, store: null, loaded, place: config.store.path });
    } finally {
      await running.close();
    }
  }
  return withLoadedFolder(
    terminal,
    options,
    loaded,
    ({ store }) =>
      use({ ...about, calls: localFolderCalls(terminal, store, loaded), store, loaded, place: store.root }),
    ifMissing,
  );
}

/** The methods of a folder in this process. Nothing of tokens is opened before a method asks for them. */
function localFolderCalls(
  terminal: Terminal,
  store: FolderStore,
  loaded: LoadedConfig,
): Calls<FolderMethod | TokenMethod> {
  let opened: Tokens | null = null;
  const clock = { now: () => terminal.now() };
  const deps = {
    ...folderDeps(store, loaded, processFolder(terminal)),
    clock,
    get tokens() {
      opened ??= new Tokens({ ledger: store.work.ledger, clock });
      return opened;
    },
  };
  return localCalls({ ...folderHandlers(deps), ...tokenHandlers(deps) });
}

/** On whose behalf a command calls methods, as its options say. */
export interface CallerContext {
  readonly asker: Asker;
  /** `--user` and `--agent` as params of methods about one session have them. */
  readonly reader: { readonly userId?: string; readonly agentId?: string };
  /** Whose sessions: those of `--user`, else of the gateway's token; `null`: the unnamed user's. */
  readonly userId: string | null;
  readonly config: Config;
  /** A command for the user to type next, about this same place. */
  nextCommand(...words: readonly string[]): string;
}

export function callerContext(
  terminal: Terminal,
  options: GlobalOptions,
  config: Config,
  tokenUser?: string,
): CallerContext {
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  return {
    asker: { agentId, scope: config.session.scope },
    reader: present({ userId: options.user, agentId: options.agent === undefined ? null : agentId }),
    userId: options.user ?? tokenUser ?? null,
    config,
    nextCommand: (...words) => commandLine(terminal, options, words),
  };
}

/** A list spends so long on catching up; one that is back sooner could do no more. */
const fullRoundMs = 150;

/**
 * A command answers once: it waits until the index has everything, where a server would say that it is behind. By
 * rounds, so that a signal is heard in between.
 */
export async function waitForIndex(terminal: Terminal, { calls, reader }: OpenCalls): Promise<void> {
  await withProgress(terminal, "Indexing", async (update) => {
    let before = Number.POSITIVE_INFINITY;
    for (let total = 0; ; ) {
      const began = performance.now();
      const { indexing } = await calls.call("sessions.list", { limit: 1, ...reader });
      const behind = indexing?.behind ?? 0;
      total = Math.max(total, behind);
      if (total > 0) update(total - behind, total);
      const isStuck = behind >= before && performance.now() - began < fullRoundMs;
      if (behind === 0 || isStuck) return;
      before = behind;
      await nextTurn();
    }
  });
}
