import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { rehearsalModel } from "../config/default-model.ts";
import { configNames } from "../config/find-file.ts";
import { SkeinError } from "../core/errors.ts";
import type { InitPayload } from "../protocol/command-payloads.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, yesOption } from "./command.ts";
import type { Found } from "./init-config.ts";
import { chosenModel, configText, findKeys, findOllama } from "./init-config.ts";
import type { AnswerLine } from "./output/answer.ts";
import { printAnswer } from "./output/answer.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import { confirm, pathFrom } from "./output/terminal.ts";

export function registerInit(command: Command, context: CommandContext): void {
  command
    .option("--force", "replace the existing file; a copy is kept under a different name")
    .addOption(yesOption())
    .addHelpText(
      "after",
      examples("skein init", "skein init --dir ./project", "skein init --force --yes", "skein init --json"),
    )
    .action(action(context, initCommand));
}

interface InitOptions {
  readonly force?: boolean;
  readonly yes?: boolean;
}

/** Writes an initial configuration into `--dir` or the current directory. */
async function initCommand(cli: Invocation<InitOptions>): Promise<void> {
  const { terminal, options } = cli;
  if (options.config !== undefined) {
    const advice = "Remove --config; use --dir to specify the folder";
    throw new SkeinError("invalid_arguments", { problem: "The file is always named skein.yaml", advice });
  }
  const folder = pathFrom(terminal, options.dir ?? ".");
  const file = join(folder, "skein.yaml");
  const before = configsIn(folder);
  if (options.force !== true) refuseReplacing(before);
  // The old file is kept, so `--force` is enough if there is no terminal.
  if (before.length > 0 && terminal.ask !== null) {
    await confirm(cli, `Replace ${before.join(" and ")}? A copy is kept.`);
  }
  const [keys, ollama] = await Promise.all([
    findKeys(folder, terminal.env),
    findOllama(terminal.env.OLLAMA_HOST),
  ]);
  const found: Found = { keys, ollama };
  const backups = writeConfig(folder, configText(found), before, terminal.now());
  const payload: InitPayload = {
    file,
    backups: [...backups],
    model: chosenModel(found),
    keys: [...keys],
    ...(ollama === null ? {} : { ollama: { baseUrl: ollama.baseUrl, models: [...ollama.models] } }),
    next: nextSteps(found, doctorLine(cli, file)),
  };
  printAnswer(cli, payload, linesOf(payload));
}

/**
 * If the file is in another folder, the command must name it. Otherwise, a `skein.yaml` in the current directory would
 * be read instead.
 */
function doctorLine(cli: Invocation, file: string): string {
  const { terminal, options } = cli;
  const { dir } = options;
  if (dir === undefined || pathFrom(terminal, dir) === terminal.cwd) return commandLine(cli, "doctor");
  return commandLine({ terminal, options: { ...options, config: join(dir, basename(file)) } }, "doctor");
}

function nextSteps(found: Found, doctor: string): string[] {
  const { keys, ollama } = found;
  const toAddKey =
    "To use a real model, set its API key in the environment or in the .env file next to this file, for example ANTHROPIC_API_KEY=…";
  const toPull =
    "To use a local model, download one with Ollama (ollama pull qwen3) and run this command again with --force";
  return [
    ...(chosenModel(found) === rehearsalModel ? [toAddKey] : []),
    ...(keys.length === 0 && ollama?.models.length === 0 ? [toPull] : []),
    `To check the configuration: ${doctor}`,
  ];
}

function linesOf({ file, backups, model, keys, ollama, next }: InitPayload): AnswerLine[] {
  const named = keys.map(({ variable, from }) => `${variable} (${from})`);
  const models = ollama?.models.length === 0 ? "no models" : (ollama?.models.join(", ") ?? "");
  return [
    `wrote ${file}`,
    ...backups.map((backup) => ["kept", backup] as const),
    ["keys", named.length === 0 ? "none" : named.join(", ")],
    ["ollama", ollama === undefined ? "none" : `${ollama.baseUrl}: ${models}`],
    [
      "model",
      model === rehearsalModel ? `${model}, which needs no API key and only simulates a model` : model,
    ],
    ...next,
  ];
}

function configsIn(folder: string): readonly string[] {
  return configNames
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}

/** Throws if the folder has a configuration file, because two in one folder are an error even if their names differ. */
function refuseReplacing([there]: readonly string[]): void {
  if (there === undefined) return;
  throw new SkeinError("write_failed", {
    file: there,
    problem: "it already exists",
    advice: "Edit it, or add --force; a copy of the old file is kept",
  });
}

/** Writes `skein.yaml`. Keeps existing configuration files under new names and returns their new paths. */
function writeConfig(
  folder: string,
  text: string,
  before: readonly string[],
  now: number,
): readonly string[] {
  const file = join(folder, "skein.yaml");
  const part = `${file}.part-${process.pid}`;
  const backups = before.map((path) => ({ path, backup: `${path}.bak-${process.pid}-${now}` }));
  try {
    mkdirSync(folder, { recursive: true });
    for (const { path, backup } of backups) {
      // The file being replaced stays in place until the new one is complete.
      if (path === file) copyFileSync(path, backup, constants.COPYFILE_EXCL);
      else renameSync(path, backup);
    }
    writeFileSync(part, text, { mode: 0o600 });
    renameSync(part, file);
  } catch (error) {
    if (existsSync(part)) rmSync(part);
    const problem = (error as Error).message;
    const advice = "Check the permissions and the free disk space";
    throw new SkeinError("write_failed", { file, problem, advice }, { cause: error });
  }
  return backups.map(({ backup }) => backup);
}
