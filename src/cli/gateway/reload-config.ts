import { createHash } from "node:crypto";
import type { FSWatcher } from "node:fs";
import { existsSync, readFileSync, watch } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { configNames, findConfigFile } from "../../config/find-file.ts";
import { holdCommands } from "../../config/hold-commands.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import { rootOf } from "../../config/root.ts";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import type { ServerApp } from "../../gateway/server/server-options.ts";
import type { Configured, Current, Grace } from "./serving.ts";

interface ReloadParts<T extends Configured> {
  readonly current: Current<T>;
  /** Reads the configuration again. */
  load(): Promise<LoadedConfig>;
  /** Opens what is to serve next, beside what serves now. */
  open(loaded: LoadedConfig): Promise<T>;
  readonly log: ServerApp["log"];
  /** How long what is replaced may take to come to its end. */
  readonly grace: Grace;
}

export interface ReloadRequest {
  /** An operator asked for it, so new and changed commands are applied too. */
  readonly acceptsCommands: boolean;
}

export type ReloadOutcome =
  | {
      readonly isDone: true;
      readonly loaded: LoadedConfig;
      /** MCP servers and ACP agents, by path, whose new or changed command was accepted. */
      readonly commands: readonly string[];
      readonly restartNeeded: readonly string[];
    }
  | { readonly isDone: false; readonly error: unknown };

/** Takes in a changed configuration; one with a mistake changes nothing. One reload at a time, in order. */
export class Reloading<T extends Configured> {
  readonly #parts: ReloadParts<T>;
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;
  /** The configuration whose commands an operator accepted, by a start or by a reload. */
  #accepted: LoadedConfig;

  constructor(parts: ReloadParts<T>) {
    this.#parts = parts;
    this.#accepted = parts.current.get().loaded;
  }

  reload(request: ReloadRequest): Promise<ReloadOutcome> {
    const next = this.#last.then(() => this.#reload(request));
    this.#last = next;
    return next;
  }

  /** What is under way is finished; nothing is reloaded any more. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.#last;
  }

  async #reload({ acceptsCommands }: ReloadRequest): Promise<ReloadOutcome> {
    const { current, load, open, log, grace } = this.#parts;
    const before = current.get().loaded;
    try {
      if (this.#isOver) throw stoppingError();
      if (before.file !== null && !existsSync(before.file)) throw goneError(before.file);
      const loaded = await load();
      const needed = restartNeeded(before.config, loaded.config);
      if (needed.length > 0) {
        log("warn", `a restart is needed for ${needed.join(", ")}; until then the old values hold`, {
          settings: needed,
        });
      }
      const held = holdCommands(this.#accepted, loaded);
      const { waiting: commands = [] } = held;
      const next = keepingPlace(acceptsCommands ? loaded : held, before);
      current.swap(await open(next), grace);
      if (acceptsCommands) this.#accepted = loaded;
      else for (const setting of commands) log("warn", waitingText(setting), { setting });
      log("info", "configuration reloaded", { file: loaded.file });
      return { isDone: true, loaded, commands, restartNeeded: needed };
    } catch (error) {
      log("error", `configuration not reloaded, the previous one stays in use: ${thrownText(error)}`);
      return { isDone: false, error };
    }
  }
}

function waitingText(setting: string): string {
  return `${setting} waits for \`skein reload\` or a restart: its command, arguments, environment or folder are not those that an operator started`;
}

function stoppingError(): SkeinError {
  return new SkeinError("unavailable", {
    problem: "The gateway is stopping",
    advice: "The next start reads the whole configuration",
  });
}

function goneError(file: string): SkeinError {
  const advice = "Put it back, or restart the gateway to run without it";
  return new SkeinError("conflict", { problem: `${file} is gone`, advice });
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

/** Settings that a running gateway cannot change, by their paths: where it listens, and on which folder. */
function restartNeeded(before: Config, after: Config): readonly string[] {
  const store = before.store.path === after.store.path ? [] : ["store"];
  const names = Object.keys(before.gateway) as (keyof Config["gateway"])[];
  const changed = names.filter(
    (name) => JSON.stringify(before.gateway[name]) !== JSON.stringify(after.gateway[name]),
  );
  return [...store, ...changed.map((name) => `gateway.${name}`)];
}

interface WatchOptions {
  /** Told once things are quiet for so long; by default 200. */
  readonly quietMs?: number;
  changed(): void;
  /** A folder that cannot be watched. */
  failed(folder: string, error: unknown): void;
}

/** Files, and what they held when somebody was about to read them. */
export interface SeenFiles {
  readonly files: readonly string[];
  readonly held: string;
}

export function seeFiles(files: readonly string[]): SeenFiles {
  return { files, held: contentsOf(files) };
}

/**
 * Watches files by their folders, because editors put a new file in the place of the old one; they need not be there yet.
 * Tells of nothing where what they hold is as before.
 */
export class FileWatch {
  readonly #options: WatchOptions;
  #files: readonly string[] = [];
  #held = "";
  #watchers: readonly FSWatcher[] = [];
  #quiet: NodeJS.Timeout | null = null;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** From now on these. What has changed in them since they were seen is told like every later change. */
  watch({ files, held }: SeenFiles): void {
    this.close();
    this.#files = files;
    this.#held = held;
    const folders = [...new Set(files.map((file) => dirname(file)))];
    this.#watchers = folders.flatMap((folder) => this.#watchFolder(folder));
    this.#stir();
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = null;
  }

  #watchFolder(folder: string): readonly FSWatcher[] {
    const names = new Set(this.#files.map((file) => basename(file)));
    // A folder that is mounted whole changes by a link in it, "..data".
    const concerns = (name: string | null) => name === null || names.has(name) || name.startsWith("..");
    try {
      const watcher = watch(
        folder,
        { persistent: false },
        (_, name) => void (concerns(name) && this.#stir()),
      );
      watcher.on("error", (error) => this.#options.failed(folder, error));
      return [watcher];
    } catch (error) {
      this.#options.failed(folder, error);
      return [];
    }
  }

  #stir(): void {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#look(), this.#options.quietMs ?? 200).unref();
  }

  #look(): void {
    this.#quiet = null;
    const held = contentsOf(this.#files);
    if (held === this.#held) return;
    this.#held = held;
    this.#options.changed();
  }
}

function contentsOf(files: readonly string[]): string {
  const sum = createHash("sha256");
  for (const file of files) sum.update(`${file}\0${textOf(file) ?? ""}\0`);
  return sum.digest("hex");
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null; // not there, or about to be replaced
  }
}
