import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A temporary folder for one test. */
export interface TemporaryFolder extends Disposable {
  /** The path, with symbolic links resolved. */
  readonly path: string;
  /** Removes the folder and its contents. A second call does nothing. */
  remove(): void;
}

/**
 * Creates an empty folder in the system's temporary folder. `using` removes it at the end of its block.
 *
 * @example
 * ```ts
 * import { createStore } from "skein/store";
 * import { temporaryFolder } from "skein/testing";
 * using folder = temporaryFolder();
 * const store = await createStore({ dir: folder.path });
 * await store.close();
 * ```
 */
export function temporaryFolder(prefix = "skein-"): TemporaryFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  const remove = () => rmSync(path, { recursive: true, force: true });
  return { path, remove, [Symbol.dispose]: remove };
}
