import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder that is there for a test alone. */
export interface TemporaryFolder extends Disposable {
  /** Without links. */
  readonly path: string;
  /** With all that is in it; again, nothing. */
  remove(): void;
}

/**
 * Makes an empty folder in the system's place for such; `using` removes it at the end of its block.
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
