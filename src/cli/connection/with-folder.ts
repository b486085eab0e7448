import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configuredFileBoundary } from "../../app/files.ts";
import type { FolderStore } from "../../app/folder.ts";
import { holdsSessions, openFolder, refuseDatabaseFolder } from "../../app/folder.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { Asker } from "../../core/references.ts";
import type { ProcessFolder } from "../../file-access/file-boundary.ts";
import type { Scope } from "../../store/contract.ts";
import { printNotice } from "../output/answer.ts";
import type { Invocation } from "../output/invocation.ts";
import { commandLine } from "../output/invocation.ts";
import type { Terminal } from "../output/terminal.ts";

/** An open sessions folder, and the user and agent on whose behalf a command runs. */
export interface Folder extends Invocation {
  readonly store: FolderStore;
  /** The user's sessions, or only those of one agent if `--agent` is set. */
  readonly scope: Scope;
  readonly asker: Asker;
  readonly loaded: LoadedConfig;
}

/** What to do if the folder contains no sessions: fail, create it, or use a temporary folder. */
export type MissingFolder = "refuse" | "create" | "scratch";

export const defaultAgent = "main";

/** Opens the folder for the duration of `use`. */
export async function withFolder<T>(cli: Invocation, use: (folder: Folder) => Promise<T>): Promise<T> {
  return withLoadedFolder(cli, await loadSettings(cli), use);
}

/** Only a command that creates sessions creates the folder. */
export async function withLoadedFolder<T>(
  cli: Invocation,
  loaded: LoadedConfig,
  use: (folder: Folder) => Promise<T>,
  ifMissing: MissingFolder = "refuse",
): Promise<T> {
  const { user, agent } = cli.options;
  const agentId = parseAgentId(agent ?? defaultAgent);
  const { config } = loaded;
  requireFolder(cli, loaded);
  const isThere = holdsSessions(config.store.path);
  if (!isThere && ifMissing === "refuse")
    throw folderNotFound(config.store.path, commandLine(cli, "sessions", "new"));
  const scratch = !isThere && ifMissing === "scratch" ? mkdtempSync(join(tmpdir(), "skein-try-")) : null;
  const files = configuredFileBoundary(loaded, processFolder(cli.terminal));
  const store = await openFolder({
    root: scratch ?? config.store.path,
    durability: config.durability,
    lockTimeoutMs: config.lock.timeoutMs,
    report: ({ file, note }) => printNotice(cli, `${file}: ${note}`),
    cwdFor: (place) => files.defaultCwd(place),
  });
  try {
    const scope = present({ userId: user, agentId: agent === undefined ? null : agentId });
    return await use({ ...cli, store, scope, asker: { agentId, scope: config.session.scope }, loaded });
  } finally {
    await store.close();
    if (scratch !== null) rmSync(scratch, { recursive: true, force: true });
  }
}

/** The unnamed user's sessions work in the current directory. With `--user`, sessions work in that user's workspace. */
export function processFolder({ cwd }: Terminal): ProcessFolder {
  return { path: cwd, users: "unnamed" };
}

/** Throws if the sessions are in a database, because commands can access a database only through a gateway. */
export function requireFolder(cli: Invocation, { config }: LoadedConfig): void {
  if (config.store.kind === "files") {
    refuseDatabaseFolder(config.store.path);
    return;
  }
  throw new SkeinError("unavailable", {
    problem: `The sessions are in a database, and no gateway is running for ${config.store.path}`,
    advice: `Start one: ${commandLine(cli, "start")}`,
  });
}

export function folderNotFound(root: string, toBegin: string): SkeinError {
  return new SkeinError("not_found", {
    what: "Sessions folder",
    name: root,
    advice: `Specify a different folder with --dir, or create one there: ${toBegin}`,
  });
}

/** Loads the configuration. `--dir` and `--config` take precedence. */
export async function loadSettings(cli: Invocation): Promise<LoadedConfig> {
  const { loadConfig } = await import("../../config/load.ts");
  return loadConfig(loadOptions(cli));
}

export function loadOptions({ terminal, options }: Invocation): LoadOptions {
  const { cwd, env, home } = terminal;
  return { cwd, env: { HOME: home, ...env }, ...present({ root: options.dir, file: options.config }) };
}
