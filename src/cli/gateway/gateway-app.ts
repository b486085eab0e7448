import { randomUUID } from "node:crypto";
import type { GatewayHub, GatewayPieces, HubOptions, McpEndpoint } from "../../app/gateway.ts";
import { redactorOf } from "../../app/redaction.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { loadConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import { EventBus, withFeed } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import { thrownText } from "../../core/text.ts";
import { exchangeLinkCode } from "../../gateway/auth/link-codes.ts";
import type { EventNumbers } from "../../gateway/events/event-numbers.ts";
import { openDurableNumbers } from "../../gateway/events/event-numbers.ts";
import { selectEvents } from "../../gateway/events/event-selection.ts";
import type { HubStats } from "../../gateway/events/subscriber.ts";
import { Dispatch } from "../../gateway/methods/dispatch.ts";
import type { ServerOptions, ServerSettings } from "../../gateway/server/server-options.ts";
import type { ReloadPayload } from "../../protocol/upkeep.ts";
import type { Log } from "../../telemetry/log.ts";
import { createLog } from "../../telemetry/log.ts";
import type { GatewayHome } from "./gateway-home.ts";
import type { Generation, Grace } from "./generation.ts";
import { CurrentGeneration, openGeneration } from "./generation.ts";
import type { FileSnapshot, ReloadOutcome, ReloadRequest } from "./reload-config.ts";
import { ConfigReloader, FileWatcher, snapshotConfigFiles } from "./reload-config.ts";

export interface GatewayAppOptions {
  readonly where: LoadOptions;
  readonly version: string;
  readonly settings: ServerSettings;
  readonly pieces: GatewayPieces;
  readonly home: GatewayHome;
  readonly loaded: LoadedConfig;
  /** The configuration files as they were just before they were read. */
  readonly snapshot: FileSnapshot;
  readonly clock: Clock;
  /** Called after each applied reload. */
  readonly onReload?: (file: string | null) => void;
}

/** How long a replaced generation has to close. A long tool call can delay the next durable state of its run. */
const replacedGrace: Grace = { runsMs: 3_600_000, callsMs: 3_600_000 };

/**
 * A gateway without its port. Calls fail with `unavailable` until `start` is called, so that the gateway can listen and
 * make sure that it is the only one before it changes anything in its home.
 */
export class GatewayApp {
  readonly #options: GatewayAppOptions;
  readonly #bus: EventBus;
  readonly #hub: GatewayHub;
  readonly #mcp: McpEndpoint;
  readonly #metrics = new GatewayMetrics();
  readonly #watcher: FileWatcher;
  readonly dispatch: Dispatch;
  #log: Log;
  #snapshot: FileSnapshot;
  #current: CurrentGeneration<Generation> | null = null;
  #reloader: ConfigReloader<Generation> | null = null;

  static async open(options: GatewayAppOptions): Promise<GatewayApp> {
    const log = await openGatewayLog(options.loaded);
    const report = (error: unknown) => log.write("error", thrownText(error));
    const numbers = await openDurableNumbers({ engine: options.home.engine, report });
    return new GatewayApp(options, log, numbers);
  }

  private constructor(options: GatewayAppOptions, log: Log, numbers: EventNumbers) {
    const { pieces, version, home } = options;
    this.#options = options;
    this.#log = log;
    this.#snapshot = options.snapshot;
    this.#bus = new EventBus(this.#report);
    this.#watcher = new FileWatcher({
      onChange: () => void this.reloadChanged(),
      onError: (path, error) =>
        this.log("warn", `${path} cannot be watched for changes: ${thrownText(error)}`),
    });
    const acquire = () => this.#acquire();
    this.dispatch = new Dispatch({
      handlers: () => this.#generation().handlers,
      acquire,
      onEnd: (method, outcome) => this.#metrics.countCall(method, outcome),
      mcpServers: () => Object.keys(this.#generation().app.config.mcpServers),
      newErrorId: randomUUID,
      report: (errorId, method, error) =>
        this.log("error", `${method} failed: ${thrownText(error)}`, { errorId, error }),
    });
    const firstRedactor = redactorOf(options.loaded);
    if (home.backend !== null) home.backend.onError = this.#report;
    const events = withFeed(this.#bus, home.backend?.shared.events ?? null);
    const subscribe: HubOptions["subscribe"] = (...listeners) => events.subscribe(...listeners);
    const shared = { subscribe, report: this.#report };
    const redactor = () => this.#current?.get().app.redactor ?? firstRedactor;
    this.#hub = pieces.openHub({ ...shared, numbers, hasPeers: home.backend !== null, redactor });
    const app = () => this.#generation().app;
    const { tokens } = home;
    this.#mcp = pieces.openMcp({ ...shared, tokens, version, heavy: this.dispatch.heavy, app, acquire });
  }

  readonly log: ServerOptions["log"] = (level, message, fields) => this.#log.write(level, message, fields);

  readonly #report = (error: unknown): void => this.log("error", thrownText(error));

  serverParts(): ServerOptions {
    const { version, settings, home, clock } = this.#options;
    return {
      version,
      settings,
      dispatch: this.dispatch,
      hub: this.#hub,
      tokens: home.tokens,
      clock,
      exchange: (code) => exchangeLinkCode(home.tokens, code),
      webhook: (channelId) => this.#webhook(channelId),
      mcp: (request, principal) => this.#mcp.handle(request, principal),
      wanted: async (params, principal, userId) => {
        using lease = this.#acquire();
        return await selectEvents(params, principal, userId, lease.app);
      },
      metrics: async () => {
        using lease = this.#acquire();
        return this.#metrics.append(await lease.skein.metrics(), this.#hub.stats());
      },
      problems: () => this.#problems(),
      log: this.log,
    };
  }

  /** Opens the first generation and starts watching the configuration. */
  async start(): Promise<void> {
    const { loaded, where } = this.#options;
    const current = new CurrentGeneration(await this.#open(loaded), this.#report);
    this.#current = current;
    this.#reloader = new ConfigReloader({
      current,
      load: () => {
        this.#snapshot = snapshotConfigFiles(where);
        return loadConfig(where);
      },
      open: (next) => this.#openNext(next),
      log: this.log,
      grace: replacedGrace,
    });
    this.#watcher.watch(this.#snapshot);
  }

  /** Applies a changed configuration, except for commands that no operator has accepted. Errors are logged. */
  async reloadChanged(): Promise<void> {
    await this.#reload({ acceptsCommands: false });
  }

  /** Returns `false` if some calls or runs did not end in time. */
  async close(graceMs: number): Promise<boolean> {
    this.#watcher.close();
    await this.#reloader?.close();
    // A reload in progress might have started watching again.
    this.#watcher.close();
    const isClean = (await this.#current?.close({ runsMs: graceMs, callsMs: 0 })) ?? true;
    await this.#mcp.close().catch(this.#report);
    this.#hub.close();
    this.log("info", "gateway stopped");
    this.#log.close();
    return isClean;
  }

  /** Applies the whole configuration because an operator requested the reload. */
  async #reloadAll(): Promise<ReloadPayload> {
    const outcome = await this.#reload({ acceptsCommands: true });
    if (outcome === null) throw startingError();
    if (!outcome.isDone) throw outcome.error;
    const { loaded, commands, restartNeeded } = outcome;
    return { ...present({ file: loaded.file }), commands: [...commands], restartNeeded: [...restartNeeded] };
  }

  async #reload(request: ReloadRequest): Promise<ReloadOutcome | null> {
    const outcome = await this.#reloader?.reload(request);
    if (outcome === undefined) return null;
    this.#metrics.countReload(outcome.isDone ? "done" : "refused");
    if (!outcome.isDone) return outcome;
    this.#watcher.watch(this.#snapshot);
    const at = this.#options.clock.now();
    this.#hub.announce({ type: "gateway.reloaded", at, settings: outcome.changed });
    this.#options.onReload?.(outcome.loaded.file);
    return outcome;
  }

  #generation(): Generation {
    if (this.#current !== null) return this.#current.get();
    throw startingError();
  }

  /** Returns the current generation, which is not closed until the lease is disposed of. */
  #acquire(): Pick<Generation, "skein" | "app"> & Disposable {
    const { skein, app, leases, checkInPlace } = this.#generation();
    checkInPlace();
    const lease = leases.acquire();
    return { skein, app, [Symbol.dispose]: () => lease[Symbol.dispose]() };
  }

  async #problems(): Promise<readonly string[]> {
    if (this.#current === null) return ["The gateway is starting."];
    return await this.#current.get().findProblems();
  }

  #webhook(channelId: string): ReturnType<ServerOptions["webhook"]> {
    const { skein, leases, checkInPlace } = this.#generation();
    checkInPlace();
    const receive = skein.webhook(channelId);
    if (receive === null) return null;
    return async (request) => {
      using _lease = leases.acquire();
      return await receive(request);
    };
  }

  #open(loaded: LoadedConfig): Promise<Generation> {
    const { where, pieces, home } = this.#options;
    const { emit } = this.#bus;
    const reload = () => this.#reloadAll();
    const live = this.#hub;
    return openGeneration({ where, loaded, home, pieces, reload, live, emit });
  }

  /** Opens the next generation with the log settings from its configuration. */
  async #openNext(loaded: LoadedConfig): Promise<Generation> {
    // Opening creates a missing home, which must not happen if the folder has been moved away.
    if (loaded.config.store.path === this.#options.home.root) this.#generation().checkInPlace();
    const log = await openGatewayLog(loaded);
    try {
      const generation = await this.#open(loaded);
      this.#log.close();
      this.#log = log;
      return generation;
    } catch (error) {
      log.close();
      throw error;
    }
  }
}

function startingError(): SkeinError {
  return new SkeinError("unavailable", {
    problem: "The gateway is starting",
    advice: "Try again in a moment",
  });
}

function openGatewayLog(loaded: LoadedConfig): Promise<Log> {
  const { level, file } = loaded.config.logging;
  const redactor = redactorOf(loaded);
  return createLog({ level, destination: file ?? 2, redact: (text) => redactor.redact(text).text });
}

/** The gateway's own Prometheus metrics. Method names come from a fixed table, so there are few label values. */
class GatewayMetrics {
  readonly #calls = new Map<string, number>();
  readonly #reloads = new Map<string, number>();

  countCall(method: string, outcome: "ok" | "error"): void {
    increment(this.#calls, `{method="${method}",outcome="${outcome}"}`);
  }

  countReload(outcome: "done" | "refused"): void {
    increment(this.#reloads, `{outcome="${outcome}"}`);
  }

  /** Appends these metrics to the Skein instance's metrics. */
  append(
    metrics: { readonly contentType: string; readonly body: string } | null,
    { subscriptions, sent, dropped, droppedReaders }: HubStats,
  ): { readonly contentType: string; readonly body: string } | null {
    if (metrics === null) return null;
    const table = [
      ["skein_gateway_subscriptions", "gauge", "Open event subscriptions", subscriptions],
      ["skein_gateway_events_sent_total", "counter", "Events sent to readers", sent],
      ["skein_gateway_events_dropped_total", "counter", "Events dropped for slow readers", dropped],
      [
        "skein_gateway_readers_dropped_total",
        "counter",
        "Readers disconnected because they were too slow",
        droppedReaders,
      ],
      ["skein_gateway_calls_total", "counter", "Method calls that have ended", this.#calls],
      ["skein_gateway_reloads_total", "counter", "Configuration reloads", this.#reloads],
    ] as const;
    const lines = table.flatMap(([name, kind, help, values]) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${kind}`,
      ...(typeof values === "number"
        ? [`${name} ${values}`]
        : [...values].map(([labels, value]) => `${name}${labels} ${value}`)),
    ]);
    return { ...metrics, body: `${metrics.body.trimEnd()}\n\n${lines.join("\n")}\n` };
  }
}

function increment(values: Map<string, number>, labels: string): void {
  values.set(labels, (values.get(labels) ?? 0) + 1);
}
