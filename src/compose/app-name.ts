import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/shape.ts";

const longestName = 214;

/**
 * The name of the application that this process belongs to: `given`, else the name in the package.json nearest to the entry
 * script, else the script's folder and file name. Without a script (`node -e`, a REPL) it is `node`.
 */
export function appName(given: string | undefined, script: string | null = entryScript()): string {
  if (given !== undefined) return checkName(given);
  if (script === null) return "node";
  const folder = dirname(script);
  return packageName(folder) ?? join(basename(folder), basename(script)).slice(-longestName);
}

/** `null`: there is no script. With `--eval`, the first argument of the program is in its place. */
function entryScript(): string | null {
  const isEval = process.execArgv.some((option) => /^(-p?e|-p|--eval|--print)(=|$)/.test(option));
  return isEval || process.argv[1] === undefined ? null : realPath(process.argv[1]);
}

function checkName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the name is printed in terminals.
  if (typeof name === "string" && /^[^\u0000-\u001f\u007f]+$/.test(name.trim()) && name.length <= longestName)
    return name.trim();
  const problem = `The app name ${JSON.stringify(name)} is not usable`;
  const advice = `Give one line of at most ${longestName} characters, such as "desk"`;
  throw new SkeinError("invalid_arguments", { problem, advice });
}

/** `null`: there is no such file, as for a program inside a bundle or another virtual file system. */
function realPath(script: string): string | null {
  try {
    return realpathSync(script);
  } catch {
    return null;
  }
}

function packageName(folder: string): string | null {
  const name = nameIn(join(folder, "package.json"));
  if (name !== null) return name;
  const parent = dirname(folder);
  return parent === folder ? null : packageName(parent);
}

/** `null`: the file does not exist, is not readable JSON, or has no name, as the `{ "type": "module" }` of a subfolder. */
function nameIn(file: string): string | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const name = isRecord(value) ? value.name : null;
    return typeof name === "string" && name.trim() !== "" ? name.trim().slice(0, longestName) : null;
  } catch {
    return null;
  }
}
