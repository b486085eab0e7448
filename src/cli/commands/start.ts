import type { GatewayPieces } from "../../app/pieces.ts";
import { escapeToLine } from "../../core/text.ts";
import { tokenPath } from "../../gateway/auth/admin-token.ts";
import type { StartPayload } from "../../protocol/start.ts";
import { loadOptions } from "../connection/with-folder.ts";
import type { AlreadyRunning, OpenGateway } from "../gateway/open-gateway.ts";
import { openGateway } from "../gateway/open-gateway.ts";
import type { Outside } from "../gateway/stop-requests.ts";
import { untilStopped } from "../gateway/stop-requests.ts";
import type { AnswerLine } from "../output/answer.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { paint } from "../output/terminal.ts";

export interface StartOptions extends GlobalOptions {
  readonly host?: string;
  readonly port?: number;
  readonly expose?: boolean;
}

export interface StartSurroundings {
  readonly version: string;
  readonly pieces: GatewayPieces;
  readonly outside: Outside;
}

/** Opens the gateway of a folder, says how it is reached, and stays until it is told to stop. */
export async function startCommand(
  terminal: Terminal,
  options: StartOptions,
  { version, pieces, outside }: StartSurroundings,
): Promise<void> {
  const { host, port, expose } = options;
  // Heard from the first moment on: who is told to stop while it starts stops as soon as it has.
  const stop = untilStopped(outside, () => outside.exit(0));
  try {
    const asked = { ...(host && { host }), ...(port !== undefined && { port }), ...(expose && { expose }) };
    const where = loadOptions(terminal, options);
    const reloaded = (file: string | null) =>
      options.json !== true && terminal.out(`Reloaded ${file ?? "the configuration"}.\n`);
    const gateway = await openGateway({ where, asked, version, pieces, reloaded });
    if (gateway.isMine)
      for (const warning of gateway.warnings)
        terminal.err(`${paint(terminal, "yellow", "warning:", "err")} ${escapeToLine(warning)}\n`);
    tellWhere(terminal, options, gateway);
    if (gateway.isMine) await stay(terminal, options, gateway, stop.asked, outside);
  } finally {
    stop.end();
  }
}

async function stay(
  terminal: Terminal,
  options: StartOptions,
  gateway: OpenGateway,
  asked: Promise<string>,
  outside: Outside,
): Promise<void> {
  const stopReloading = outside.onReload(() => void gateway.reload());
  // Nothing else may hold the process: sockets come and go, timers do not count.
  const held = setInterval(() => undefined, 2 ** 30);
  try {
    const why = await asked;
    if (options.json !== true) terminal.out(`Stopping (${why}); a second signal exits at once.\n`);
  } finally {
    clearInterval(held);
    stopReloading();
  }
  // What is left over goes on at the next start.
  if (!(await gateway.close())) outside.exit(0);
}

function tellWhere(terminal: Terminal, options: StartOptions, gateway: OpenGateway | AlreadyRunning): void {
  const { link } = gateway;
  const payload: StartPayload = gateway.isMine
    ? { url: gateway.url, link, pid: process.pid, startedAt: gateway.startedAt, wasRunning: false }
    : { ...runningOf(gateway), link, wasRunning: true };
  answer(terminal, options, payload, linesOf(gateway, payload));
}

function runningOf({ running: { url, pid, startedAt } }: AlreadyRunning) {
  return { url, pid, startedAt };
}

function linesOf(gateway: OpenGateway | AlreadyRunning, { url, link, pid }: StartPayload): AnswerLine[] {
  const where: AnswerLine[] = [
    ["address", url],
    ["link", link],
    ["", "for a program: it exchanges the code after # for a token, once, within ten minutes (POST /link)"],
    ["", "there is nothing to see in a browser yet; the same command again prints a new link"],
  ];
  if (!gateway.isMine) {
    const machine = gateway.running.isElsewhere ? ", on another machine or in another container" : "";
    return [`A gateway runs on this folder already (process ${pid}${machine}).`, ...where];
  }
  const { root, isFirst } = gateway;
  return [
    `The gateway is open on ${root}.`,
    ...where,
    ["token", `in ${tokenPath(root)}, for programs${isFirst ? "; made just now" : ""}`],
    "Ctrl-C stops it.",
  ];
}
