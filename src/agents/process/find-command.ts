import { access, constants, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";

const endings = process.platform === "win32" ? ["", ".exe", ".com"] : [""];

/**
 * Finds a command's executable file, or returns `null` if there is none. A command with a slash is a path, relative to
 * `cwd`. Relative entries in PATH are skipped because a file in the agent's working directory is not an installed
 * program.
 */
export async function findCommand(
  command: string,
  { PATH = "" }: { readonly PATH?: string | undefined },
  cwd: string,
): Promise<string | null> {
  if (command === "" || command.includes("\0")) return null;
  const isPath = command.includes("/") || (process.platform === "win32" && command.includes("\\"));
  const places = isPath
    ? [resolve(cwd, command)]
    : PATH.split(delimiter)
        .filter((folder) => isAbsolute(folder))
        .map((folder) => join(folder, command));
  for (const file of places.flatMap((place) => endings.map((ending) => place + ending)))
    if (await isExecutable(file)) return file;
  return null;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false; // Missing or not executable, so the next entry in PATH is tried.
  }
}

/** Explains to a user why `findCommand` found nothing. */
export function describeMissingCommand(command: string): string {
  return command.includes("/")
    ? `the command "${command}" does not exist or is not executable`
    : `the command "${command}" was not found on PATH`;
}
