import { realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { inLine } from "../../runs/sequels/untrusted.ts";
import { forbidden } from "./spawn-limits.ts";
import type { SpawnRefusal } from "./spawn-request.ts";

/**
 * The working directory of a child: a folder that by its real path lies inside the parent's, or in one of the roots. What
 * lies elsewhere is refused in the same words, there or not.
 */
export async function childCwd(
  given: string,
  parentCwd: string,
  roots: readonly string[],
): Promise<{ readonly cwd: string } | SpawnRefusal> {
  const cwd = await realFolder(resolve(parentCwd, given));
  const allowed = await Promise.all([parentCwd, ...roots].map(realFolder));
  if (cwd !== null && allowed.some((base) => base !== null && isInside(cwd, base))) return { cwd };
  const error = `cwd "${inLine(given, 300)}" is no folder inside the working directory of this session, or in a root of its agent (agents.<id>.roots).`;
  return forbidden("cwd_not_allowed", error);
}

async function realFolder(path: string): Promise<string | null> {
  try {
    const real = await realpath(path);
    return (await stat(real)).isDirectory() ? real : null;
  } catch {
    // Not there, not to be read, a circle of links: no folder for us.
    return null;
  }
}

function isInside(path: string, base: string): boolean {
  const way = relative(base, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
