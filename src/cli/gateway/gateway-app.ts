import { randomUUID } from "node:crypto";
import type { GatewayPieces, McpDoor, OpenHub, ServingDeps } from "../../app/pieces.ts";
import { redactorOf } from "../../app/redaction.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { loadConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import { EventBus } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import { thrownText } from "../../core/text.ts";
import { exchangeLinkCode } from "../../gateway/auth/link-codes.ts";
import type { HubStats } from "../../gateway/events/subscriber.ts";
import { Dispatch } from "../../gateway/methods/dispatch.ts";
import type { ServerApp, ServerSettings } from "../../gateway/server/server-options.ts";
import type { ReloadPayload } from "../../protocol/upkeep.ts";
import type { Log } from "../../telemetry/log.ts";
import { createLog } from "../../telemetry/log.ts";
import type { FolderTokens } from "./folder-tokens.ts";
import type { ReloadOutcome, ReloadRequest, SeenFiles } from "./reload-config.ts";
import { FileWatch, Reloading, seeConfig } from "./reload-config.ts";
import type { Grace, Serving } from "./serving.ts";
import { Current, openServing } from "./serving.ts";

export interface InsideOptions {
  readonly where: LoadOptions;
  readonly version: string;
  readonly settings: ServerSettings;
  readonly pieces: GatewayPieces;
  readonly folder: FolderTokens;
  readonly loaded: LoadedConfig;
  /** The files of the configuration, as they were when it was about to be read. */
  readonly seen: SeenFiles;
  readonly clock: Clock;
  /** Told each time that a changed configuration was taken in. */
  readonly reloaded?: (file: string | null) => void;
}

/** What is replaced by a reload gives its runs back where they next stand written, which one long tool call can hold up. */
const replaced: Grace = { runsMs: 3_600_000, callsMs: 3_600_000 };

/**
 * Everything of a gateway but its port. Calls are `unavailable` until `begin`, so that it can listen, and know that it is the
 * only one, before anything works on the folder.
 */
export class Inside {
  readonly #options: InsideOptions;
  readonly #bus: EventBus;
  readonly #hub: OpenHub;
  readonly #mcp: McpDoor;
  readonly #figures = new GatewayFigures();
  readonly #watch: FileWatch;
  readonly dispatch: Dispatch;
  #log: Log;
  #seen: SeenFiles;
  #current: Current<Serving> | null = null;
  #reloading: Reloading<Serving> | null = null;

  static async open(options: InsideOptions): Promise<Inside> {
    return new Inside(options, await openGatewayLog(options.loaded));
  }

  private constructor(options: InsideOptions, log: Log) {
    const { pieces, version, folder, clock, seen } = options;
    this.#options = options;
    this.#log = log;
    this.#seen = seen;
    this.#bus = new EventBus(this.#report);
    this.#watch = new FileWatch({
      changed: () => void this.reloadChanged(),
      failed: (path, error) => this.log("warn", `${path} is not watched: ${thrownText(error)}`),
    });
    this.dispatch = new Dispatch({
      handlers: () => this.#serving().handlers,
      during: (method, call) => this.#during(() => this.#figures.calling(method, call)),
      mcpServers: () => Object.keys(this.#serving().deps.config.mcpServers),
      newErrorId: randomUUID,
      report: (errorId, method, error) =>
        this.log("error", `${method} failed: ${thrownText(error)}`, { errorId, error }),
    });
    const first = redactorOf(options.loaded);
    const parts = {
      tokens: folder.tokens,
      clock,
      subscribe: (listener: Parameters<EventBus["subscribe"]>[0]) => this.#bus.subscribe(listener),
      deps: () => this.#serving().deps,
      redactor: () => this.#current?.get().deps.redactor ?? first,
      report: this.#report,
    };
    this.#hub = pieces.openHub(parts);
    const during = <T>(act: (deps: ServingDeps) => Promise<T>) => this.#during(({ deps }) => act(deps));
    this.#mcp = pieces.openMcp({ ...parts, version, heavy: this.dispatch.heavy, during });
  }

  readonly log: ServerApp["log"] = (level, message, fields) => this.#log.write(level, message, fields);

  readonly #report = (error: unknown): void => this.log("error", thrownText(error));

  /** What the server stands on. */
  serverParts(): ServerApp {
    const { version, settings, pieces, folder, clock } = this.#options;
    return {
      version,
      settings,
      dispatch: this.dispatch,
      hub: this.#hub,
      tokens: folder.tokens,
      clock,
      exchange: (code) => exchangeLinkCode(folder.tokens, code),
      webhook: (channelId) => this.#webhook(channelId),
      mcp: (request, principal) => this.#mcp.handle(request, principal),
      wanted: (params, principal, userId) =>
        this.#during(({ deps }) => pieces.wanted(deps, params, principal, userId)),
      metrics: async () =>
        this.#figures.join(await this.#during(({ skein }) => skein.metrics()), this.#hub.stats()),
      problems: () => this.#problems(),
      log: this.log,
    };
  }

  /** Opens the first Skein, and takes in changes of the configuration from then on. */
  async begin(): Promise<void> {
    const { loaded, where } = this.#options;
    const current = new Current(await this.#open(loaded), this.#report);
    this.#current = current;
    this.#reloading = new Reloading({
      current,
      load: () => {
        this.#seen = seeConfig(where);
        return loadConfig(where);
      },
      open: (next) => this.#reopen(next),
      log: this.log,
      grace: replaced,
    });
    this.#watch.watch(this.#seen);
  }

  /** Applies a changed configuration, except for commands that no operator accepted. A mistake is logged. */
  async reloadChanged(): Promise<void> {
    await this.#reload({ acceptsCommands: false });
  }

  /** Applies the whole configuration, as an operator asked for. */
  async #reloadAll(): Promise<ReloadPayload> {
    const outcome = await this.#reload({ acceptsCommands: true });
    if (outcome === null) throw startingError();
    if (!outcome.isDone) throw outcome.error;
    const { loaded, commands, restartNeeded } = outcome;
    return { ...present({ file: loaded.file }), commands: [...commands], restartNeeded: [...restartNeeded] };
  }

  async #reload(how: ReloadRequest): Promise<ReloadOutcome | null> {
    const outcome = await this.#reloading?.reload(how);
    if (outcome === undefined) return null;
    this.#figures.reloaded(outcome.isDone ? "done" : "refused");
    if (!outcome.isDone) return outcome;
    this.#watch.watch(this.#seen);
    this.#options.reloaded?.(outcome.loaded.file);
    return outcome;
  }

  /** `false`: something that was replaced is still under way. */
  async close(graceMs: number): Promise<boolean> {
    this.#watch.close();
    await this.#reloading?.close();
    this.#watch.close();
    const isClean = (await this.#current?.close({ runsMs: graceMs, callsMs: 0 })) ?? true;
    await this.#mcp.close().catch(this.#report);
    this.#hub.close();
    this.log("info", "gateway stopped");
    this.#log.close();
    return isClean;
  }

  #serving(): Serving {
    if (this.#current !== null) return this.#current.get();
    throw startingError();
  }

  /** Does something on what serves now, which is not closed before that is over. */
  async #during<T>(act: (serving: Serving) => Promise<T>): Promise<T> {
    const serving = this.#serving();
    serving.checkInPlace();
    return serving.calls.during(() => act(serving));
  }

  async #problems(): Promise<readonly string[]> {
    if (this.#current === null) return ["The gateway is starting."];
    const found = await this.#current.get().health();
    return found.map(({ message }) => `${message}.`);
  }

  #webhook(channelId: string): ReturnType<ServerApp["webhook"]> {
    const { skein, calls, checkInPlace } = this.#serving();
    checkInPlace();
    const take = skein.webhook(channelId);
    return take === null ? null : (request) => calls.during(() => take(request));
  }

  #open(loaded: LoadedConfig): Promise<Serving> {
    const { where, pieces, folder } = this.#options;
    const { emit } = this.#bus;
    const reload = () => this.#reloadAll();
    return openServing({ where, loaded, tokens: folder.tokens, pieces, reload, emit });
  }

  /** With the log that the new configuration wants. */
  async #reopen(loaded: LoadedConfig): Promise<Serving> {
    // Opening makes the folder where there is none, and this one was there.
    if (loaded.config.store.path === this.#options.folder.root) this.#serving().checkInPlace();
    const log = await openGatewayLog(loaded);
    try {
      const serving = await this.#open(loaded);
      this.#log.close();
      this.#log = log;
      return serving;
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

/** What the gateway itself has to say, where and as weighty as the configuration wants it. */
function openGatewayLog(loaded: LoadedConfig): Promise<Log> {
  const { level, file } = loaded.config.logging;
  const redactor = redactorOf(loaded);
  return createLog({ level, destination: file ?? 2, redact: (text) => redactor.redact(text).text });
}

/** What a gateway counts beside its Skein, as Prometheus reads it. Methods are of a table, so labels are few. */
class GatewayFigures {
  readonly #calls = new Map<string, number>();
  readonly #reloads = new Map<string, number>();

  /** Counts how a call ends. */
  async calling<T>(method: string, call: () => Promise<T>): Promise<T> {
    let outcome = "error";
    try {
      const result = await call();
      outcome = "ok";
      return result;
    } finally {
      count(this.#calls, `method="${method}",outcome="${outcome}"`);
    }
  }

  reloaded(outcome: "done" | "refused"): void {
    count(this.#reloads, `outcome="${outcome}"`);
  }

  /** Behind what the Skein has counted. */
  join(
    metrics: { readonly contentType: string; readonly body: string } | null,
    { subscriptions, sent, dropped, droppedReaders }: HubStats,
  ): { readonly contentType: string; readonly body: string } | null {
    if (metrics === null) return null;
    const own = [
      ...lines("skein_gateway_subscriptions", "gauge", "Who is told of events", of(subscriptions)),
      ...lines("skein_gateway_events_sent_total", "counter", "Events that went out", of(sent)),
      ...lines(
        "skein_gateway_events_dropped_total",
        "counter",
        "Events left out for slow readers",
        of(dropped),
      ),
      ...lines(
        "skein_gateway_readers_dropped_total",
        "counter",
        "Readers that were given up",
        of(droppedReaders),
      ),
      ...lines("skein_gateway_calls_total", "counter", "Calls of methods that have ended", this.#calls),
      ...lines("skein_gateway_reloads_total", "counter", "Changes of the configuration", this.#reloads),
    ];
    return { ...metrics, body: `${metrics.body.trimEnd()}\n\n${own.join("\n")}\n` };
  }
}

function of(value: number): ReadonlyMap<string, number> {
  return new Map([["", value]]);
}

function count(values: Map<string, number>, labels: string): void {
  values.set(labels, (values.get(labels) ?? 0) + 1);
}

function lines(name: string, kind: string, help: string, values: ReadonlyMap<string, number>): string[] {
  const each = [...values].map(([labels, value]) => `${name}${labels === "" ? "" : `{${labels}}`} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...each];
}
