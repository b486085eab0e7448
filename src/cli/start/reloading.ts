import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { configNames, findConfigFile } from "../../config/find-file.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import { rootOf } from "../../config/root.ts";
import { thrownText } from "../../core/text.ts";
import type { ServerParts } from "../../gateway/contract.ts";
import type { Closable, Current, Grace } from "./current.ts";
import { restartNeeded } from "./restart-needed.ts";
import type { SeenFiles } from "./watch-files.ts";
import { seeFiles } from "./watch-files.ts";

/** What a configuration has made. */
export interface Configured extends Closable {
  readonly loaded: LoadedConfig;
}

export interface ReloadParts<T extends Configured> {
  readonly current: Current<T>;
  /** Reads the configuration again. */
  load(): Promise<LoadedConfig>;
  /** Opens what is to serve next, beside what serves now. */
  open(loaded: LoadedConfig): Promise<T>;
  readonly log: ServerParts["log"];
  /** How long what is replaced may take to come to its end. */
  readonly grace: Grace;
}

export type Reloaded = "done" | "refused";

/** Takes in a changed configuration; one with a mistake changes nothing. One reload at a time, in order. */
export class Reloading<T extends Configured> {
  readonly #parts: ReloadParts<T>;
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(parts: ReloadParts<T>) {
    this.#parts = parts;
  }

  reload(): Promise<Reloaded> {
    const next = this.#last.then(() => this.#reload());
    this.#last = next;
    return next;
  }

  /** What is under way is finished; nothing is reloaded any more. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.#last;
  }

  async #reload(): Promise<Reloaded> {
    const { current, load, open, log, grace } = this.#parts;
    const before = current.get().loaded;
    try {
      if (this.#isOver) return "refused";
      if (before.file !== null && !existsSync(before.file)) throw new Error(`${before.file} is gone`);
      const loaded = await load();
      const needed = restartNeeded(before.config, loaded.config);
      if (needed.length > 0) {
        log("warn", `a restart is needed for ${needed.join(", ")}; until then the old values hold`, {
          settings: needed,
        });
      }
      current.swap(await open(keepingPlace(loaded, before)), grace);
      log("info", "configuration reloaded", { file: loaded.file });
      return "done";
    } catch (error) {
      log("error", `configuration not reloaded, what held before holds: ${thrownText(error)}`);
      return "refused";
    }
  }
}

/** With the folder and the address that the process has. */
function keepingPlace(loaded: LoadedConfig, { config: { store, gateway } }: LoadedConfig): LoadedConfig {
  return { ...loaded, config: Object.freeze({ ...loaded.config, store, gateway }) };
}

/**
 * The files that a configuration comes from, or could come from once they are there. Asked for before it is read, so that no
 * change falls between.
 */
export function seeConfig(where: LoadOptions): SeenFiles {
  const cwd = resolve(where.cwd);
  const root = rootOf(where).path;
  const file = where.file === undefined ? findConfigFile(cwd, root) : resolve(cwd, where.file);
  if (file !== null) return seeFiles([file, join(dirname(file), ".env")]);
  return seeFiles([cwd, root].flatMap((folder) => configNames.map((name) => join(folder, name))));
}
