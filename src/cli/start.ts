import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { GatewayPieces } from "../app/gateway.ts";
import { escapeToLine } from "../core/text.ts";
import { tokenPath } from "../gateway/auth/admin-token.ts";
import type { StartPayload } from "../protocol/command-payloads.ts";
import type { CommandContext } from "./command.ts";
import { examples } from "./command.ts";
import { withCalls } from "./connection/with-calls.ts";
import { loadOptions } from "./connection/with-folder.ts";
import type { AlreadyRunning, OpenGateway } from "./gateway/open-gateway.ts";
import { openGateway } from "./gateway/open-gateway.ts";
import { awaitStop, processSignals } from "./gateway/stop-requests.ts";
import type { AnswerLine } from "./output/answer.ts";
import { answer } from "./output/answer.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { ProcessSignals, Terminal } from "./output/terminal.ts";
import { paint } from "./output/terminal.ts";

export function registerStart(command: Command, { terminal, version }: CommandContext): void {
  command
    .option("--host <address>", "the address to listen on (default: as configured, else 127.0.0.1)")
    .option("--port <number>", "the port; 0: any free one (default: as configured, else 18790)", portNumber)
    .option("--expose", "allow an address that other machines can reach")
    .addHelpText(
      "after",
      examples(
        "skein start",
        "skein start --dir ./project/.skein --port 0",
        "skein start --host 0.0.0.0 --expose",
        "skein start --json",
      ),
    )
    .action(async () => {
      const signals = terminal.signals ?? processSignals();
      const { gatewayPieces } = await import("../app/gateway.ts");
      await startCommand(terminal, command.optsWithGlobals(), { version, pieces: gatewayPieces, signals });
    });
}

export function registerReload(command: Command, { terminal }: CommandContext): void {
  command
    .addHelpText("after", examples("skein reload", "skein reload --dir ./project/.skein --json"))
    .action(() => reloadCommand(terminal, command.optsWithGlobals()));
}

function portNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
  return Number(text);
}

export interface StartOptions extends GlobalOptions {
  readonly host?: string;
  readonly port?: number;
  readonly expose?: boolean;
}

export interface StartSurroundings {
  readonly version: string;
  readonly pieces: GatewayPieces;
  readonly signals: ProcessSignals;
}

export async function startCommand(
  terminal: Terminal,
  options: StartOptions,
  { version, pieces, signals }: StartSurroundings,
): Promise<void> {
  const { host, port, expose } = options;
  // Subscribed first, so that a stop request during the start is not lost.
  const stop = awaitStop(signals, () => signals.exit(0));
  try {
    const overrides = {
      ...(host && { host }),
      ...(port !== undefined && { port }),
      ...(expose && { expose }),
    };
    const where = loadOptions(terminal, options);
    const onReload = (file: string | null) =>
      options.json !== true && terminal.out(`Reloaded ${file ?? "the configuration"}.\n`);
    const gateway = await openGateway({ where, overrides, version, pieces, onReload });
    if (gateway.isMine)
      for (const warning of gateway.warnings)
        terminal.err(`${paint(terminal, "yellow", "warning:", "err")} ${escapeToLine(warning)}\n`);
    tellWhere(terminal, options, gateway);
    if (gateway.isMine) await stay(terminal, options, gateway, stop.requested, signals);
  } finally {
    stop.end();
  }
}

async function stay(
  terminal: Terminal,
  options: StartOptions,
  gateway: OpenGateway,
  requested: Promise<string>,
  signals: ProcessSignals,
): Promise<void> {
  const stopReloading = signals.onReload(() => void gateway.reload());
  // Keeps the process alive: sockets come and go, and the other timers are unreferenced.
  const held = setInterval(() => undefined, 2 ** 30);
  try {
    const why = await requested;
    if (options.json !== true) terminal.out(`Stopping (${why}); a second signal exits at once.\n`);
  } finally {
    clearInterval(held);
    stopReloading();
  }
  // Open runs continue at the next start.
  if (!(await gateway.close(signals.graceMs))) signals.exit(0);
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
    `The gateway is running on ${root}.`,
    ...where,
    ["token", `in ${tokenPath(root)}, for programs${isFirst ? "; just created" : ""}`],
    "Ctrl-C stops it.",
  ];
}

export async function reloadCommand(terminal: Terminal, options: GlobalOptions): Promise<void> {
  await withCalls(terminal, options, async ({ calls }) => {
    const done = await calls.call("config.reload", {});
    const lines: AnswerLine[] = [
      `The gateway reloaded ${done.file ?? "its configuration; there is no file, so the defaults apply"}.`,
      ...done.commands.map((setting): AnswerLine => ["new command", setting]),
      ...done.restartNeeded.map((setting): AnswerLine => ["needs a restart", setting]),
    ];
    answer(terminal, options, done, lines);
  });
}
