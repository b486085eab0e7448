import { setImmediate as nextTurn } from "node:timers/promises";
import type { FilesStore, FolderStore } from "../../app/folder.ts";
import { folderApp } from "../../app/folder-app.ts";
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
import type { Calls } from "../../protocol/calls.ts";
import type { MethodName } from "../../protocol/method-table.ts";
import { checkScope } from "../../store/rules.ts";
import type { Invocation } from "../output/invocation.ts";
import { withProgress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import type { GatewayConnection } from "./connect-to-gateway.ts";
import { connectToGateway } from "./connect-to-gateway.ts";
import type { MissingFolder } from "./with-folder.ts";
import { defaultAgent, loadSettings, processFolder, withLoadedFolder } from "./with-folder.ts";

/** The user and agent on whose behalf a command runs, according to its options. */
export interface CallerContext extends Invocation {
  readonly asker: Asker;
  /** `--user` as method params. */
  readonly user: { readonly userId?: string };
  /** `--user` and `--agent` as method params. */
  readonly reader: { readonly userId?: string; readonly agentId?: string };
  /** The user given by `--user` or, if it is absent, the user of the gateway's token. `null` is the unnamed user. */
  readonly userId: string | null;
  readonly config: Config;
  readonly loaded: LoadedConfig;
  /** The folder, as shown in messages. */
  readonly place: string;
}

/** Methods that a command can call. */
export interface OpenCalls<M extends MethodName = FolderMethod | TokenMethod> extends CallerContext {
  readonly calls: Calls<M>;
  /** The folder itself, for content that is too large for a call, or `null` if calls go to a gateway. */
  readonly store: FilesStore | null;
}

/**
 * Calls methods on the folder's running gateway, or the same handlers on the folder directly. Only a command that
 * creates sessions creates the folder.
 */
export async function withCalls<T>(
  cli: Invocation,
  use: (open: OpenCalls) => Promise<T>,
  ifMissing: MissingFolder = "refuse",
): Promise<T> {
  checkScope(present({ userId: cli.options.user }));
  return withGateway(
    cli,
    (calls, context) => use({ ...context, calls, store: null }),
    (context) =>
      withLoadedFolder(
        cli,
        context.loaded,
        ({ store }) => {
          const calls = localFolderCalls(cli.terminal, store, context.loaded);
          return use({ ...context, calls, store, place: store.root });
        },
        ifMissing,
      ),
  );
}

/** Calls `useGateway` if a gateway is running for the folder, otherwise `useFolder`. */
export async function withGateway<T>(
  cli: Invocation,
  useGateway: (running: GatewayConnection, context: CallerContext) => Promise<T>,
  useFolder: (context: CallerContext) => Promise<T>,
): Promise<T> {
  const loaded = await loadSettings(cli);
  const running = await connectToGateway(cli, loaded.config.store.path);
  if (running === null) return useFolder(callerContext(cli, loaded));
  try {
    return await useGateway(running, callerContext(cli, loaded, running.hello.userId));
  } finally {
    await running.close();
  }
}

function callerContext(cli: Invocation, loaded: LoadedConfig, tokenUser?: string): CallerContext {
  const { user, agent } = cli.options;
  const { config } = loaded;
  const agentId = parseAgentId(agent ?? defaultAgent);
  return {
    ...cli,
    asker: { agentId, scope: config.session.scope },
    user: present({ userId: user }),
    reader: present({ userId: user, agentId: agent === undefined ? null : agentId }),
    userId: user ?? tokenUser ?? null,
    config,
    loaded,
    place: config.store.path,
  };
}

/** Opens the tokens only when a method needs them. */
function localFolderCalls(
  terminal: Terminal,
  store: FolderStore,
  loaded: LoadedConfig,
): Calls<FolderMethod | TokenMethod> {
  let opened: Tokens | null = null;
  const clock = { now: () => terminal.now() };
  const app = {
    ...folderApp(store, loaded, processFolder(terminal)),
    clock,
    get tokens() {
      opened ??= new Tokens(store.work, { clock });
      return opened;
    },
  };
  return localCalls({ ...folderHandlers(app), ...tokenHandlers(app) });
}

/** A list call spends up to this long on indexing. A call that returns sooner has nothing left to index. */
const fullRoundMs = 150;

/**
 * Waits until the index is complete, because a command prints its output only once. Yields between calls so that
 * signals are handled.
 */
export async function waitForIndex({ terminal, calls, reader }: OpenCalls): Promise<void> {
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
