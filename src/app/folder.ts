import fs, { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Clock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { valueScript } from "../core/script.ts";
import { repairRunTables, runSteps } from "../runs/ledger/schema.ts";
import type { Store } from "../store/contract.ts";
import type { BackupManifest } from "../store/files/backup.ts";
import { restoreFiles } from "../store/files/backup.ts";
import type { Progress } from "../store/files/check.ts";
import type { Disk } from "../store/files/disk.ts";
import { realDisk } from "../store/files/disk.ts";
import type { Namespace } from "../store/files/layout.ts";
import { workDbName } from "../store/files/layout.ts";
import type { Recovery } from "../store/files/recover.ts";
import type { SalvageRules, SchemaVersion } from "../store/files/salvage.ts";
import type { FilesStore, FilesStoreOptions } from "../store/files/store.ts";
import { openFilesStore } from "../store/files/store.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { FolderStore } from "./runs.ts";
import { attachIdleRuns } from "./runs.ts";

/** The part of the composition root that opens, checks and restores root folders. */

export type { CheckFinding, Progress } from "../store/files/check.ts";
export { refuseSpecialFile } from "../store/files/disk.ts";
export { readSessionFile, repairSessionFile } from "../store/files/lone-file.ts";
export type { Recovery } from "../store/files/recover.ts";
export type { FilesStore } from "../store/files/store.ts";
export type { FolderStore } from "./runs.ts";

/** Options for how and where a store keeps its sessions. */
export interface StoreOptions {
  /** The root folder. It is created if it does not exist. */
  readonly dir: string;
  /** `full` (the default) acknowledges a write once it is on disk. `os` leaves syncing to the kernel. */
  readonly durability?: "full" | "os";
  /** How long to wait for another process that holds a session's lock, in milliseconds. Defaults to 10,000. */
  readonly lockTimeoutMs?: number;
  /** The folders for a user's sessions. Defaults to `users/<user>`. */
  readonly namespace?: Namespace;
  /** Called with everything that was repaired or could not be repaired. */
  readonly report?: (found: Recovery) => void;
  readonly clock?: Clock;
  readonly newId?: IdSource;
  /** Replaces the real disk in tests, for example with `SimulatedDisk` from `skein/testing`. */
  readonly disk?: Disk;
  /** The folder for the databases, which are always on the real disk. Defaults to `dir`. */
  readonly databases?: string;
}

/**
 * Opens a store that keeps sessions as files in a folder or, with `memory`, in memory until the process exits.
 *
 * @example
 * ```ts
 * import { createStore } from "skein/store";
 * const store = await createStore({ dir: ".skein" });
 * const scope = { userId: "ann", agentId: "main" };
 * const { sessionId } = await store.sessions.create(scope, { key: "agent:main:main", cwd: "/home/ann" });
 * await store.sessions.append(scope, sessionId, [
 *   { draft: { type: "message", message: { role: "user", content: "Plan three days in Kyoto" } } },
 * ]);
 * const context = await store.sessions.context(scope, sessionId);
 * await store.close();
 * ```
 */
export function createStore(options: StoreOptions): Promise<FilesStore>;
export function createStore(options: {
  readonly memory: true;
  readonly clock?: Clock;
  readonly newId?: IdSource;
}): Promise<Store>;
export async function createStore(
  options: StoreOptions | { readonly memory: true; readonly clock?: Clock; readonly newId?: IdSource },
): Promise<Store> {
  if ("memory" in options) return createMemoryStore(options);
  const { dir, ...rest } = options;
  const store = await openFilesStore({ ...rest, root: resolve(dir) });
  attachIdleRuns(store);
  return store;
}

export interface FolderOptions {
  readonly root: string;
  readonly durability?: "full" | "os";
  readonly lockTimeoutMs?: number;
  /** Called with everything that was repaired or could not be repaired. */
  report?(found: Recovery): void;
  /**
   * If set, the databases are checked before they are used, and the readable content of damaged databases is salvaged.
   * `schemas` lists the schemas in `work.db`, except the schemas of sessions and runs.
   */
  readonly fix?: { readonly schemas: readonly SchemaVersion[] };
  /** Returns the default working directory of a user's agent, for session files found in the folder. */
  readonly cwdFor?: NonNullable<FilesStoreOptions["cwdFor"]>;
}

/** A gateway whose sessions are in a database writes the database's name to this file in its root folder. */
const databaseFile = "database";

export function writeDatabaseName(root: string, name: string): void {
  fs.writeFileSync(join(root, databaseFile), `${name}\n`, { mode: 0o600 });
}

/** Throws if the sessions of a root folder are in a database. Otherwise, sessions would be stored in two places. */
export function refuseDatabaseFolder(root: string): void {
  const file = join(root, databaseFile);
  if (!existsSync(file)) return;
  const name = fs.readFileSync(file, "utf8").trim();
  throw new SkeinError("conflict", {
    problem: `The gateway of the folder ${root} keeps its sessions in the database ${name}, and no store is configured`,
    advice: `Set store in the configuration file or SKEIN_STORE to the address of the database, or choose another folder with --dir. To use the folder without the database, remove ${file}`,
  });
}

/** Opens the store in a folder for a short-lived process. Creates the folder if it does not exist. */
export async function openFolder({ fix, ...options }: FolderOptions): Promise<FolderStore> {
  refuseDatabaseFolder(options.root);
  const fixing = fix === undefined ? {} : { verify: true, salvage: salvageRules(fix.schemas) };
  const store = await openFilesStore({ ...options, ...fixing, index: "in place" });
  return Object.assign(store, { runs: attachIdleRuns(store) });
}

function salvageRules(others: readonly SchemaVersion[]): SalvageRules {
  const runs = { fact: "schema.runs", table: "runs", version: runSteps.length };
  return {
    schemas: [runs, ...others],
    settle: (tables) => (tables.includes("runs") ? repairRunTables() : valueScript([])),
  };
}

/** Whether a folder contains sessions. Skein does not write into a folder with other content. */
export function holdsSessions(root: string): boolean {
  if (existsSync(join(root, workDbName))) return true;
  const homes = ["agents/*/sessions", "users/*/agents/*/sessions"];
  return fs.globSync(homes, { cwd: root }).length > 0;
}

/** Creates a root folder from a backup. See `restoreFiles`. */
export function restoreFolder(
  backup: string,
  root: string,
  progress: Progress,
  configure?: (text: string) => string | null,
): Promise<BackupManifest> {
  return restoreFiles(realDisk, backup, root, progress, configure);
}
