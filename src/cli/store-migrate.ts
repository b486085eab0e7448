import type { Command } from "commander";
import type { MigrateResult, MoveStage } from "../app/migrate-store.ts";
import type { StoreAddress } from "../config/sections/store.ts";
import { store } from "../config/sections/store.ts";
import { SkeinError } from "../core/errors.ts";
import type { StoreMigratePayload } from "../protocol/command-payloads.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { loadSettings } from "./connection/with-folder.ts";
import { printAnswer } from "./output/answer.ts";
import { pluralize } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import { progressBar } from "./output/progress.ts";

export function registerStore(command: Command, context: CommandContext): void {
  command.addHelpText("after", examples(toPostgres));
  command
    .command("migrate")
    .description(
      "Copy sessions, runs, tokens and everything else from a folder to a PostgreSQL database or back, and compare the copy with the source. An interrupted migration continues when the command is run again. The source is not changed.",
    )
    .requiredOption("--from <address>", "the store to copy, such as files:~/.skein or postgres://…")
    .requiredOption("--to <address>", "an empty database, or a new or empty folder")
    .option("--skip-damaged-lines", "leave out log lines that cannot be read, instead of refusing")
    .addHelpText("after", examples(toPostgres, toFiles))
    .action(action(context, migrateCommand));
}

const toPostgres = "skein store migrate --from files:~/.skein --to postgres://db.example.org/skein";
const toFiles = "skein store migrate --from postgres://db.example.org/skein --to files:./restored --json";

interface MigrateCommandOptions {
  readonly from: string;
  readonly to: string;
  readonly skipDamagedLines?: boolean;
}

async function migrateCommand(cli: Invocation<MigrateCommandOptions>): Promise<void> {
  const { terminal, options } = cli;
  const [from, to] = [readAddress(cli, options.from), readAddress(cli, options.to)];
  const { config } = await loadSettings(cli);
  const { migrateStore } = await import("../app/migrate-store.ts");
  const display = showProgress(cli);
  try {
    const { postgres: roles } = config;
    const moved = await migrateStore({
      ...{ from, to, roles, now: terminal.now(), progress: display.update },
      damagedLines: options.skipDamagedLines === true ? "skip" : "refuse",
    });
    display.end();
    printMoved(cli, from, to, moved);
  } finally {
    display.end();
  }
}

function readAddress({ terminal }: Invocation, text: string): StoreAddress {
  const { cwd, home } = terminal;
  const address = store.kind.read(text, { folder: cwd, home, root: cwd });
  if (address !== null) return address.value;
  throw new SkeinError("invalid_arguments", {
    problem: `"${text.replace(/:\/\/.*/, "://…")}" is not a valid store address`,
    advice: "Use files:<folder> or postgres://<role>:<password>@<host>/<database>",
  });
}

const stageTitles: Readonly<Record<MoveStage, string>> = {
  checking: "Comparing what an earlier attempt copied",
  sessions: "Copying sessions",
  blobs: "Copying blobs",
  rows: "Copying runs, tokens and messages",
};

/** If the terminal cannot redraw a line, a line is printed for each tenth of a stage. */
const linesPerStage = 10;

function showProgress({ terminal, options }: Invocation): {
  update(stage: MoveStage, done: number, total: number): void;
  end(): void;
} {
  let bar: ReturnType<typeof progressBar> | null = null;
  let [current, printed]: [MoveStage | null, number] = [null, -1];
  return {
    update(stage, done, total) {
      if (stage !== current) {
        bar?.end();
        bar = progressBar(terminal, stageTitles[stage]);
        [current, printed] = [stage, -1];
      }
      bar?.update(done, total);
      const share = total === 0 ? linesPerStage : Math.floor((done / total) * linesPerStage);
      if (terminal.redraws || options.json === true || share === printed) return;
      printed = share;
      terminal.err(`${stageTitles[stage]}: ${done} of ${total}\n`);
    },
    end: () => bar?.end(),
  };
}

function printMoved(cli: Invocation, from: StoreAddress, to: StoreAddress, moved: MigrateResult): void {
  const { sessions, entries, blobs, rows, isResumed } = moved;
  const skipped = [...moved.skipped].map(([key, lines]) => ({ key, lines }));
  const missing = [...moved.missingBlobs].map(([key, { size: blobs }]) => ({ key, blobs }));
  const next = nextCommand(cli, to);
  const payload: StoreMigratePayload = {
    ...{ from: shownAddress(from), to: shownAddress(to), sessions, entries, blobs, rows },
    ...{ skipped, missing, resumed: isResumed, next },
  };
  const { runs = 0, gateway_tokens: tokens = 0, outbox = 0 } = rows;
  printAnswer(cli, payload, [
    `${isResumed ? "Continued an earlier attempt. " : ""}Everything was copied and compared with the source.`,
    ["from", payload.from],
    ["to", payload.to],
    ["sessions", `${pluralize(sessions, "session")} with ${pluralize(entries, "entry", "entries")}`],
    ["blobs", String(blobs)],
    ["runs", String(runs)],
    ["tokens", String(tokens)],
    ["messages", `${outbox} to channels`],
    ...skipped.map(
      ({ key, lines }) => ["left out", `${pluralize(lines, "damaged line")} of ${key}`] as const,
    ),
    ...missing.map(
      ({ key, blobs }) =>
        [
          "not there",
          `${pluralize(blobs, "image or large output", "images or large outputs")} of ${key}`,
        ] as const,
    ),
    ["unchanged", unchangedText(from)],
    ["start it", next],
  ]);
}

/** A folder can also contain files that are not part of a store. */
function unchangedText(from: StoreAddress): string {
  const shown = shownAddress(from);
  if (from.kind === "postgres") return shown;
  return `${shown}, which keeps its configuration, working directories and attachments`;
}

/** Returns the address without the password. */
function shownAddress(address: StoreAddress): string {
  if (address.kind === "files") return `files:${address.path}`;
  const { host, pathname } = new URL(address.url);
  return `postgres://${host}${pathname}`;
}

/** Other users of the machine can see the options of a command, so a password belongs in a variable. */
function nextCommand({ terminal }: Invocation, to: StoreAddress): string {
  const cli = { terminal, options: to.kind === "files" ? { dir: to.path } : {} };
  if (to.kind === "files") return commandLine(cli, "start");
  const url = new URL(to.url);
  if (url.password === "" && url.search === "") return commandLine(cli, "start", "--store", to.url);
  if (url.password !== "") url.password = "…";
  url.search = "";
  return `SKEIN_STORE=${decodeURI(url.href)} ${commandLine(cli, "start")}`;
}
