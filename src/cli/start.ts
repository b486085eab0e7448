import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { GatewayPieces } from "../app/gateway.ts";
import type { LoadOptions } from "../config/root.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { escapeToLine } from "../core/text.ts";
import { tokenPath } from "../gateway/auth/admin-token.ts";
import type { StartPayload } from "../protocol/command-payloads.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { withCalls } from "./connection/with-calls.ts";
import { loadOptions } from "./connection/with-folder.ts";
import { openBrowser } from "./gateway/open-browser.ts";
import type { AlreadyRunning, OpenGateway, Role } from "./gateway/open-gateway.ts";
import { openGateway } from "./gateway/open-gateway.ts";
import { awaitStop, processSignals } from "./gateway/stop-requests.ts";
import type { AnswerLine } from "./output/answer.ts";
import { printAnswer } from "./output/answer.ts";
import type { Invocation } from "./output/invocation.ts";
import type { ProcessSignals } from "./output/terminal.ts";
import { paint } from "./output/terminal.ts";

export function registerStart(command: Command, context: CommandContext): void {
  command
    .option("--host <address>", "the address to listen on (default: as configured, otherwise 127.0.0.1)")
    .option(
      "--port <number>",
      "the port to listen on, or 0 for any free port (default: as configured, otherwise 18790)",
      portNumber,
    )
    .option("--store <address>", "where sessions are stored, for example postgres://db.example.org/skein")
    .option("--no-workers", "serve clients, but leave the runs to other processes on the same database")
    .option("--workers-only", "execute runs, but serve no clients: only /healthz, /readyz and /metrics")
    .option("--expose", "allow listening on an address that other machines can reach")
    .option("--open", "open the console in the default browser")
    .addHelpText(
      "after",
      examples(
        "skein start",
        "skein start --open",
        "skein start --dir ./project/.skein --port 0",
        "skein start --host 0.0.0.0 --expose",
        "skein start --store postgres://db.example.org/skein",
        "skein start --store postgres://db.example.org/skein --workers-only --port 18791",
        "skein start --json",
      ),
    )
    .action(
      action(context, async (cli: Invocation<StartOptions>) => {
        const signals = context.terminal.signals ?? processSignals();
        const { gatewayPieces } = await import("../app/gateway.ts");
        await startCommand(cli, { version: context.version, pieces: gatewayPieces, signals });
      }),
    );
}

export function registerReload(command: Command, context: CommandContext): void {
  command
    .addHelpText("after", examples("skein reload", "skein reload --dir ./project/.skein --json"))
    .action(action(context, reloadCommand));
}

function portNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError("Must be a whole number from 0 to 65535.");
  return Number(text);
}

export interface StartOptions {
  readonly host?: string;
  readonly port?: number;
  readonly expose?: boolean;
  readonly store?: string;
  readonly workers?: boolean;
  readonly workersOnly?: boolean;
  readonly open?: boolean;
}

export interface StartSurroundings {
  readonly version: string;
  readonly pieces: GatewayPieces;
  readonly signals: ProcessSignals;
  readonly openBrowser?: typeof openBrowser;
}

export async function startCommand(
  cli: Invocation<StartOptions>,
  { version, pieces, signals, openBrowser: open = openBrowser }: StartSurroundings,
): Promise<void> {
  const { terminal, options } = cli;
  const { host, port, expose } = options;
  // Subscribes first so that a stop request during startup is not lost.
  const stop = awaitStop(signals, () => signals.exit(0));
  try {
    const overrides = {
      ...(host && { host }),
      ...(port !== undefined && { port }),
      ...(expose && { expose }),
    };
    const where = withOptions(loadOptions(cli), options);
    const onReload = (file: string | null) =>
      options.json !== true && terminal.out(`Reloaded ${file ?? "the configuration"}.\n`);
    const gateway = await openGateway({ where, overrides, version, pieces, onReload });
    if (gateway.isMine)
      for (const warning of gateway.warnings)
        terminal.err(`${paint(terminal, "yellow", "warning:", "err")} ${escapeToLine(warning)}\n`);
    printAddress(cli, gateway);
    if (options.open === true && gateway.link !== null) {
      const problem = await open(gateway.link);
      if (problem !== null)
        terminal.err(`Could not open a browser (${escapeToLine(problem)}). Open the link manually.\n`);
    }
    if (gateway.isMine) await serveUntilStopped(cli, gateway, stop.requested, signals);
  } finally {
    stop.end();
  }
}

/** These options have the same effect as the environment variables. */
function withOptions(where: LoadOptions, options: StartOptions): LoadOptions {
  const env = present({ SKEIN_STORE: options.store, SKEIN_GATEWAY__ROLE: roleOption(options) });
  return { ...where, env: { ...where.env, ...env } };
}

function roleOption({ workers, workersOnly, open }: StartOptions): Role | null {
  if (workersOnly !== true) return workers === false ? "gateway" : null;
  const other = workers === false ? "--no-workers" : open === true ? "--open" : null;
  if (other === null) return "worker";
  const problem = `--workers-only and ${other} cannot be combined`;
  throw new SkeinError("invalid_arguments", { problem, advice: "Use one of them" });
}

async function serveUntilStopped(
  { terminal, options }: Invocation,
  gateway: OpenGateway,
  requested: Promise<string>,
  signals: ProcessSignals,
): Promise<void> {
  const stopReloading = signals.onReload(() => void gateway.reload());
  // Keeps the process alive: sockets come and go, and all other timers are unreferenced.
  const held = setInterval(() => undefined, 2 ** 30);
  try {
    const why = await requested;
    if (options.json !== true) terminal.out(`Stopping (${why}); a second signal exits immediately.\n`);
  } finally {
    clearInterval(held);
    stopReloading();
  }
  // The next start continues unfinished runs.
  if (!(await gateway.close(signals.graceMs))) signals.exit(0);
}

function printAddress(cli: Invocation<StartOptions>, gateway: OpenGateway | AlreadyRunning): void {
  const { url, pid, startedAt } = gateway.isMine ? { ...gateway, pid: process.pid } : gateway.running;
  const link = present({ link: gateway.link });
  const payload: StartPayload = { url, ...link, pid, startedAt, wasRunning: !gateway.isMine };
  printAnswer(cli, payload, [...linesOf(gateway, payload), ...unappliedLines(cli, gateway)]);
}

function linesOf(gateway: OpenGateway | AlreadyRunning, { url, link, pid }: StartPayload): AnswerLine[] {
  const where: AnswerLine[] = [["address", url], ...(link === undefined ? [] : linkLines(link))];
  if (!gateway.isMine) {
    const machine = gateway.running.isElsewhere ? ", on another machine or in another container" : "";
    return [`A gateway is already running for this folder (process ${pid}${machine}).`, ...where];
  }
  const { root, isFirst, role } = gateway;
  return [
    `The ${role === "worker" ? "worker" : "gateway"} is running for ${root}.`,
    ...where,
    ...(role === "gateway" ? [["workers", "none in this process; others execute the runs"] as const] : []),
    ["token", `in ${tokenPath(root)}, for programs${isFirst ? "; just created" : ""}`],
    "Press Ctrl-C to stop it.",
  ];
}

/** Lists the address options that were not applied because a gateway is already running. */
function unappliedLines(
  { options }: Invocation<StartOptions>,
  gateway: OpenGateway | AlreadyRunning,
): AnswerLine[] {
  if (gateway.isMine) return [];
  const { port = 0, host, expose } = options;
  const given = [
    ...(port === 0 || port === portOf(gateway.running.url) ? [] : [`--port ${port}`]),
    ...(host === undefined ? [] : [`--host ${host}`]),
    ...(expose === true ? ["--expose"] : []),
  ];
  if (given.length === 0) return [];
  const was = given.length === 1 ? "was" : "were";
  return [`${given.join(" ")} ${was} not applied. To change this, stop the running gateway first.`];
}

/** A URL leaves out the port that its scheme implies. */
function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

function linkLines(link: string): AnswerLine[] {
  const use =
    "open it in a browser within ten minutes; it works once, and running the same command again prints a new link";
  return [
    ["link", link],
    ["", use],
  ];
}

async function reloadCommand(cli: Invocation): Promise<void> {
  await withCalls(cli, async ({ calls }) => {
    const done = await calls.call("config.reload", {});
    printAnswer(cli, done, [
      `The gateway reloaded ${done.file ?? "its configuration; there is no file, so the defaults apply"}.`,
      ...done.commands.map((setting) => ["new command", setting] as const),
      ...done.restartNeeded.map((setting) => ["restart needed", setting] as const),
    ]);
  });
}
