import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { restoreFolder } from "../app/folder.ts";
import { CallError } from "../client/contract.ts";
import type { LoadedConfig } from "../config/load.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { tokenTables } from "../gateway/auth/token-table.ts";
import type { BackupPayload, RestorePayload } from "../protocol/command-payloads.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { fetchGatewayConfig } from "./connection/connect-to-gateway.ts";
import { withFolder } from "./connection/with-folder.ts";
import type { AnswerLine } from "./output/answer.ts";
import { printAnswer, printNotice } from "./output/answer.ts";
import { formatBytes, pluralize } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import { withProgress } from "./output/progress.ts";
import { pathFrom } from "./output/terminal.ts";

export function registerBackup(command: Command, context: CommandContext): void {
  command
    .argument("<folder>", "the folder to write the backup to")
    .addHelpText("after", examples("skein backup ./backup", "skein backup ./backup --json"))
    .action(action(context, backupCommand));
}

export function registerRestore(command: Command, context: CommandContext): void {
  command
    .argument("<backup>", "the folder that `skein backup` wrote")
    .addHelpText(
      "after",
      examples("skein restore ./backup --dir ./restored", "skein restore ./backup --dir ./restored --json"),
    )
    .action(action(context, restoreCommand));
}

async function backupCommand(cli: Invocation, target: string): Promise<void> {
  const { terminal } = cli;
  const folder = pathFrom(terminal, target);
  await withFolder(cli, async ({ store, loaded }) => {
    const file = await findConfiguration(cli, loaded);
    const how = { emptyTables: tokenTables, ...present({ configuration: file }) };
    const done = await withProgress(terminal, "Copying", (update) =>
      store.upkeep.backup(folder, update, how),
    );
    const payload: BackupPayload = {
      folder,
      files: done.files,
      bytes: done.bytes,
      ...present({ configuration: done.configuration }),
      leftOut: leftOutOf("the restored folder", done.configuration),
    };
    printAnswer(cli, payload, [
      `copied ${pluralize(done.files, "file")}, ${formatBytes(done.bytes)}, to ${folder}`,
      ["configuration", file === null ? "none (no file was found)" : `${file}, as ${done.configuration}`],
      ...payload.leftOut.map(leftOutLine),
      ["restore it", commandLine({ terminal, options: {} }, "restore", folder, "--dir", "./restored")],
    ]);
  });
}

/** The `store` setting in a restored configuration. It names the restored folder, not the one that was backed up. */
const storeHere = "files:.";

async function restoreCommand(cli: Invocation, backup: string): Promise<void> {
  const { terminal, options } = cli;
  if (options.dir === undefined) {
    const problem = "No folder to restore to was given";
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Specify a new or empty folder with --dir",
    });
  }
  const folder = pathFrom(terminal, options.dir);
  const { replaceStore } = await import("../config/parse-yaml.ts");
  let store: string | null = null;
  const { files, configuration, createdAt } = await withProgress(terminal, "Restoring", (update) =>
    restoreFolder(pathFrom(terminal, backup), folder, update, (text) => {
      const changed = replaceStore(text, storeHere);
      if (changed !== null) store = storeHere;
      return changed;
    }),
  );
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const payload: RestorePayload = {
    folder,
    files: files.length,
    bytes,
    ...present({ configuration }),
    leftOut: leftOutOf(folder, configuration),
    createdAt,
    ...present({ store }),
  };
  const config = configuration === null ? {} : { config: join(folder, configuration) };
  printAnswer(cli, payload, [
    `restored ${pluralize(files.length, "file")}, ${formatBytes(bytes)}, to ${folder}, as of ${createdAt}`,
    ["changed", store === null ? undefined : `store in ${configuration} is now ${store}`],
    ...payload.leftOut.map(leftOutLine),
    ["start it", commandLine({ terminal, options: { dir: folder, ...config } }, "start")],
  ]);
}

/**
 * Returns the real path of the running gateway's configuration file, or of the one found from the current directory
 * if no gateway is running.
 */
async function findConfiguration(cli: Invocation, { config, file }: LoadedConfig): Promise<string | null> {
  const found = await fetchGatewayConfig(cli, config.store.path)
    .then((running) => (running === null ? file : (running.file ?? null)))
    .catch((error: unknown) => {
      if (!(error instanceof CallError || error instanceof SkeinError)) throw error;
      printNotice(cli, `The gateway did not report which configuration it uses: ${error.message}`);
      return file;
    });
  return found === null ? null : realpathSync(found);
}

function leftOutOf(folder: string, configuration: string | null): BackupPayload["leftOut"] {
  const besideIt = configuration === null ? folder : join(folder, ".env");
  return [
    {
      what: "environment variables and .env",
      instead:
        configuration === null
          ? "set them where the gateway is started"
          : `copy .env to ${besideIt}, next to ${configuration}, and set the others where the gateway is started`,
    },
    {
      what: "tokens",
      instead: "the first start creates a new admin token; create the others with `skein token create`",
    },
    {
      what: "agents' working directories, including workspace/",
      instead: "copy them yourself; relative paths in the configuration are resolved against its folder",
    },
    { what: "derived files", instead: "the first start rebuilds indexes, lists and working sets" },
  ];
}

function leftOutLine({ what, instead }: BackupPayload["leftOut"][number]): AnswerLine {
  return ["left out", `${what}: ${instead}`];
}
