// Moves the temporary folders of `npm test` into memory if there is enough space. Tests sync thousands of small files,
// which is slow on a busy disk. The state after a killed process is the same. `npm run torture` uses the disk.
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

const memory = "/dev/shm";
/** A complete run needs less than half of this. */
const neededBytes = 6 * 1024 ** 3;

export default function useMemory(): (() => void) | undefined {
  if (process.env.SKEIN_TORTURE !== undefined || !hasRoom()) return undefined;
  const folder = mkdtempSync(join(memory, "s"));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  return () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(folder, { recursive: true, force: true });
  };
}

function hasRoom(): boolean {
  if (!existsSync(memory)) return false;
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize > neededBytes && freemem() > neededBytes;
}
