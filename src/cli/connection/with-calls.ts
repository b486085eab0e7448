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

/** Methods that a command can call. */
export interface OpenCalls<M extends MethodName = FolderMethod | TokenMethod> extends CallerContext {
  readonly calls: Calls<M>;
  /** The folder itself, for content that is too large for a call; `null`: calls go to a gateway. */
  readonly store: FilesStore | null;
  /** The folder, for messages. */
  readonly place: string;
}

export interface OpenFolderCalls extends OpenCalls {
  readonly loaded: LoadedConfig;
}

/**
 * Calls methods of the folder's running gateway, or the same handlers on the folder itself. Only a command that creates
 * sessions creates the folder.
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

/** Tokens are opened only when a method needs them. */
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

/** For whom a command acts, by its options. */
export interface CallerContext {
  readonly asker: Asker;
  /** `--user` and `--agent` as method params. */
  readonly reader: { readonly userId?: string; readonly agentId?: string };
  /** The user of `--user`, else of the gateway's token; `null`: the unnamed user. */
  readonly userId: string | null;
  readonly config: Config;
  /** A command line to suggest, with the same folder, user and agent. */
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

/** A list call spends at most this long on indexing; a shorter call could not index more. */
const fullRoundMs = 150;

/** Waits until the index is complete, because a command prints once. It yields between calls, so that signals are handled. */
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
