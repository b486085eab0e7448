import { access, constants, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";

const endings = process.platform === "win32" ? ["", ".exe", ".com"] : [""];

/**
 * The file that a command stands for; `null`: there is none that may be executed. A command with a slash is a path, from
 * `cwd` where it is not absolute. Places of PATH that are not absolute are passed over: what lies in a folder that an agent
 * works in is not what people have installed.
 */
export async function findCommand(
  command: string,
  { PATH }: { readonly PATH?: string | undefined },
  cwd: string,
): Promise<string | null> {
  if (command === "" || command.includes("\0")) return null;
  const isPath = command.includes("/") || (process.platform === "win32" && command.includes("\\"));
  const places = isPath
    ? [resolve(cwd, command)]
    : (PATH ?? "")
        .split(delimiter)
        .filter((folder) => isAbsolute(folder))
        .map((folder) => join(folder, command));
  for (const file of places.flatMap((place) => endings.map((ending) => place + ending)))
    if (await isProgram(file)) return file;
  return null;
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false; // absent, or not for us: PATH goes on
  }
}
