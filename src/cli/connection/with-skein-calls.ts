import { userInfo } from "node:os";
import type { FilesStore } from "../../app/folder.ts";
import { holdsSessions } from "../../app/folder.ts";
import { openSkein } from "../../app.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import { keyOfReference } from "../../core/references.ts";
import { thrownText } from "../../core/text.ts";
import { Tokens } from "../../gateway/auth/tokens.ts";
import type { HandledMethod } from "../../gateway/methods/dispatch.ts";
import { allHandlers } from "../../gateway/methods/handlers.ts";
import { localCallsWithEvents, localPrincipal } from "../../gateway/methods/local-calls.ts";
import type { EventFilter, EventStream } from "../../protocol/calls.ts";
import type { MethodName } from "../../protocol/method-table.ts";
import type { App } from "../../sessions/app.ts";
import type { Skein } from "../../sessions/skein.ts";
import { printNotice } from "../output/answer.ts";
import type { Invocation } from "../output/invocation.ts";
import { commandLine } from "../output/invocation.ts";
import type { Terminal } from "../output/terminal.ts";
import { isFileName } from "./resolve-session.ts";
import type { OpenCalls } from "./with-calls.ts";
import { withGateway } from "./with-calls.ts";
import { defaultAgent, folderNotFound, loadOptions, requireFolder } from "./with-folder.ts";

/** All methods, and events. */
export interface OpenSkeinCalls extends OpenCalls<HandledMethod> {
  readonly calls: OpenCalls<HandledMethod>["calls"] & { events(filter?: EventFilter): EventStream };
  /** Whether the gateway's token is allowed to call a method. If there is no gateway, every method is allowed. */
  may(method: MethodName): boolean;
  /** The requests whose runs this process has claimed. */
  claimedRequests(): readonly string[];
}

export interface SkeinUsage {
  /** Determines which queued runs this process executes: none, only those that belong to its own request, or all. */
  readonly workers: boolean | "own";
  /** The session to send to. If this is a key, a missing folder is created. */
  readonly ref?: string;
}

/**
 * Calls methods that need agents or runs, either on the folder's running gateway or through the same handlers on a
 * Skein instance that is opened for the command.
 */
export async function withSkeinCalls<T>(
  cli: Invocation,
  use: (open: OpenSkeinCalls) => Promise<T>,
  usage: SkeinUsage = { workers: false },
): Promise<T> {
  const { ref } = usage;
  if (ref !== undefined && isFileName(ref)) throw fileCannotAnswer(ref);
  return withGateway(
    cli,
    (running, context) => {
      const may = (method: MethodName) => running.hello.methods.includes(method);
      return use({ ...context, calls: running, store: null, may, claimedRequests: () => [] });
    },
    (context) =>
      withSkein(cli, context.loaded, usage, async ({ skein, app, store }) => {
        const clock = { now: () => cli.terminal.now() };
        const tokens = new Tokens(store.work, { clock });
        const served = { ...app, skein, tokens, clock };
        const principal = { ...localPrincipal, name: terminalUser(cli.terminal) };
        const calls = localCallsWithEvents(allHandlers(served), served, principal);
        const claimedRequests = () => app.runs.ownRequests();
        try {
          return await use({ ...context, calls, store, may: () => true, claimedRequests });
        } finally {
          await calls.close();
        }
      }),
  );
}

/** Returns the name under which approvals are recorded. */
function terminalUser({ env }: Terminal): string {
  return `cli:${env.USER ?? env.USERNAME ?? userInfo().username}`;
}

function fileCannotAnswer(ref: string): SkeinError {
  const problem = `"${ref}" is a file, and messages can only be sent to sessions`;
  const advice = "Import it with `sessions import`, then use the imported session";
  return new SkeinError("invalid_arguments", { problem, advice });
}

interface OpenSkein {
  readonly skein: Skein;
  readonly app: App;
  readonly store: FilesStore;
}

/** Opens a Skein instance for the duration of `use`. */
export async function withSkein<T>(
  cli: Invocation,
  loaded: LoadedConfig,
  { workers, ref }: SkeinUsage,
  use: (open: OpenSkein) => Promise<T>,
): Promise<T> {
  requireFolder(cli, loaded);
  const { config } = loaded;
  const agentId = parseAgentId(cli.options.agent ?? defaultAgent);
  const asker = { agentId, scope: config.session.scope };
  const begins = ref !== undefined && keyOfReference(ref, asker) !== null;
  if (!begins && !holdsSessions(config.store.path)) {
    const toBegin = ref === undefined ? ["sessions", "new"] : ["send", "main", "hello"];
    throw folderNotFound(config.store.path, commandLine(cli, ...toBegin));
  }
  const { cwd, env, root, file } = loadOptions(cli);
  const inside = Promise.withResolvers<App>();
  const skein = await openSkein(
    {
      cwd,
      env,
      ...present({ dir: root, config: file }),
      usersInProcessFolder: "unnamed",
      workers,
      quiet: true,
      report: (error) => printNotice(cli, thrownText(error)),
    },
    inside.resolve,
  );
  try {
    // The instance is always opened on a folder, never in memory.
    return await use({ skein, app: await inside.promise, store: skein.store as FilesStore });
  } finally {
    await skein.close();
  }
}
