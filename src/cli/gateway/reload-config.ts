import { createHash } from "node:crypto";
import type { FSWatcher } from "node:fs";
import { existsSync, readFileSync, watch } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { configNames, findConfigFile } from "../../config/find-file.ts";
import { holdCommands } from "../../config/hold-commands.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import { rootOf } from "../../config/root.ts";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import type { ServerOptions } from "../../gateway/server/server-options.ts";
import type { Configured, CurrentGeneration, Grace } from "./generation.ts";

interface ReloaderOptions<T extends Configured> {
  readonly current: CurrentGeneration<T>;
  load(): Promise<LoadedConfig>;
  /** Opens the next generation while the current one is still serving. */
  open(loaded: LoadedConfig): Promise<T>;
  readonly log: ServerOptions["log"];
  /** The grace period for the generation being replaced. */
  readonly grace: Grace;
}

export interface ReloadRequest {
  /** `true` if an operator requested the reload, in which case new and changed commands are also applied. */
  readonly acceptsCommands: boolean;
}

export type ReloadOutcome =
  | {
      readonly isDone: true;
      readonly loaded: LoadedConfig;
      /** The sections whose values changed. */
      readonly changed: readonly string[];
      /** The paths of MCP servers and ACP agents whose new or changed command was accepted. */
      readonly commands: readonly string[];
      readonly restartNeeded: readonly string[];
    }
  | { readonly isDone: false; readonly error: unknown };

/** Applies changed configurations, one at a time and in order. A configuration with an error is not applied. */
export class ConfigReloader<T extends Configured> {
  readonly #options: ReloaderOptions<T>;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  /** The configuration whose commands an operator has accepted through a start or a reload. */
  #accepted: LoadedConfig;

  constructor(options: ReloaderOptions<T>) {
    this.#options = options;
    this.#accepted = options.current.get().loaded;
  }

  reload(request: ReloadRequest): Promise<ReloadOutcome> {
    const next = this.#last.then(() => this.#reload(request));
    this.#last = next;
    return next;
  }

  /** Waits for the reload in progress. Later reloads are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
  }

  async #reload({ acceptsCommands }: ReloadRequest): Promise<ReloadOutcome> {
    const { current, load, open, log, grace } = this.#options;
    const before = current.get().loaded;
    try {
      if (this.#isClosed) throw stoppingError();
      if (before.file !== null && !existsSync(before.file)) throw goneError(before.file);
      const loaded = await load();
      const needed = findRestartSettings(before.config, loaded.config);
      if (needed.length > 0) {
        log(
          "warn",
          `changes to ${needed.join(", ")} take effect after a restart; until then, the old values apply`,
          {
            settings: needed,
          },
        );
      }
      const held = holdCommands(this.#accepted, loaded);
      const { waiting: commands = [] } = held;
      const next = keepStoreAndAddress(acceptsCommands ? loaded : held, before);
      current.replace(await open(next), grace);
      if (acceptsCommands) this.#accepted = loaded;
      else for (const setting of commands) log("warn", waitingText(setting), { setting });
      log("info", "configuration reloaded", { file: loaded.file });
      const changed = findChangedSections(before.config, next.config);
      return { isDone: true, loaded, changed, commands, restartNeeded: needed };
    } catch (error) {
      log("error", `configuration not reloaded; the previous one is still in effect: ${thrownText(error)}`);
      return { isDone: false, error };
    }
  }
}

function waitingText(setting: string): string {
  return `${setting} takes effect after \`skein reload\` or a restart, because its command, arguments, environment or folder has changed`;
}

function stoppingError(): SkeinError {
  return new SkeinError("unavailable", {
    problem: "The gateway is stopping",
    advice: "The next start will read the whole configuration",
  });
}

function goneError(file: string): SkeinError {
  const advice = "Restore it, or restart the gateway to run without it";
  return new SkeinError("conflict", { problem: `${file} no longer exists`, advice });
}

/** The store and the settings under `gateway` cannot change while the process is running. */
function keepStoreAndAddress(
  loaded: LoadedConfig,
  { config: { store, postgres, gateway } }: LoadedConfig,
): LoadedConfig {
  return { ...loaded, config: Object.freeze({ ...loaded.config, store, postgres, gateway }) };
}

/**
 * Takes a snapshot of the files that the configuration comes from, or would come from if they existed. The snapshot is
 * taken before the configuration is read so that no change is missed.
 */
export function snapshotConfigFiles(where: LoadOptions): FileSnapshot {
  const cwd = resolve(where.cwd);
  const root = rootOf(where).path;
  const file = where.file === undefined ? findConfigFile(cwd, root) : resolve(cwd, where.file);
  if (file !== null) return snapshotFiles([file, join(dirname(file), ".env")]);
  return snapshotFiles([cwd, root].flatMap((folder) => configNames.map((name) => join(folder, name))));
}

function findChangedSections(before: Config, after: Config): readonly string[] {
  const names = Object.keys(after) as (keyof Config)[];
  return names.filter((name) => !isDeepStrictEqual(before[name], after[name]));
}

/** Returns the changed settings that require a restart: the store and the settings under `gateway`. */
function findRestartSettings(before: Config, after: Config): readonly string[] {
  const stored = (["store", "postgres"] as const).filter(
    (name) => !isDeepStrictEqual(before[name], after[name]),
  );
  const names = Object.keys(before.gateway) as (keyof Config["gateway"])[];
  const changed = names.filter(
    (name) => JSON.stringify(before.gateway[name]) !== JSON.stringify(after.gateway[name]),
  );
  return [...stored, ...changed.map((name) => `gateway.${name}`)];
}

interface FileWatcherOptions {
  /** How long the files must stay unchanged before a change is reported, in milliseconds. Defaults to 200. */
  readonly quietMs?: number;
  onChange(): void;
  /** Called if a folder cannot be watched. */
  onError(folder: string, error: unknown): void;
}

/** A list of files and one hash of their names and contents. */
export interface FileSnapshot {
  readonly files: readonly string[];
  readonly hash: string;
}

export function snapshotFiles(files: readonly string[]): FileSnapshot {
  const sum = createHash("sha256");
  for (const file of files) sum.update(`${file}\0${readText(file) ?? ""}\0`);
  return { files, hash: sum.digest("hex") };
}

/**
 * Watches files through their folders because editors replace files instead of writing to them. The files do not have
 * to exist yet. A change is reported only if the content differs.
 */
export class FileWatcher {
  readonly #options: FileWatcherOptions;
  #snapshot: FileSnapshot = { files: [], hash: "" };
  #watchers: readonly FSWatcher[] = [];
  #quiet: NodeJS.Timeout | null = null;

  constructor(options: FileWatcherOptions) {
    this.#options = options;
  }

  /** Starts watching these files. Any change since the snapshot is also reported. */
  watch(snapshot: FileSnapshot): void {
    this.close();
    this.#snapshot = snapshot;
    const folders = [...new Set(snapshot.files.map((file) => dirname(file)))];
    this.#watchers = folders.flatMap((folder) => this.#watchFolder(folder));
    this.#compareLater();
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = null;
  }

  #watchFolder(folder: string): readonly FSWatcher[] {
    const names = new Set(this.#snapshot.files.map((file) => basename(file)));
    // Kubernetes replaces a mounted folder through a symbolic link in it, "..data".
    const matches = (name: string | null) => name === null || names.has(name) || name.startsWith("..");
    try {
      const onEvent = (_: string, name: string | null) => void (matches(name) && this.#compareLater());
      const watcher = watch(folder, { persistent: false }, onEvent);
      watcher.on("error", (error) => this.#options.onError(folder, error));
      return [watcher];
    } catch (error) {
      this.#options.onError(folder, error);
      return [];
    }
  }

  #compareLater(): void {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#compare(), this.#options.quietMs ?? 200).unref();
  }

  #compare(): void {
    this.#quiet = null;
    const now = snapshotFiles(this.#snapshot.files);
    if (now.hash === this.#snapshot.hash) return;
    this.#snapshot = now;
    this.#options.onChange();
  }
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null; // missing, or about to be replaced
  }
}
