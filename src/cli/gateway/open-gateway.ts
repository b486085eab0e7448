import { setTimeout as sleep } from "node:timers/promises";
import { warnAboutChatPackages } from "../../app/check-chat-packages.ts";
import { findConsoleFolder } from "../../app/console-folder.ts";
import type { GatewayPieces } from "../../app/gateway.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { loadConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { within } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { checkBinding } from "../../gateway/auth/allowed-hosts.ts";
import type { Claimed, RunningClaim, RunningGateway } from "../../gateway/running-file.ts";
import { claimRunning, findRunning, runningPath } from "../../gateway/running-file.ts";
import type { Server, ServerSettings } from "../../gateway/server/server-options.ts";
import { describeRecovery } from "../../store/files/recover.ts";
import type { GatewayAppOptions } from "./gateway-app.ts";
import { GatewayApp } from "./gateway-app.ts";
import type { GatewayHome } from "./gateway-home.ts";
import { openGatewayHome } from "./gateway-home.ts";
import { isTaken, portError } from "./port.ts";
import { snapshotConfigFiles } from "./reload-config.ts";
import { keepAnnounced, startUpkeep } from "./upkeep.ts";

export type Role = LoadedConfig["config"]["gateway"]["role"];

interface GatewayOptions {
  readonly where: LoadOptions;
  /** Settings from the command line, which override the configuration. */
  readonly overrides?: { readonly host?: string; readonly port?: number; readonly expose?: boolean };
  readonly version: string;
  readonly pieces: GatewayPieces;
  readonly clock?: Clock;
  /** Called after each applied reload. */
  readonly onReload?: (file: string | null) => void;
  /** The delay before the first round of maintenance. Defaults to one minute. */
  readonly upkeepAfterMs?: number;
}

/** Returned if another process is already the gateway for this home. */
export interface AlreadyRunning {
  readonly isMine: false;
  readonly running: RunningGateway;
  readonly link: string;
}

export interface OpenGateway {
  readonly isMine: true;
  readonly url: string;
  /** Can be used once and expires after ten minutes. `null` for a worker, which serves no clients. */
  readonly link: string | null;
  readonly root: string;
  readonly role: Role;
  readonly startedAt: number;
  /** `true` if this start created the admin token. */
  readonly isFirst: boolean;
  /**
   * Warnings for the operator: databases that have been lost or rebuilt since the last start, and a `gateway.json`
   * that cannot be written.
   */
  readonly warnings: readonly string[];
  /** Applies a changed configuration, except for new commands, which wait for `skein reload` or a restart. */
  reload(): Promise<unknown>;
  /**
   * Rejects new requests, lets runs reach a durable state, and closes everything. Resolves to `false` if some calls
   * or runs did not end in time.
   */
  close(graceMs?: number): Promise<boolean>;
}

const defaultGraceMs = 30_000;
/** How long a shutdown waits for requests and maintenance that have started. */
const drainMs = 2000;

/** Opens the gateway for a folder unless one is already running there. */
export async function openGateway(options: GatewayOptions): Promise<OpenGateway | AlreadyRunning> {
  const { where, overrides = {}, clock = systemClock } = options;
  const snapshot = snapshotConfigFiles(where);
  const loaded = await loadConfig(where);
  const settings = settingsOf(loaded, overrides);
  checkBinding(settings.host, settings.isExposed);
  checkRole(loaded);
  const home = await openGatewayHome(loaded, clock, where.cwd);
  try {
    const running = settings.servesClients ? findRunning(home.root, clock) : null;
    const opened = running ?? (await start({ ...options, clock, snapshot, loaded, settings, home }));
    if ("isMine" in opened) return opened;
    const link = await home.link(opened.url);
    await home.close();
    return { isMine: false, running: opened, link };
  } catch (error) {
    await home.close();
    throw error;
  }
}

function settingsOf(
  { config: { gateway } }: LoadedConfig,
  overrides: NonNullable<GatewayOptions["overrides"]>,
): ServerSettings {
  const { host = gateway.host, port = gateway.port, expose = gateway.expose } = overrides;
  const { allowedHosts, trustProxy } = gateway;
  const servesClients = gateway.role !== "worker";
  const basePath = gateway.basePath ?? "";
  const consoleFolder = findConsoleFolder(gateway.console);
  return { host, port, isExposed: expose, servesClients, allowedHosts, trustProxy, basePath, consoleFolder };
}

/**
 * Throws if a gateway for sessions in a folder would do only part of the work. A folder has a single gateway, so no
 * other process would do the rest.
 */
function checkRole({ config: { gateway, store } }: LoadedConfig): void {
  const { role } = gateway;
  if (role === "all" || store.kind === "postgres") return;
  const other = role === "gateway" ? "execute its runs" : "serve its clients";
  throw new SkeinError("invalid_arguments", {
    problem: `The role of this process is ${role}, but its sessions are in the folder ${store.path}, and no other process would ${other}`,
    advice: `Remove ${role === "gateway" ? "--no-workers" : "--workers-only"} or gateway.role, or set store to a PostgreSQL database`,
  });
}

/**
 * If two gateways start at the same time, one of them gets the port and the file, and the other call returns the first.
 */
async function start(options: GatewayOptions & GatewayAppOptions): Promise<OpenGateway | RunningGateway> {
  const { clock, home, settings, upkeepAfterMs } = options;
  const app = await GatewayApp.open(options);
  let server: Server | null = null;
  try {
    server = await options.pieces.listen(app.serverParts());
    const { url } = server;
    const claim = () =>
      settings.servesClients
        ? claimRunning(home.root, { url, clock, exclusively: home.exclusively })
        : claimNothing(clock);
    const claimed = claim();
    if (claimed.isMine) {
      warnAboutChatPackages(options.loaded, app.log);
      return await serve(app, {
        server,
        home,
        claim,
        mine: claimed.mine,
        role: options.loaded.config.gateway.role,
        ...present({ upkeepAfterMs }),
      });
    }
    await abandon(server, app);
    return claimed.running;
  } catch (error) {
    await abandon(server, app);
    if (!settings.servesClients) throw await portError(error, settings);
    // The port might belong to a gateway for this folder that started a moment earlier.
    const other = isTaken(error) ? await waitForRunning(home.root, clock) : findRunning(home.root, clock);
    if (other !== null) return other;
    throw await portError(error, settings);
  }
}

/** Commands look for a gateway in the folder, so a worker does not announce itself there. */
function claimNothing(clock: Clock): Claimed {
  const mine = { startedAt: clock.now(), unwritten: null, beat: () => true, release: () => undefined };
  return { isMine: true, mine };
}

const pollMs = 50;
const maxPolls = 30;

/** A gateway writes its file after it has bound the port. A busy disk can delay the write. */
async function waitForRunning(root: string, clock: Clock): Promise<RunningGateway | null> {
  for (let left = maxPolls; ; left -= 1) {
    const found = findRunning(root, clock);
    if (found !== null || left === 0) return found;
    await sleep(pollMs);
  }
}

async function abandon(server: Server | null, app: GatewayApp): Promise<void> {
  try {
    await server?.close();
  } finally {
    await app.close(0);
  }
}

interface ServeParts {
  readonly server: Server;
  readonly home: GatewayHome;
  readonly upkeepAfterMs?: number;
  readonly mine: RunningClaim;
  readonly role: Role;
  claim(): ReturnType<typeof claimRunning>;
}

async function serve(app: GatewayApp, parts: ServeParts): Promise<OpenGateway> {
  const { server, home, mine, role, claim, upkeepAfterMs } = parts;
  const announcement = keepAnnounced(mine, () => {
    const again = claim();
    if (!again.isMine)
      app.log("warn", `another gateway is already running for this folder: ${again.running.url}`);
    return again.isMine ? again.mine : null;
  });
  try {
    await app.start();
  } catch (error) {
    announcement.release();
    throw error;
  }
  const { log, dispatch } = app;
  const { beat, isAnnounced } = announcement;
  const upkeep = {
    tokens: home.tokens,
    dispatch,
    beat,
    isAnnounced,
    count: home.count,
    takeTurn: home.takeTurn,
    log,
  };
  const endUpkeep = startUpkeep({ ...upkeep, ...present({ firstMs: upkeepAfterMs }) });
  for (const recovery of home.recoveries) {
    const { message, fields } = describeRecovery(recovery);
    log("warn", message, fields);
  }
  log("info", "gateway started", { url: server.url, root: home.root, role });
  let closing: Promise<boolean> | null = null;
  const close = async (graceMs: number) => {
    log("info", "gateway stopping");
    // New requests are rejected from here on. Requests that have already started can finish before the generation
    // closes.
    const drained = server.drain(graceMs).catch((error: unknown) => log("error", String(error)));
    try {
      await within(drainMs, Promise.all([drained, endUpkeep()]));
      return await app.close(graceMs);
    } finally {
      await releaseAll(announcement, drained, server, home);
    }
  };
  return {
    isMine: true,
    url: server.url,
    link: role === "worker" ? null : await home.link(server.url),
    root: home.root,
    role,
    startedAt: mine.startedAt,
    isFirst: home.isFirst,
    warnings:
      mine.unwritten === null ? home.losses : [...home.losses, unannouncedWarning(mine.unwritten, home)],
    reload: () => app.reloadChanged(),
    close: (graceMs = defaultGraceMs) => {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

function unannouncedWarning(problem: string, { root }: GatewayHome): string {
  const found = `${runningPath(root)} could not be written (${problem}): commands cannot find this gateway`;
  const advice = "Free some disk space, and the gateway will write the file automatically";
  return `${found}. ${advice}. Until then, do not start a second gateway or run \`skein doctor --fix\` there.`;
}

/** Runs each step even if the previous one fails. */
async function releaseAll(
  announcement: { release(): void },
  drained: Promise<unknown>,
  server: Server,
  home: GatewayHome,
): Promise<void> {
  try {
    announcement.release();
    await within(drainMs, drained);
  } finally {
    await server.close().finally(() => home.close());
  }
}
