import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/shape.ts";

const longestName = 214;

/**
 * The name of the application that this process belongs to: as given, else the name in the package.json nearest to the entry
 * script, else the file name of that script.
 */
export function appName(given: string | undefined, script: string | undefined = process.argv[1]): string {
  if (given !== undefined) return checkName(given);
  const entry = script === undefined ? null : realPath(script);
  return entry === null ? "node" : (packageName(dirname(entry)) ?? basename(entry));
}

function checkName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the name is printed in terminals.
  if (typeof name === "string" && /^[^\u0000-\u001f\u007f]+$/.test(name.trim()) && name.length <= longestName)
    return name.trim();
  const problem = `The app name ${JSON.stringify(name)} is not usable`;
  const advice = `Give one line of at most ${longestName} characters, such as "desk"`;
  throw new SkeinError("invalid_arguments", { problem, advice });
}

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

/** `null`: there is no such file, or it has no name. */
function nameIn(file: string): string | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const name = isRecord(value) ? value.name : null;
    return typeof name === "string" && name.trim() !== "" ? name.trim().slice(0, longestName) : null;
  } catch {
    return null;
  }
}
