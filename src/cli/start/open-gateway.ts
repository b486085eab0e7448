import { setTimeout as sleep } from "node:timers/promises";
import type { LoadedConfig } from "../../config/load.ts";
import { loadConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { checkBinding } from "../../gateway/auth/binding.ts";
import type { Server, ServerSettings } from "../../gateway/contract.ts";
import type { RunningClaim, RunningGateway } from "../../gateway/running-file.ts";
import { claimRunning, findRunning } from "../../gateway/running-file.ts";
import type { Ground } from "./ground.ts";
import { openGround } from "./ground.ts";
import { Inside } from "./inside.ts";
import type { GatewayPieces } from "./pieces.ts";
import { isTaken, portError } from "./port-error.ts";
import { beating, startUpkeep } from "./upkeep.ts";

export interface GatewayOptions {
  /** Where the configuration and its folder are looked for. */
  readonly where: LoadOptions;
  /** Said on the command line; goes before the configuration. */
  readonly asked?: { readonly host?: string; readonly port?: number; readonly expose?: boolean };
  readonly version: string;
  readonly pieces: GatewayPieces;
  readonly clock?: Clock;
  /** Told each time that a changed configuration was taken in. */
  readonly reloaded?: (file: string | null) => void;
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
  /** Takes in the configuration anew. */
  reload(): Promise<unknown>;
  /** Takes nothing new, lets runs come to a written state, closes everything. `false`: something is still under way. */
  close(graceMs?: number): Promise<boolean>;
}

const usualGraceMs = 30_000;

/** A gateway on a folder, unless one runs there already. */
export async function openGateway(options: GatewayOptions): Promise<OpenGateway | AlreadyRunning> {
  const { where, asked = {}, clock = systemClock } = options;
  const loaded = await loadConfig(where);
  const settings = settingsOf(loaded, asked);
  checkBinding(settings.host, settings.isExposed);
  const ground = await openGround(loaded, clock);
  try {
    const running = findRunning(ground.root, clock);
    const opened = running ?? (await start({ ...options, clock }, loaded, settings, ground));
    if ("isMine" in opened) return opened;
    const link = ground.link(opened.url);
    await ground.close();
    return { isMine: false, running: opened, link };
  } catch (error) {
    await ground.close();
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
async function start(
  options: GatewayOptions & { readonly clock: Clock },
  loaded: LoadedConfig,
  settings: ServerSettings,
  ground: Ground,
): Promise<OpenGateway | RunningGateway> {
  const { clock } = options;
  const inside = await Inside.open({ ...options, settings, ground, loaded });
  let server: Server | null = null;
  try {
    server = await options.pieces.listen(inside.serverParts());
    const { url } = server;
    const claim = () => claimRunning(ground.root, { url, clock, exclusively: ground.exclusively });
    const claimed = claim();
    if (!claimed.isMine) {
      await server.close();
      await inside.close(0);
      return claimed.running;
    }
    return await served(inside, { server, ground, clock, claim, mine: claimed.mine });
  } catch (error) {
    await server?.close();
    await inside.close(0);
    // The port may be that of a start that was a moment quicker.
    const other = isTaken(error) ? await soonRunning(ground.root, clock) : findRunning(ground.root, clock);
    if (other !== null) return other;
    throw portError(error, settings);
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

interface Served {
  readonly server: Server;
  readonly ground: Ground;
  readonly clock: Clock;
  readonly mine: RunningClaim;
  claim(): ReturnType<typeof claimRunning>;
}

async function served(inside: Inside, parts: Served): Promise<OpenGateway> {
  const { server, ground, clock, mine, claim } = parts;
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
  const endUpkeep = startUpkeep({ tokens: ground.tokens, dispatch, beat: known.beat, log });
  log("info", "gateway started", { url: server.url, root: ground.root });
  let closing: Promise<boolean> | null = null;
  const close = async (graceMs: number) => {
    log("info", "gateway stops");
    await endUpkeep();
    // From here on requests are refused; those that are nearly done are let finish before their ground goes.
    const drained = server.drain(graceMs).catch((error: unknown) => log("error", String(error)));
    await inside.soon(drained);
    const isClean = await inside.close(graceMs);
    known.release();
    await inside.soon(drained);
    await server.close();
    await ground.close();
    return isClean;
  };
  return {
    isMine: true,
    url: server.url,
    link: ground.link(server.url),
    root: ground.root,
    startedAt: findRunning(ground.root, clock)?.startedAt ?? clock.now(),
    isFirst: ground.isFirst,
    reload: () => inside.reload(),
    close: (graceMs = usualGraceMs) => {
      closing ??= close(graceMs);
      return closing;
    },
  };
}
