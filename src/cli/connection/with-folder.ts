import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configuredFileBoundary } from "../../app/files.ts";
import type { FolderStore } from "../../app/folder.ts";
import { holdsSessions, openFolder } from "../../app/folder.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import type { Asker } from "../../core/references.ts";
import { escapeToLine } from "../../core/text.ts";
import type { ProcessFolder } from "../../file-access/file-boundary.ts";
import type { Scope } from "../../store/contract.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { paint } from "../output/terminal.ts";

/** An open folder of sessions, and for whom a command acts. */
export interface Folder {
  readonly store: FolderStore;
  /** The user's sessions; with `--agent`, only those of that agent. */
  readonly scope: Scope;
  readonly asker: Asker;
  readonly config: Config;
  readonly loaded: LoadedConfig;
  /** A command line to suggest, with the same folder, user and agent. */
  nextCommand(...words: readonly string[]): string;
}

/** What to do if the folder has no sessions: fail, create it, or use a temporary folder. */
export type MissingFolder = "refuse" | "create" | "scratch";

export const defaultAgent = "main";

/** Opens the folder for the duration of `use`. Only a command that creates sessions creates the folder. */
export async function withFolder<T>(
  terminal: Terminal,
  options: GlobalOptions,
  use: (folder: Folder) => Promise<T>,
  ifMissing: MissingFolder = "refuse",
): Promise<T> {
  return withLoadedFolder(terminal, options, await loadSettings(terminal, options), use, ifMissing);
}

export async function withLoadedFolder<T>(
  terminal: Terminal,
  options: GlobalOptions,
  loaded: LoadedConfig,
  use: (folder: Folder) => Promise<T>,
  ifMissing: MissingFolder = "refuse",
): Promise<T> {
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  const { config } = loaded;
  const isThere = holdsSessions(config.store.path);
  if (!isThere && ifMissing === "refuse")
    throw folderNotFound(config.store.path, commandLine(terminal, options, ["sessions", "new"]));
  const scratch = !isThere && ifMissing === "scratch" ? mkdtempSync(join(tmpdir(), "skein-try-")) : null;
  const root = scratch ?? config.store.path;
  const files = configuredFileBoundary(loaded, processFolder(terminal));
  const store = await openFolder({
    root,
    durability: config.durability,
    lockTimeoutMs: config.lock.timeoutMs,
    report: ({ file, note }) => tell(terminal, options, `${file}: ${note}`),
    cwdFor: (place) => files.defaultCwd(place),
  });
  try {
    const scope = {
      ...(options.user === undefined ? {} : { userId: options.user }),
      ...(options.agent === undefined ? {} : { agentId }),
    };
    const nextCommand = (...words: readonly string[]) => commandLine(terminal, options, words);
    return await use({
      store,
      scope,
      asker: { agentId, scope: config.session.scope },
      config,
      loaded,
      nextCommand,
    });
  } finally {
    await store.close();
    if (scratch !== null) rmSync(scratch, { recursive: true, force: true });
  }
}

/** Sessions of the unnamed user work in the current directory, those of a `--user` in their workspace. */
export function processFolder({ cwd }: Terminal): ProcessFolder {
  return { path: cwd, users: "unnamed" };
}

export function folderNotFound(root: string, toBegin: string): SkeinError {
  return new SkeinError("not_found", {
    what: "Folder of sessions",
    name: root,
    advice: `Name another with --dir, or begin one there: ${toBegin}`,
  });
}

/** Prints a notice on stderr, except with `--json`. */
export function tell(terminal: Terminal, { json }: GlobalOptions, note: string): void {
  if (json !== true) terminal.err(`${paint(terminal, "yellow", "note:", "err")} ${escapeToLine(note)}\n`);
}

/** Loads the configuration; `--dir` and `--config` take precedence. */
export async function loadSettings(terminal: Terminal, options: GlobalOptions): Promise<LoadedConfig> {
  const { loadConfig } = await import("../../config/load.ts");
  return loadConfig(loadOptions(terminal, options));
}

export function loadOptions({ cwd, env, home }: Terminal, { dir, config }: GlobalOptions): LoadOptions {
  return {
    cwd,
    env: { HOME: home, ...env },
    ...(dir === undefined ? {} : { root: dir }),
    ...(config === undefined ? {} : { file: config }),
  };
}
