import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayPieces } from "../../app/pieces.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { loadConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { present } from "../../core/present.ts";
import { within } from "../../core/within.ts";
import { checkBinding } from "../../gateway/auth/allowed-hosts.ts";
import type { RunningClaim, RunningGateway } from "../../gateway/running-file.ts";
import { claimRunning, findRunning, runningPath } from "../../gateway/running-file.ts";
import type { Server, ServerSettings } from "../../gateway/server/server-options.ts";
import { describeRecovery } from "../../store/files/recover.ts";
import type { FolderTokens } from "./folder-tokens.ts";
import { openFolderTokens } from "./folder-tokens.ts";
import type { InsideOptions } from "./gateway-app.ts";
import { Inside } from "./gateway-app.ts";
import { isTaken, portError } from "./port.ts";
import { seeConfig } from "./reload-config.ts";
import { beating, startUpkeep } from "./upkeep.ts";

interface GatewayOptions {
  /** Where the configuration and its folder are looked for. */
  readonly where: LoadOptions;
  /** Said on the command line; goes before the configuration. */
  readonly asked?: { readonly host?: string; readonly port?: number; readonly expose?: boolean };
  readonly version: string;
  readonly pieces: GatewayPieces;
  readonly clock?: Clock;
  /** Told each time that a changed configuration was taken in. */
  readonly reloaded?: (file: string | null) => void;
  /** When it looks after the folder for the first time; by default after a minute. */
  readonly upkeepAfterMs?: number;
}

/** Another process is the gateway of this folder. */
export interface AlreadyRunning {
  readonly isMine: false;
  readonly running: RunningGateway;
  readonly link: string;
}

export interface OpenGateway {
  readonly isMine: true;
  readonly url: string;
  /** For a page, good once and for ten minutes. */
  readonly link: string;
  readonly root: string;
  readonly startedAt: number;
  /** The admin token was made by this start. */
  readonly isFirst: boolean;
  /** For the operator: databases that were lost or rebuilt since the last start, and a `gateway.json` that has no room. */
  readonly warnings: readonly string[];
  /** Applies a changed configuration, except for new commands: those wait for `skein reload` or a restart. */
  reload(): Promise<unknown>;
  /** Takes nothing new, lets runs come to a written state, closes everything. `false`: something is still under way. */
  close(graceMs?: number): Promise<boolean>;
}

const usualGraceMs = 30_000;
/** What is nearly done at a stop is waited for, and no longer. */
const nearlyDoneMs = 2000;

/** A gateway on a folder, unless one runs there already. */
export async function openGateway(options: GatewayOptions): Promise<OpenGateway | AlreadyRunning> {
  const { where, asked = {}, clock = systemClock } = options;
  const seen = seeConfig(where);
  const loaded = await loadConfig(where);
  const settings = settingsOf(loaded, asked);
  checkBinding(settings.host, settings.isExposed);
  const folder = await openFolderTokens(loaded, clock, where.cwd);
  try {
    const running = findRunning(folder.root, clock);
    const opened = running ?? (await start({ ...options, clock, seen, loaded, settings, folder }));
    if ("isMine" in opened) return opened;
    const link = folder.link(opened.url);
    await folder.close();
    return { isMine: false, running: opened, link };
  } catch (error) {
    await folder.close();
    throw error;
  }
}

function settingsOf(
  { config: { gateway } }: LoadedConfig,
  asked: NonNullable<GatewayOptions["asked"]>,
): ServerSettings {
  const { host = gateway.host, port = gateway.port, expose = gateway.expose } = asked;
  const { allowedHosts, trustProxy } = gateway;
  return { host, port, isExposed: expose, allowedHosts, trustProxy };
}

/** Of two that start at once one gets the port or the file; the other one is told which. */
async function start(options: GatewayOptions & InsideOptions): Promise<OpenGateway | RunningGateway> {
  const { clock, folder, settings, upkeepAfterMs } = options;
  const inside = await Inside.open(options);
  let server: Server | null = null;
  try {
    server = await options.pieces.listen(inside.serverParts());
    const { url } = server;
    const claim = () => claimRunning(folder.root, { url, clock, exclusively: folder.exclusively });
    const claimed = claim();
    if (claimed.isMine)
      return await served(inside, {
        server,
        folder,
        claim,
        mine: claimed.mine,
        ...present({ upkeepAfterMs }),
      });
    await abandon(server, inside);
    return claimed.running;
  } catch (error) {
    await abandon(server, inside);
    // The port may be that of a start that was a moment quicker.
    const other = isTaken(error) ? await soonRunning(folder.root, clock) : findRunning(folder.root, clock);
    if (other !== null) return other;
    throw await portError(error, settings);
  }
}

const lookMs = 50;
const looks = 30;

/** Who has the port may be just about to say so in the folder: between the two lies a write that a busy disk holds up. */
async function soonRunning(root: string, clock: Clock): Promise<RunningGateway | null> {
  for (let left = looks; ; left -= 1) {
    const found = findRunning(root, clock);
    if (found !== null || left === 0) return found;
    await sleep(lookMs);
  }
}

async function abandon(server: Server | null, inside: Inside): Promise<void> {
  try {
    await server?.close();
  } finally {
    await inside.close(0);
  }
}

interface Served {
  readonly server: Server;
  readonly folder: FolderTokens;
  readonly upkeepAfterMs?: number;
  readonly mine: RunningClaim;
  claim(): ReturnType<typeof claimRunning>;
}

async function served(inside: Inside, parts: Served): Promise<OpenGateway> {
  const { server, folder, mine, claim, upkeepAfterMs } = parts;
  const known = beating(mine, () => {
    const again = claim();
    if (!again.isMine) inside.log("warn", `another gateway runs on this folder: ${again.running.url}`);
    return again.isMine ? again.mine : null;
  });
  try {
    await inside.begin();
  } catch (error) {
    known.release();
    throw error;
  }
  const { log, dispatch } = inside;
  const { beat, isAnnounced } = known;
  const upkeep = { tokens: folder.tokens, dispatch, beat, isAnnounced, count: folder.count, log };
  const endUpkeep = startUpkeep({ ...upkeep, ...present({ firstMs: upkeepAfterMs }) });
  for (const recovery of folder.recoveries) {
    const { message, fields } = describeRecovery(recovery);
    log("warn", message, fields);
  }
  log("info", "gateway started", { url: server.url, root: folder.root });
  let closing: Promise<boolean> | null = null;
  const close = async (graceMs: number) => {
    log("info", "gateway stops");
    // From here on requests are refused; those that are nearly done are let finish before their ground goes.
    const drained = server.drain(graceMs).catch((error: unknown) => log("error", String(error)));
    try {
      await within(nearlyDoneMs, Promise.all([drained, endUpkeep()]));
      return await inside.close(graceMs);
    } finally {
      await letGo(known, drained, server, folder);
    }
  };
  return {
    isMine: true,
    url: server.url,
    link: folder.link(server.url),
    root: folder.root,
    startedAt: mine.startedAt,
    isFirst: folder.isFirst,
    warnings:
      mine.unwritten === null ? folder.losses : [...folder.losses, unannounced(mine.unwritten, folder)],
    reload: () => inside.reloadChanged(),
    close: (graceMs = usualGraceMs) => {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

function unannounced(problem: string, { root }: FolderTokens): string {
  const found = `${runningPath(root)} could not be written (${problem}): commands do not find this gateway`;
  const advice = "Make room on its disk, and the gateway writes the file by itself";
  return `${found}. ${advice}. Until then, start no second gateway and run no \`skein doctor --fix\` there.`;
}

/** However one of them fares, the next is let go of. */
async function letGo(
  known: { release(): void },
  drained: Promise<unknown>,
  server: Server,
  folder: FolderTokens,
): Promise<void> {
  try {
    known.release();
    await within(nearlyDoneMs, drained);
  } finally {
    await server.close().finally(() => folder.close());
  }
}
