import { constants, copyFileSync, mkdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { configNames } from "../../config/find-file.ts";
import { SkeinError } from "../../core/errors.ts";
import { writePieces } from "../output/write-file.ts";

/** The configuration files that a folder has. */
export function configsIn(folder: string): readonly string[] {
  return configNames
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}

/** Refuses a folder that has a configuration: two in one folder are a mistake, whatever they are called. */
export function refuseReplacing([there]: readonly string[]): void {
  if (there === undefined) return;
  throw new SkeinError("write_failed", {
    file: there,
    problem: "it is there already",
    advice: "Change it as you like, or add --force: the old one is kept beside the new one",
  });
}

/** Writes `skein.yaml`. Those that were there are kept under other names, which it gives. */
export function writeConfig(
  folder: string,
  text: string,
  before: readonly string[],
  now: number,
): readonly string[] {
  const file = join(folder, "skein.yaml");
  const backups = before.map((path) => ({ path, backup: `${path}.bak-${process.pid}-${now}` }));
  try {
    mkdirSync(folder, { recursive: true });
    for (const { path, backup } of backups) {
      // The one that is replaced stays in its place until the new one is whole.
      if (path === file) copyFileSync(path, backup, constants.COPYFILE_EXCL);
      else renameSync(path, backup);
    }
  } catch (error) {
    const problem = (error as Error).message;
    const advice = "Check that you may write there, and the room on the disk";
    throw new SkeinError("write_failed", { file, problem, advice }, { cause: error });
  }
  writePieces(file, [text], { replace: before.includes(file) });
  return backups.map(({ backup }) => backup);
}
