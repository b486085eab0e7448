import { resolve } from "node:path";
import type { EmbeddingModelV4 } from "@ai-sdk/provider";
import manifest from "../package.json" with { type: "json" };
import type { EmbeddingModel, LanguageModel, Runtime } from "./agents/contract.ts";
import { createLoop } from "./agents/loop/loop.ts";
import type { AgentDefinition } from "./agents/tools/define-agent.ts";
import { openAcp } from "./app/acp.ts";
import { closeChannels, openChannels, startChannels } from "./app/channels.ts";
import { announceChildEnds, createEngine, storeEvents } from "./app/engine.ts";
import { createFileBoundary, ScratchFolder } from "./app/files.ts";
import { openMcp } from "./app/mcp.ts";
import type { GivenModels } from "./app/models.ts";
import { createModels, openEmbeddings } from "./app/models.ts";
import { openBackend, openStores, placedByStore, sharedClock } from "./app/open-store.ts";
import { defaultLeaseMs, ownerHere } from "./app/process.ts";
import { redactOnWrite, redactorOf } from "./app/redaction.ts";
import { attachRuns } from "./app/runs.ts";
import { SessionTools } from "./app/session-tools.ts";
import type { Watching } from "./app/telemetry.ts";
import { openWatching } from "./app/telemetry.ts";
import type { Channel } from "./channels/contract.ts";
import { configuredAgents } from "./config/agent-settings.ts";
import type { LoadedConfig } from "./config/load.ts";
import { defaultConfig, loadConfig } from "./config/load.ts";
import type { ConfigInput } from "./config/sections/all.ts";
import type { OptionNames } from "./core/check-options.ts";
import type { Clock } from "./core/clock.ts";
import { systemClock } from "./core/clock.ts";
import { SkeinError } from "./core/errors.ts";
import { EventBus, withFeed } from "./core/events.ts";
import type { IdSource } from "./core/ids.ts";
import { createIdSource } from "./core/ids.ts";
import { isAcpKey } from "./core/keys.ts";
import { present } from "./core/present.ts";
import { thrownText } from "./core/text.ts";
import type { ProcessFolder } from "./file-access/file-boundary.ts";
import type { Calls } from "./protocol/calls.ts";
import { Agents } from "./sessions/agents.ts";
import type {
  App,
  MountedGateway,
  MountOptions,
  ServiceCalls,
  ServiceMethod,
  SkeinStore,
} from "./sessions/app.ts";
import { HookRegistry, withShownContext } from "./sessions/hooks.ts";
import { Outgoing } from "./sessions/outgoing.ts";
import { relayProgress } from "./sessions/relay-progress.ts";
import { RunTools } from "./sessions/run-tools.ts";
import { RunWatcher } from "./sessions/run-watcher.ts";
import { createSessionAccess } from "./sessions/session-access.ts";
import { SessionEndHooks } from "./sessions/session-end-hooks.ts";
import { Skein } from "./sessions/skein.ts";
import type { Backend, Store } from "./store/contract.ts";
import { thisProcess } from "./store/files/process-identity.ts";
import type { Recovery } from "./store/files/recover.ts";
import { describeRecovery } from "./store/files/recover.ts";
import type { Spaces } from "./store/spaces.ts";
import type { WorkingBackend } from "./store/work.ts";
import { requireWorking } from "./store/work.ts";

/** Options for opening a Skein instance. */
export interface SkeinOptions {
  /**
   * The root folder. It is created if it does not exist. Defaults to the configured folder or, if none is configured,
   * to `~/.skein`.
   */
  readonly dir?: string;
  /**
   * If `true`, everything is kept in memory until the process exits. With your own `store`, this applies only to its
   * runs.
   */
  readonly memory?: boolean;
  /**
   * Your own store, instead of files in `dir`. Any store that passes the conformance kit can be used. Runs of its
   * sessions are stored in `work.db` in `dir`. You must close the store yourself after closing the Skein instance.
   */
  readonly store?: Store;
  /**
   * A database that several machines share, instead of files in `dir`. Open it with `openPostgres` from
   * `skein/postgres`, and close it after closing the Skein instance. `dir` then contains only files of this machine,
   * such as a gateway's admin token.
   */
  readonly backend?: Backend;
  /**
   * Stores that a call's context can select with its `store` field. After a restart, runs find the stores by these
   * names.
   */
  readonly stores?: Readonly<Record<string, Store>>;
  readonly agents?: readonly AgentDefinition[];
  /**
   * The name of your application. Runs for `agents` and messages to `channels` wait for a process with the same name.
   * Defaults to the name in the package.json nearest to the entry script.
   */
  readonly app?: string;
  /**
   * The configuration, either as an object or as the path of a file. Defaults to the file found by searching upward
   * from the working directory. `null` uses only the defaults and ignores the environment.
   */
  readonly config?: string | ConfigInput | null;
  readonly hooks?: HookRegistry;
  readonly channels?: readonly Channel[];
  /** Your own models, by provider/model. Any AI SDK model can be used. */
  readonly models?: Readonly<Record<string, LanguageModel>>;
  /** `embed` is an AI SDK embedding model with which searches also find texts by their meaning. */
  readonly search?: { readonly embed?: EmbeddingModel };
  /** Collects metrics for `metrics()`. */
  readonly metrics?: boolean;
  /**
   * `false` accepts input but leaves it for another process to run. `"own"` runs only input that this instance has
   * accepted itself and the runs that this input waits for. Use `"own"` in a program that exits when its own request
   * has ended.
   */
  readonly workers?: boolean | "own";
  /** Receives errors that do not belong to any run. By default, they are logged. */
  readonly report?: (error: unknown) => void;
  /** If `true`, nothing is logged to stderr. A log file is still written. */
  readonly quiet?: boolean;
  /**
   * How long a process that does not renew its lease is still considered the owner of its runs, in milliseconds.
   * Defaults to 30,000, or to 8,000 if several machines share the store.
   */
  readonly leaseMs?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * The folder where the search for a configuration starts. It is also the base for relative paths and the working
   * directory of sessions for which no other one is set.
   */
  readonly cwd?: string;
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

export const skeinOptionNames: OptionNames<SkeinOptions> = {
  dir: true,
  memory: true,
  store: true,
  backend: true,
  stores: true,
  agents: true,
  app: true,
  config: true,
  hooks: true,
  channels: true,
  models: true,
  search: true,
  metrics: true,
  workers: true,
  report: true,
  quiet: true,
  leaseMs: true,
  env: true,
  cwd: true,
  clock: true,
  newId: true,
};

/** For internal use. */
export interface OpenOptions extends SkeinOptions {
  /** A configuration that has already been loaded. It is not read again, and `dir` and `config` are ignored. */
  readonly loaded?: LoadedConfig;
  /** The users whose sessions work in `cwd` when no folder is configured. Defaults to all users. */
  readonly usersInProcessFolder?: ProcessFolder["users"];
}

/**
 * Opens everything that one process needs. `inside` receives the app before anything runs, so a listener that
 * subscribes there misses no events. Used by the CLI and by tests.
 */
export async function openSkein(
  given: OpenOptions = {},
  inside: (app: App) => void = () => undefined,
): Promise<Skein> {
  const options = placedByStore(given);
  const { usersInProcessFolder: users = "all" } = options;
  const { loaded, configured } = await configOf(options);
  const { config, variable } = loaded;
  const redactor = redactorOf(loaded);
  const telemetry = await openWatching(
    config,
    options.clock ?? systemClock,
    (text) => redactor.redact(text).text,
    options,
  );
  const { log, metrics, awaitedRuns } = telemetry;
  const report = options.report ?? ((error) => log.write("error", thrownText(error)));
  const bus = new EventBus(report);
  const stopTelemetry = telemetry.start(bus);
  const agents = new Agents({ config, env: variable, definitions: options.agents ?? [], configured });
  const scratch = new ScratchFolder();
  const processFolder = { path: resolve(options.cwd ?? "."), users };
  let store: SkeinStore | null = null;
  const files = createFileBoundary({
    loaded,
    agent: (agentId) => agents.describe(agentId),
    process: processFolder,
    checkRootInPlace: () => store?.upkeep?.checkInPlace(),
    report: (problem) => log.write("warn", problem),
    ...(options.memory === true && { memoryAttachments: (...place) => scratch.attachments(...place) }),
  });
  let ownBackend: WorkingBackend | null = null;
  try {
    const given = options.backend === undefined ? null : requireWorking(options.backend);
    ownBackend = isPlaced(options) ? null : await openBackend(config);
    const backend = given ?? ownBackend;
    if (backend !== null) backend.onError ??= report;
    const clock = options.clock ?? sharedClock(options, backend) ?? systemClock;
    const newId = options.newId ?? createIdSource(clock);
    const owner = ownerHere(newId());
    const spaces = await openStores(
      { ...options, backend },
      {
        loaded,
        clock,
        newId,
        owner,
        report: recoveryReport(options, telemetry, report),
        cwdFor: (place) => files.defaultCwd(place),
      },
    );
    store = spaces.store;
    const { hooks, endHooks } = openHooks(options, { config, redactor, spaces, report });
    const shared = { config, loaded, clock, newId, owner, redactor, log, metrics, awaitedRuns, report };
    const opened = { ...shared, store: endHooks.store, spaces, files, endHooks, bus, hooks, agents };
    const { app, start } = await wire(opened, options, {
      onMount: () => {
        // From now on, requests can come from users other than the program's own user.
        processFolder.users = "unnamed";
      },
      closeRest: async () => {
        await ownBackend?.close();
        await scratch.close();
        await stopTelemetry();
      },
    });
    inside(app);
    if (options.workers !== false) start();
    return new Skein(app);
  } catch (error) {
    // Closes everything that has been opened so far.
    await store?.close().catch(report);
    await ownBackend?.close().catch(report);
    await stopTelemetry().catch(report);
    throw error;
  }
}

/** Whether the options specify where sessions are stored. If they do, the configured store is ignored. */
function isPlaced({ backend, store, memory }: SkeinOptions): boolean {
  return backend !== undefined || store !== undefined || memory === true;
}

/** The members that `openSkein` creates first because they do not depend on any others. */
type OpenedMembers = Pick<
  App,
  | "config"
  | "loaded"
  | "clock"
  | "newId"
  | "owner"
  | "redactor"
  | "log"
  | "metrics"
  | "awaitedRuns"
  | "report"
  | "store"
  | "spaces"
  | "files"
  | "endHooks"
  | "bus"
  | "hooks"
  | "agents"
>;

interface Surroundings {
  onMount(): void;
  /** Closes resources that outlive the store. */
  closeRest(): Promise<void>;
}

/**
 * Builds the app on an open store. Nothing runs before `start`. The parts depend on each other, so members are getters.
 * Each part receives the whole app and must not access members that are built later until it runs.
 */
async function wire(
  opened: OpenedMembers,
  options: OpenOptions,
  { onMount, closeRest }: Surroundings,
): Promise<{ readonly app: App; start(): void }> {
  const { config, loaded, agents, clock, bus, report, owner, store, redactor } = opened;
  const closing = new AbortController();
  const { shared } = store.work;
  const feed = shared?.events ?? null;
  const executesRuns = options.workers !== false;
  const { host } = thisProcess();
  const described = { host, pid: process.pid, version: manifest.version, startedAt: clock.now() };
  await feed?.join({ ...described, executesRuns: executesRuns && options.workers !== "own" }, owner);
  const events = withFeed(bus, feed);
  const stopPublishing = feed === null ? () => undefined : bus.subscribe((event) => feed.publish(event));
  const app: App = {
    ...opened,
    events,
    closed: closing.signal,
    turns: new Map(),
    hasWorkers: () => feed?.processes().some((each) => each.executesRuns) ?? executesRuns,
    get acp() {
      return acp;
    },
    get channels() {
      return channels;
    },
    get runs() {
      return runs;
    },
    get outgoing() {
      return outgoing;
    },
    get watcher() {
      return watcher;
    },
    get models() {
      return models;
    },
    get embeddings() {
      return embeddings;
    },
    get access() {
      return access;
    },
    get sessionTools() {
      return sessionTools;
    },
    get tools() {
      return tools;
    },
    get runtime() {
      return runtime;
    },
    get worker() {
      return engine.worker;
    },
    get calls() {
      return calls;
    },
    wakeOutbox: () => engine.wakeOutbox(),
    mount: async (how) => {
      const gateway = await mounts.open(how);
      onMount();
      return gateway;
    },
    close: once(async (graceMs) => {
      await mounts.close().catch(report);
      stopRelaying();
      await embeddings?.stop();
      await engine.close(graceMs);
      await Promise.all([closeChannels(channels.values()), acp.close()]);
      await mcp.close();
      await runs.endLoopTurns(null, owner).catch(report);
      closing.abort(wasClosed());
      stopStoreEvents();
      stopAnnouncing();
      stopPublishing();
      await store.close();
      await closeRest();
    }),
  };
  const mounts = new Mounts(app, options.memory === true ? null : config.store.path);
  const stopStoreEvents = store.work.watch(storeEvents(bus.emit, () => clock.now()));
  const acp = openAcp(app, options.env ?? process.env);
  const channels = openChannels(app, options.channels ?? []);
  const leaseMs = options.leaseMs ?? shared?.leaseMs ?? defaultLeaseMs;
  const runs = attachRuns(app, { ...options, leaseMs });
  await settleStores(app);
  const outgoing = new Outgoing(channels, config.session.sendPolicy);
  const watcher = new RunWatcher(runs, events, clock, closing.signal);
  const redact = (text: string) => redactor.redact(text).text;
  const given = present({ given: options.models as GivenModels });
  const models = createModels({ config, env: loaded.variable, loop: { clock, redact }, ...given });
  const embeddings = openEmbeddings(app, loaded, options.search?.embed as EmbeddingModelV4 | undefined);
  const access = createSessionAccess({ store, settings: () => agents.access, scope: config.session.scope });
  const mcp = openMcp(config, report);
  const sessionTools = new SessionTools(app);
  const tools = new RunTools(
    [sessionTools.source, ...mcp.sources],
    report,
    (agentId) => agents.find(agentId)?.subagents ?? null,
  );
  const loop = createLoop({ clock, redact });
  const runtime: Runtime = {
    run: (turn) => (isAcpKey(turn.about.sessionKey) ? acp.runtime : loop).run(turn),
  };
  const engine = createEngine(app, leaseMs);
  const calls = lazyCalls(app);
  const stopAnnouncing = announceChildEnds(app);
  const stopRelaying = relayProgress(app);
  const start = () => {
    engine.start({ ownOnly: options.workers === "own" });
    if (options.workers === "own") return;
    embeddings?.start();
    startChannels(channels.values());
  };
  return { app, start };
}

/**
 * Completes changes that earlier processes left unfinished, and reports stores that runs are waiting for. A store that
 * is unavailable is retried later.
 */
async function settleStores({ spaces, store, runs, report }: App): Promise<void> {
  await store.work.settle().catch(report);
  const missing = (await runs.openUsers()).flatMap((userId) => spaces.missingStore(userId) ?? []);
  for (const name of new Set(missing)) report(new SkeinError("store_unknown", { store: name }));
}

/** The gateway's handlers in this process. They are loaded on the first call because most programs never make one. */
function lazyCalls(app: App): ServiceCalls {
  let calls: Promise<(user?: string) => Calls<ServiceMethod>> | null = null;
  const load = async () => {
    const { localCalls, localPrincipal, throwingSkeinErrors } = await import(
      "./gateway/methods/local-calls.ts"
    );
    const { serviceHandlers } = await import("./gateway/methods/handlers.ts");
    const handlers = serviceHandlers(app);
    return (user = localPrincipal.user) =>
      throwingSkeinErrors(localCalls(handlers, { ...localPrincipal, user }));
  };
  return async (user) => {
    app.closed.throwIfAborted();
    calls ??= load();
    return (await calls)(user);
  };
}

function openHooks(
  options: SkeinOptions,
  {
    config,
    spaces,
    redactor,
    report,
  }: Pick<App, "config" | "redactor" | "report"> & { readonly spaces: Spaces<SkeinStore> },
): { readonly hooks: HookRegistry; readonly endHooks: SessionEndHooks<SkeinStore> } {
  const hooks =
    options.hooks ?? new HookRegistry((name, error) => report(new Error(`hook ${name}`, { cause: error })));
  if (config.redaction.onWrite) redactOnWrite(hooks, redactor);
  const shown = withShownContext(hooks, (ctx) => spaces.show(ctx));
  const endHooks = new SessionEndHooks(spaces.store, shown, report);
  spaces.register(endHooks.store);
  return { hooks: shown, endHooks };
}

/** The gateways that this app has mounted in other servers. They close before the app does. */
class Mounts {
  readonly #app: App;
  /** `null` if everything is in memory. */
  readonly #root: string | null;
  readonly #gateways: Promise<MountedGateway>[] = [];
  #isClosed = false;

  constructor(app: App, root: string | null) {
    this.#app = app;
    this.#root = root;
  }

  open(how: MountOptions): Promise<MountedGateway> {
    const gateway = this.#mount(how);
    this.#gateways.push(gateway);
    return gateway;
  }

  async #mount(how: MountOptions): Promise<MountedGateway> {
    if (this.#isClosed) throw wasClosed();
    if (this.#root === null) {
      throw new SkeinError("unavailable", {
        problem:
          "A gateway needs a folder for its tokens, but this Skein instance keeps everything in memory",
        advice: "Pass dir to createSkein",
      });
    }
    const { mountGateway } = await import("./app/gateway.ts");
    return mountGateway(this.#app, this.#root, how);
  }

  /** Also closes gateways that are still opening. If one failed to open, its caller has already received the error. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const opened = await Promise.allSettled(this.#gateways);
    await Promise.all(opened.map((each) => (each.status === "fulfilled" ? each.value.close() : null)));
  }
}

/** The error for calls to a closed Skein instance and for calls that are still waiting when it closes. */
function wasClosed(): SkeinError {
  return new SkeinError("unavailable", {
    problem: "This Skein instance was closed",
    advice: "Open a new instance with createSkein; it continues processing accepted input",
  });
}

/** Calls `act` once. Later calls return the same promise. */
function once<Argument>(act: (argument: Argument) => Promise<void>): (argument: Argument) => Promise<void> {
  let result: Promise<void> | null = null;
  return (argument) => {
    result ??= act(argument);
    return result;
  };
}

async function configOf(
  options: OpenOptions,
): Promise<{ loaded: LoadedConfig; configured: readonly string[] }> {
  const env = options.env ?? process.env;
  const cwd = resolve(options.cwd ?? ".");
  const root = options.dir === undefined ? {} : { root: resolve(cwd, options.dir) };
  const hasCode = (options.agents ?? []).length > 0;
  if (options.config === null && options.loaded === undefined) {
    const config = defaultConfig(root.root ?? resolve(cwd, ".skein"));
    const loaded: LoadedConfig = {
      config,
      root: config.store.path,
      file: null,
      sources: new Map(),
      variable: (name: string) => env[name],
    };
    return { loaded, configured: hasCode ? [] : Object.keys(config.agents) };
  }
  const given =
    typeof options.config === "string" ? { file: options.config } : present({ values: options.config });
  const inCode = {
    agents: (options.agents ?? []).map(({ id }) => id),
    channels: (options.channels ?? []).map(({ id }) => id),
  };
  const loaded = options.loaded ?? (await loadConfig({ cwd, ...root, env, inCode, ...given }));
  return { loaded, configured: configuredAgents(loaded, hasCode) };
}

/**
 * Logs each recovery that concerns a session as a warning. If the caller passed `report`, `report` receives every
 * recovery instead.
 */
function recoveryReport(
  options: SkeinOptions,
  { log }: Watching,
  report: (error: unknown) => void,
): (found: Recovery) => void {
  return (found) => {
    if (found.session === undefined || options.report !== undefined)
      return report(new Error(`${found.file}: ${found.note}`));
    const { message, fields } = describeRecovery(found);
    log.write("warn", message, fields);
  };
}
