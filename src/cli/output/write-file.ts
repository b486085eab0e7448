import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { SkeinError } from "../../core/errors.ts";

/** Pieces are gathered to so much before they are written. */
const chunk = 256 * 1024;

/**
 * Writes a file of our own piece by piece, for its owner to read alone: whole or not at all. One that is there is left
 * alone unless told to replace it. How many bytes it has.
 */
export function writePieces(
  path: string,
  pieces: Iterable<string>,
  { replace = false }: { readonly replace?: boolean } = {},
): number {
  const target = replace ? `${path}.part-${process.pid}` : path;
  const file = open(path, target);
  let bytes = 0;
  try {
    let held = "";
    for (const piece of pieces) {
      held += piece;
      if (held.length < chunk) continue;
      bytes += writeAll(file, held);
      held = "";
    }
    bytes += writeAll(file, held);
    closeSync(file);
    if (replace) renameSync(target, path);
    return bytes;
  } catch (error) {
    rmSync(target, { force: true });
    throw error instanceof SkeinError ? error : notWritten(path, error as Error);
  }
}

function open(path: string, target: string): number {
  try {
    return openSync(target, target === path ? "wx" : "w", 0o600);
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST";
    throw isThere
      ? new SkeinError("write_failed", {
          file: path,
          problem: "it is there already",
          advice: "Name another file, or add --force to replace it",
        })
      : notWritten(path, error as Error);
  }
}

function writeAll(file: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
  return bytes.length;
}

function notWritten(file: string, error: Error): SkeinError {
  const advice = "Check the path and the room on its disk";
  return new SkeinError("write_failed", { file, problem: error.message, advice }, { cause: error });
}
