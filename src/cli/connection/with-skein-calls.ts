import { userInfo } from "node:os";
import { skeinDeps } from "../../app/call-deps.ts";
import type { FilesStore } from "../../app/folder.ts";
import { holdsSessions } from "../../app/folder.ts";
import { openSkein } from "../../app.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import { keyMeant } from "../../core/references.ts";
import { thrownText } from "../../core/text.ts";
import { Tokens } from "../../gateway/auth/tokens.ts";
import type { HandledMethod } from "../../gateway/methods/dispatch.ts";
import { allHandlers } from "../../gateway/methods/handlers.ts";
import { localCallsWithEvents, localPrincipal } from "../../gateway/methods/local-calls.ts";
import type { EventFilter, EventStream } from "../../protocol/methods/calls.ts";
import type { MethodName } from "../../protocol/methods/method-table.ts";
import type { App } from "../../sessions/app.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { isFileName } from "./resolve-session.ts";
import { connectToGateway } from "./running-gateway.ts";
import type { OpenCalls } from "./with-calls.ts";
import { callerContext } from "./with-calls.ts";
import { defaultAgent, folderNotFound, loadOptions, loadSettings, tell } from "./with-folder.ts";

/** Every method, and events. */
export interface OpenSkeinCalls extends OpenCalls<HandledMethod> {
  readonly calls: OpenCalls<HandledMethod>["calls"] & { events(filter?: EventFilter): EventStream };
  readonly loaded: LoadedConfig;
  /** Whether the gateway's token may call a method. Without a gateway, every method is allowed. */
  may(method: MethodName): boolean;
  /** The requests of which this process has claimed a run. */
  claimedRequests(): readonly string[];
}

/**
 * Calls methods that need agents or runs: of the folder's running gateway, or the same handlers on a Skein that is opened for
 * the command.
 */
export async function withSkeinCalls<T>(
  terminal: Terminal,
  options: GlobalOptions,
  how: SkeinUsage,
  use: (open: OpenSkeinCalls) => Promise<T>,
): Promise<T> {
  if (how.ref !== undefined && isFileName(how.ref)) throw fileCannotAnswer(how.ref);
  const loaded = await loadSettings(terminal, options);
  const { config } = loaded;
  const running = await connectToGateway(terminal, options, config.store.path);
  const behalf = callerContext(terminal, options, config, running?.hello.userId);
  const about = { ...behalf, place: config.store.path, loaded };
  if (running !== null) {
    try {
      const may = (method: MethodName) => running.hello.methods.includes(method);
      return await use({ ...about, calls: running, store: null, may, claimedRequests: () => [] });
    } finally {
      await running.close();
    }
  }
  return withSkein(terminal, options, loaded, how, async ({ skein, app, store }) => {
    const clock = { now: () => terminal.now() };
    const tokens = new Tokens({ ledger: store.work.ledger, clock });
    const deps = { ...skeinDeps(skein, loaded, app), tokens, clock };
    const calls = localCallsWithEvents(allHandlers(deps), deps, {
      ...localPrincipal,
      name: terminalUser(terminal),
    });
    try {
      return await use({
        ...about,
        calls,
        store,
        may: () => true,
        claimedRequests: () => app.runs.ownRequests(),
      });
    } finally {
      await calls.close();
    }
  });
}

/** The name that approvals are recorded under. */
function terminalUser({ env }: Terminal): string {
  return `cli:${env.USER ?? env.USERNAME ?? userInfo().username}`;
}

function fileCannotAnswer(ref: string): SkeinError {
  const advice = "Import it with `sessions import`, and name the imported session";
  return new SkeinError("invalid_arguments", {
    problem: `"${ref}" is a file, and a file cannot answer`,
    advice,
  });
}

interface OpenSkein {
  readonly skein: Skein;
  readonly app: App;
  readonly store: FilesStore;
}

export interface SkeinUsage {
  /** Which queued runs this process executes: none, only those of its own request, or all. */
  readonly workers: boolean | "own";
  /** The session to send to. A key creates a missing folder. */
  readonly ref?: string;
}

/** Opens a Skein for the duration of `use`. */
export async function withSkein<T>(
  terminal: Terminal,
  options: GlobalOptions,
  loaded: LoadedConfig,
  { workers, ref }: SkeinUsage,
  use: (open: OpenSkein) => Promise<T>,
): Promise<T> {
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  const { config } = loaded;
  const asker = { agentId, scope: config.session.scope };
  const begins = ref !== undefined && keyMeant(ref, asker) !== null;
  if (!begins && !holdsSessions(config.store.path)) {
    const toBegin = ref === undefined ? ["sessions", "new"] : ["send", "main", "hello"];
    throw folderNotFound(config.store.path, commandLine(terminal, options, toBegin));
  }
  const { cwd, env, root, file } = loadOptions(terminal, options);
  const inside = Promise.withResolvers<App>();
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
    // Always opened on a folder, never in memory.
    return await use({ skein, app: await inside.promise, store: skein.store as FilesStore });
  } finally {
    await skein.close();
  }
}
