import { resolve } from "node:path";
import type { LanguageModel } from "./agents/contract.ts";
import type { AgentDefinition } from "./agents/tools/define-agent.ts";
import { openAcp } from "./app/acp.ts";
import { skeinDeps } from "./app/call-deps.ts";
import { openChannels } from "./app/channels.ts";
import { agentList, modelList } from "./app/directory.ts";
import { createEngine, tellOfChildEnds } from "./app/engine.ts";
import { createFileBoundary, ScratchFolder } from "./app/files.ts";
import type { InvokeParts } from "./app/invoke-tool.ts";
import { allowedSessionTools, callTool, invokeTool } from "./app/invoke-tool.ts";
import { openMcp } from "./app/mcp.ts";
import type { GivenModels } from "./app/models.ts";
import { checkUsable, createModels, windowOf } from "./app/models.ts";
import type { MountParts } from "./app/mount-gateway.ts";
import type { SkeinStore } from "./app/open-store.ts";
import { openStores, placedByStore } from "./app/open-store.ts";
import { claimsHere, ownerHere } from "./app/process.ts";
import { redactOnWrite, redactorOf } from "./app/redaction.ts";
import { SessionTools } from "./app/session-tools.ts";
import { attachRuns, contextDefaults, idleIn, openRunOf, routingOf } from "./app/settings.ts";
import type { Watching } from "./app/watching.ts";
import { openWatching } from "./app/watching.ts";
import type { Channel } from "./channels/contract.ts";
import type { LoadedConfig } from "./config/load.ts";
import { defaultConfig, loadConfig } from "./config/load.ts";
import type { Config, ConfigInput } from "./config/sections/all.ts";
import type { OptionNames } from "./core/check-options.ts";
import type { Clock } from "./core/clock.ts";
import { systemClock } from "./core/clock.ts";
import { SkeinError } from "./core/errors.ts";
import { EventBus } from "./core/events.ts";
import type { IdSource } from "./core/ids.ts";
import { createIdSource } from "./core/ids.ts";
import { isAcpKey } from "./core/keys.ts";
import { present } from "./core/present.ts";
import { thrownText } from "./core/text.ts";
import type { FileBoundary, ProcessFolder } from "./file-access/file-boundary.ts";
import type { SkeinDeps } from "./gateway/methods/dispatch.ts";
import type { ServerParts } from "./gateway/server/server-options.ts";
import type { Calls } from "./protocol/methods/calls.ts";
import { runIdOf } from "./runs/embedded/rows.ts";
import type { EmbeddedRuns } from "./runs/embedded/runs.ts";
import type { Worker } from "./runs/worker.ts";
import { ActiveTools } from "./sessions/active-tools.ts";
import { Agents } from "./sessions/agents.ts";
import { compactNow } from "./sessions/compact-now.ts";
import type { HookRegistry } from "./sessions/hooks.ts";
import { HookRegistry as Hooks, withShownContext } from "./sessions/hooks.ts";
import { isWebhook, Outgoing } from "./sessions/outgoing.ts";
import { receive } from "./sessions/receive.ts";
import { relayProgress } from "./sessions/relay-progress.ts";
import { RunTools } from "./sessions/run-tools.ts";
import { RunWatcher } from "./sessions/run-watcher.ts";
import type { RunningDeps } from "./sessions/running.ts";
import type { ServiceCalls, ServiceMethod } from "./sessions/services.ts";
import { SessionEnds } from "./sessions/session-ends.ts";
import type { HandleDeps } from "./sessions/session-handle.ts";
import type { ShowRequestDeps } from "./sessions/show-request.ts";
import type { MountedGateway, MountOptions, SkeinParts } from "./sessions/skein.ts";
import { Skein } from "./sessions/skein.ts";
import { storeEvents } from "./sessions/store-events.ts";
import { ChildKeeper } from "./sessions/tidy-children.ts";
import type { SessionRecord, Store } from "./store/contract.ts";
import type { Recovery } from "./store/files/recover.ts";
import { describeRecovery } from "./store/files/recover.ts";
import type { Spaces } from "./store/spaces.ts";

/** How a Skein is opened. */
export interface SkeinOptions {
  /** The folder of everything; made if it is not there. Left out: as the configuration says, else `~/.skein`. */
  readonly dir?: string;
  /** `true`: for as long as the process lives. With a `store` of your own, its runs. */
  readonly memory?: boolean;
  /**
   * A store of your own, instead of files in `dir`: any that passes the conformance kit. The runs of its sessions are in
   * `work.db` in `dir`. You close it, after the Skein.
   */
  readonly store?: Store;
  /** Stores that a call may name in its context, each under a name by which its runs find it after a restart. */
  readonly stores?: Readonly<Record<string, Store>>;
  readonly agents?: readonly AgentDefinition[];
  /**
   * The name of your application: runs of `agents`, and messages to `channels`, wait for a process of the same name. Left out:
   * the name in the package.json nearest to the entry script.
   */
  readonly app?: string;
  /**
   * The configuration: the settings themselves, or the path of a file. Left out: the file that is found from the working
   * directory upwards. `null`: defaults alone, without the environment.
   */
  readonly config?: string | ConfigInput | null;
  readonly hooks?: HookRegistry;
  readonly channels?: readonly Channel[];
  /** Models of your own, by provider/model: anything of the AI SDK. */
  readonly models?: Readonly<Record<string, LanguageModel>>;
  /** Counts and times what happens, for `metrics()`. */
  readonly metrics?: boolean;
  /**
   * `false`: accepts input and leaves it to another process to run. `"own"`: runs only what it accepted itself, and what that
   * waits for; for a program that ends when its own request has ended.
   */
  readonly workers?: boolean | "own";
  /** Told of what went wrong beside the runs themselves. By default it is logged. */
  readonly report?: (error: unknown) => void;
  /** `true`: nothing is logged to stderr; a log file is kept all the same. */
  readonly quiet?: boolean;
  /** How long an owner of runs that says nothing is taken to be alive, in milliseconds; by default 30,000. */
  readonly leaseMs?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where the search for a configuration begins, relative paths, and sessions without a folder of their own. */
  readonly cwd?: string;
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

export const skeinOptionNames: OptionNames<SkeinOptions> = {
  dir: true,
  memory: true,
  store: true,
  stores: true,
  agents: true,
  app: true,
  config: true,
  hooks: true,
  channels: true,
  models: true,
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

/** For tools of our own; not for users. */
export interface OpenOptions extends SkeinOptions {
  /** The configuration, where it was read already: it is not read again, and `dir` and `config` say nothing. */
  readonly loaded?: LoadedConfig;
  /** Whose sessions work in `cwd` when no folder is configured; by default everyone's. */
  readonly usersInProcessFolder?: ProcessFolder["users"];
}

/** What lies behind a Skein, for tools of our own and for tests; not for users. */
export interface SkeinInside {
  readonly store: SkeinStore;
  readonly runs: EmbeddedRuns;
  readonly worker: Worker;
  /** Who subscribes before anything runs hears what the start itself does too. */
  readonly bus: EventBus;
  readonly files: FileBoundary;
}

/** Everything of one process, wired together. `inside` is told of it before anything runs. */
export async function openSkein(
  given: OpenOptions = {},
  inside: ToldInside = () => undefined,
): Promise<Skein> {
  const options = placedByStore(given);
  const { clock = systemClock, leaseMs = 30_000 } = options;
  const newId = options.newId ?? createIdSource(clock);
  const { loaded, configured } = await configOf(options);
  const { config } = loaded;
  const redactor = redactorOf(loaded);
  const watching = await openWatching(config, clock, (text) => redactor.redact(text).text, options);
  const report = options.report ?? ((error) => watching.log.write("error", thrownText(error)));
  const bus = new EventBus(report);
  const stopWatching = watching.start(bus);
  const agents = new Agents({ config, env: loaded.variable, definitions: options.agents ?? [], configured });
  const scratch = new ScratchFolder();
  const owner = ownerHere(newId());
  let store: SkeinStore | null = null;
  const { usersInProcessFolder: users = "all" } = options;
  const processFolder = { path: resolve(options.cwd ?? "."), users };
  const files = createFileBoundary({
    loaded,
    agent: (agentId) => agents.describe(agentId),
    process: processFolder,
    checkRootInPlace: () => store?.upkeep?.checkInPlace(),
    report: (problem) => watching.log.write("warn", problem),
    ...(options.memory === true && { memoryAttachments: (...place) => scratch.attachments(...place) }),
  });
  try {
    const spaces = await openStores(options, {
      loaded,
      clock,
      newId,
      owner,
      report: recoveryReport(options, watching, report),
      cwdFor: (place) => files.defaultCwd(place),
    });
    store = spaces.store;
    const made = { loaded, agents, files, processFolder, scratch, redactor, watching, bus, spaces };
    return await wired(options, inside, { ...made, stopWatching, owner, clock, newId, report, leaseMs });
  } catch (error) {
    // What was opened by then is not left behind.
    await store?.close().catch(report);
    await stopWatching().catch(report);
    throw error;
  }
}

type ToldInside = (parts: SkeinInside) => void;

interface Ground {
  readonly loaded: LoadedConfig;
  readonly agents: Agents;
  readonly files: FileBoundary;
  readonly processFolder: { users: ProcessFolder["users"] };
  readonly scratch: ScratchFolder;
  readonly redactor: ReturnType<typeof redactorOf>;
  readonly watching: Watching;
  readonly bus: EventBus;
  readonly spaces: Spaces<SkeinStore>;
  readonly owner: string;
  readonly clock: Clock;
  readonly newId: IdSource;
  readonly leaseMs: number;
  report(error: unknown): void;
  stopWatching(): Promise<void>;
}

/** Everything that is made upon an open store; nothing of it is under way where this throws. */
async function wired(options: SkeinOptions, inside: ToldInside, ground: Ground): Promise<Skein> {
  const { loaded, agents, files, redactor, watching, bus, spaces } = ground;
  const { config, variable } = loaded;
  const { clock, newId, leaseMs, report, stopWatching, owner } = ground;
  const { hooks, ends } = openHooks(options, ground);
  const { store } = ends;
  const unsubscribe = store.work.watch(storeEvents(bus.emit, () => clock.now()));
  const acp = openAcp({ config, bus, files, clock, env: options.env ?? process.env, report });
  const claims = claimsHere({ agents, acp, given: options, channels: () => channels });
  const serves = (agentId: string, key: string) => claims.agentHere(agentId, key) !== null;
  const modelWindow = (agentId: string, key: string, named: string | undefined) =>
    isAcpKey(key) ? null : windowOf(models, named ?? agents.find(agentId)?.model);
  const checkModel = (name: string) => checkUsable(models, { config, ...given }, name);
  const hasStore = (userId: string | null) => spaces.missingStore(userId) === null;
  const waking = { emit: bus.emit, stopAsked: () => engine.wake() };
  const working = { ...claims, hasStore, ownRequestsOnly: options.workers === "own" };
  const runs = attachRuns(store, config, agents, { clock, newId, leaseMs, ...waking, ...working });
  const mcp = openMcp(config, report);
  const defaults = contextDefaults(config, store, spaces, agents, files);
  await settleStores(ground, runs);
  const accepting = { store, runs, defaults, serves, checkModel, modelWindow };
  const receiving = { ...accepting, routing: routingOf(config, agents) };
  const channels = openChannels({
    config,
    given: options.channels ?? [],
    accept: (message, key) => receive(receiving, message, key),
    clock,
    report,
  });
  const outgoing = new Outgoing(channels, config.session.sendPolicy);
  const gone = new AbortController();
  const watcher = new RunWatcher(runs, bus, clock, gone.signal);
  const redact = (text: string) => redactor.redact(text).text;
  const loop = { clock, redact };
  const given = present({ given: options.models as GivenModels });
  const models = createModels({ config, env: variable, loop, ...given });
  const here = { store, runs, agents, acp, files, config, clock, newId, owner, report, redact };
  const session = new SessionTools({
    ...here,
    ...accepting,
    channels,
    redactor,
    hooks,
    models,
    watcher,
    works: options.workers !== false,
    tools: () => tools,
  });
  const tools: RunTools = new RunTools(
    [session.source, ...mcp.sources],
    report,
    (agentId) => agents.policy(agentId)?.subagents ?? null,
  );
  const keeper = new ChildKeeper(session.deps);
  const stopTelling = tellOfChildEnds(bus, runs, hooks, report);
  const untilEnded = (runId: string, signal: AbortSignal) => watcher.untilEnded(runId, signal);
  const stopRelaying = relayProgress({ bus, store, runs, clock, owner, untilEnded, report });
  const isSandboxed = (record: SessionRecord) => session.isSandboxed(record);
  const parts = { hooks, ends, bus, tools, models, outgoing, watcher, keeper, leaseMs, isSandboxed };
  const engine = createEngine({ ...here, ...parts });
  inside({ store, runs, worker: engine.worker, bus, files });
  if (options.workers !== false) engine.start();
  let closing: Promise<void> | null = null;
  const depsOfCalls = () => skeinDeps(skein, loaded, { runs, store, files, clock, newId });
  const log: ServerParts["log"] = (level, message, fields) => watching.log.write(level, message, fields);
  const root = options.memory === true ? null : config.store.path;
  const mounts = new Mounts({ store, root, bus, log, deps: depsOfCalls });
  const close = async (graceMs: number) => {
    await mounts.close().catch(report);
    stopRelaying();
    await engine.close(graceMs);
    await acp.close();
    await mcp.close();
    runs.endLoopTurns(null, owner);
    gone.abort(wasClosed());
    unsubscribe();
    stopTelling();
    await store.close();
    await ground.scratch.close();
    await stopWatching();
  };
  const compact: HandleDeps["compact"] = (record, how) =>
    compactNow({ ...engine.running, checkIdle: idleIn(runs) }, record, how);
  const calls = lazyCalls(depsOfCalls, gone.signal);
  const skein: Skein = new Skein({
    store,
    runs,
    outbox: runs.outbox,
    bus,
    hooks: options.hooks ?? hooks,
    handles: handleDeps(
      {
        ...receiving,
        ...{ bus, hooks, watcher, closed: gone.signal, calls, compact, checkIdle: idleIn(runs), report },
        ...{ ...loopTurns(runs, owner, () => engine.wake()), awaitedRuns: watching.awaitedRuns },
      },
      newId,
    ),
    watcher,
    ...toolParts({ ...here, defaults, hooks, tools, isSandboxed }, session),
    showRequest: requestShower(options, { config, agents, runs, tools, running: engine.running }),
    agents: async (userId) => [...(await agentList({ agents, config, store, tools }, userId))],
    models: () => [...modelList({ config, agents, models, given: Object.keys(options.models ?? {}) })],
    wakeOutbox: () => engine.wakeOutbox(),
    metrics: async () => (await watching.metrics?.render()) ?? null,
    receive: (message) => receive(receiving, message),
    webhook: (channelId) => webhookHandler(channels.get(channelId)),
    mount: async (how) => {
      const gateway = await mounts.open(how);
      // From now on users come in that are not the program's own.
      ground.processFolder.users = "unnamed";
      return gateway;
    },
    close: (graceMs) => {
      closing ??= close(graceMs);
      return closing;
    },
  });
  return skein;
}

function webhookHandler(channel: Channel | undefined): ReturnType<SkeinParts["webhook"]> {
  return isWebhook(channel) ? (request) => channel.handler(request) : null;
}

/** Finishes what earlier processes left half done, and reports stores that runs wait for. A store that is down is asked again. */
async function settleStores({ spaces, report }: Ground, runs: EmbeddedRuns): Promise<void> {
  await spaces.store.work.settle().catch(report);
  const missing = runs.openUsers().flatMap((userId) => spaces.missingStore(userId) ?? []);
  for (const store of new Set(missing)) report(new SkeinError("store_unknown", { store }));
}

/** Turns of the user's own agent loops in this process. `wake`: runs that waited for one can be claimed. */
function loopTurns(
  runs: EmbeddedRuns,
  owner: string,
  wake: () => void,
): Pick<HandleDeps, "openLoopTurn" | "endLoopTurn"> {
  return {
    openLoopTurn: (record) => runs.openLoopTurn(record, owner),
    endLoopTurn: (uid) => {
      if (runs.endLoopTurns(uid, owner)) wake();
    },
  };
}

type ToolParts = Pick<SkeinParts, "tools" | "callTool" | "invokeTool" | "isSandboxed" | "explainAccess">;

/** What a Skein is asked about tools. */
function toolParts(
  parts: Omit<InvokeParts, "sessionTools" | "callSessionTool">,
  session: SessionTools,
): ToolParts {
  const { isSandboxed } = parts;
  const invoking: InvokeParts = {
    ...parts,
    sessionTools: () => session.source.tools(),
    callSessionTool: (name, args, how) => session.call(name, args, how),
  };
  return {
    tools: async (context) =>
      session.list(context === null ? null : await allowedSessionTools(invoking, context)),
    callTool: (name, args, how) => callTool(invoking, name, args, how),
    invokeTool: (name, args, how) => invokeTool(invoking, name, args, how),
    isSandboxed,
    explainAccess: (asker, reference, action) => session.explain(asker, reference, action),
  };
}

/** The gateway's handlers in this process, loaded with the first call: most programs never make one. */
function lazyCalls(deps: () => SkeinDeps, closed: AbortSignal): ServiceCalls {
  let calls: Promise<(user?: string) => Calls<ServiceMethod>> | null = null;
  const load = async () => {
    const { localCalls, localPrincipal, throwingSkeinErrors } = await import(
      "./gateway/methods/local-calls.ts"
    );
    const { serviceHandlers } = await import("./gateway/methods/handlers.ts");
    const handlers = serviceHandlers(deps());
    return (user = localPrincipal.user) =>
      throwingSkeinErrors(localCalls(handlers, { ...localPrincipal, user }));
  };
  return async (user) => {
    closed.throwIfAborted();
    calls ??= load();
    return (await calls)(user);
  };
}

/** Shows requests with what this process knows: its agents, hooks, servers and the turns in progress. */
function requestShower(
  { models = {} }: SkeinOptions,
  parts: Pick<Ground, "agents"> & {
    readonly config: Config;
    readonly runs: EmbeddedRuns;
    readonly tools: RunTools;
    readonly running: RunningDeps;
  },
): SkeinParts["showRequest"] {
  const { config, agents, runs, tools, running } = parts;
  const deps: ShowRequestDeps = {
    ...running,
    config,
    agent: ({ key, agentId }) => (isAcpKey(key) ? null : agents.find(agentId)),
    tools: async (agent, record, run) =>
      tools.offered(agent, record, await ActiveTools.read(running.store.state, record), run),
    isGiven: ({ provider, model }) => Object.hasOwn(models, `${provider}/${model}`),
    openRun: (record) => openRunOf(runs, record),
  };
  return async (record, options) => {
    const { showRequest } = await import("./sessions/show-request.ts");
    return showRequest(deps, record, options);
  };
}

function openHooks(
  options: SkeinOptions,
  { loaded, spaces, redactor, report }: Ground,
): { readonly hooks: HookRegistry; readonly ends: SessionEnds<SkeinStore> } {
  const hooks =
    options.hooks ?? new Hooks((name, error) => report(new Error(`hook ${name}`, { cause: error })));
  if (loaded.config.redaction.onWrite) redactOnWrite(hooks, redactor);
  const shown = withShownContext(hooks, (ctx) => spaces.show(ctx));
  const ends = new SessionEnds(spaces.store, shown, report);
  spaces.know(ends.store);
  return { hooks: shown, ends };
}

function handleDeps(
  parts: Omit<HandleDeps, "newRunId" | "abort" | "jsonSchema" | "toDrafts">,
  newId: IdSource,
): HandleDeps {
  const { runs } = parts;
  return {
    ...parts,
    toDrafts: async (messages, origin) => {
      const { toDrafts } = await import("./agents/models/to-drafts.ts");
      return toDrafts(messages, origin);
    },
    newRunId: (userId, key) => (key === undefined ? newId() : runIdOf(userId, key)),
    abort: (runId, reason) => runs.abort(runId, reason),
    jsonSchema: async (schema) => {
      const { jsonSchemaOf } = await import("./agents/tools/prepare-tool.ts");
      return jsonSchemaOf("The schema of the answer", schema as Parameters<typeof jsonSchemaOf>[1]);
    },
  };
}

interface MountsParts extends Omit<MountParts, "deps" | "root"> {
  /** `null`: in memory. */
  readonly root: string | null;
  deps(): SkeinDeps;
}

/** The gateways that a Skein has given to servers of others. They are closed before it. */
class Mounts {
  readonly #parts: MountsParts;
  readonly #gateways: Promise<MountedGateway>[] = [];
  #isClosed = false;

  constructor(parts: MountsParts) {
    this.#parts = parts;
  }

  open(how: MountOptions): Promise<MountedGateway> {
    const gateway = this.#mount(how);
    this.#gateways.push(gateway);
    return gateway;
  }

  async #mount(how: MountOptions): Promise<MountedGateway> {
    if (this.#isClosed) throw wasClosed();
    const { root, deps, ...parts } = this.#parts;
    if (root === null) {
      throw new SkeinError("unavailable", {
        problem: "A gateway needs a folder for its tokens, and this Skein is in memory",
        advice: "Open Skein with a dir",
      });
    }
    const { mountGateway } = await import("./app/mount-gateway.ts");
    return mountGateway({ ...parts, root, deps: deps() }, how);
  }

  /** Also closes gateways that are still being opened. One that could not be opened has told its caller. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const opened = await Promise.allSettled(this.#gateways);
    await Promise.all(opened.map((each) => (each.status === "fulfilled" ? each.value.close() : null)));
  }
}

/** The error of calls to a Skein that is closed, and of calls that still wait when it closes. */
function wasClosed(): SkeinError {
  return new SkeinError("unavailable", {
    problem: "This Skein was closed",
    advice: "What it had accepted goes on at the next start; open one anew with createSkein",
  });
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
  const loaded = options.loaded ?? (await loadConfig({ cwd, ...root, env, ...given }));
  const isWritten = [...loaded.sources].some(
    ([path, { from }]) => path.startsWith("agents.") && from !== "default",
  );
  return { loaded, configured: hasCode && !isWritten ? [] : Object.keys(loaded.config.agents) };
}

/** Adoptions are logged with their session; a caller that has a `report` of its own hears of everything. */
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
