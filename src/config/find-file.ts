import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SkeinError } from "../core/errors.ts";

export const configNames = ["skein.yaml", "skein.yml", "skein.json"];

/**
 * Searches for a configuration file in a folder and its parents, and then in the root folder. Returns `null` if there
 * is none.
 */
export function findConfigFile(from: string, root: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = configIn(folder);
    if (found !== null) return found;
    if (dirname(folder) === folder) return configIn(root);
  }
}

/** Throws if a folder has two configuration files, because it is unclear which one applies. */
function configIn(folder: string): string | null {
  const [found, second] = configNames.map((name) => join(folder, name)).filter(isFile);
  if (found === undefined) return null;
  if (second === undefined) return found;
  throw new SkeinError("ambiguous", {
    name: folder,
    what: "configuration file",
    candidates: `${found}, ${second}`,
  });
}

/** Returns a file's text, or `null` if the file does not exist. */
export async function readTextFile(path: string): Promise<string | null> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    const known = troubles[code ?? ""];
    const problem = known?.problem ?? message;
    const advice = known?.advice ?? "Check the file's permissions";
    throw new SkeinError("unreadable_file", { file: path, problem, advice }, { cause: error });
  }
}

const troubles: Readonly<Record<string, { problem: string; advice: string }>> = {
  EISDIR: { problem: "it is a folder", advice: "Specify a file" },
  ERR_ENCODING_INVALID_ENCODED_DATA: { problem: "it is not UTF-8", advice: "Save it as UTF-8" },
};

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
