import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { present } from "../core/present.ts";
import type { SkeinStore } from "../sessions/app.ts";
import type { Backend, Store } from "../store/contract.ts";
import { beginExternal } from "../store/external-changes.ts";
import type { ExternalRuns } from "../store/external-store.ts";
import { ExternalStore } from "../store/external-store.ts";
import { eraseRemoved } from "../store/files/erase.ts";
import { workDbName } from "../store/files/layout.ts";
import type { Recovery } from "../store/files/recover.ts";
import { openWork } from "../store/files/recover.ts";
import type { FilesStoreOptions } from "../store/files/store.ts";
import { openFilesStore } from "../store/files/store.ts";
import { WorkDb } from "../store/files/work-db.ts";
import { createMemoryLedger, createMemoryStore } from "../store/memory/store.ts";
import type { PostgresOptions } from "../store/postgres/open-postgres.ts";
import { Spaces } from "../store/spaces.ts";
import type { WorkingBackend, WorkingStore } from "../store/work.ts";
import { Attendance, requireLedger, requireWorking } from "../store/work.ts";
import { refuseDatabaseFolder } from "./folder.ts";
import { isOwnerGone } from "./process.ts";

export interface StoreChoice {
  /** Relative to `cwd`, which defaults to the process's working directory. */
  readonly dir?: string;
  readonly cwd?: string;
  readonly memory?: boolean;
  /** The caller's own store, which the caller must close. */
  readonly store?: Store;
  readonly stores?: Readonly<Record<string, Store>>;
  /** A database that several machines share. The caller must close it. */
  readonly backend: WorkingBackend | null;
}

export interface OpenStoreParts {
  readonly loaded: LoadedConfig;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** Identifies this process in changes that it might leave unfinished. */
  readonly owner: string;
  report(found: Recovery): void;
  cwdFor: NonNullable<FilesStoreOptions["cwdFor"]>;
}

/** Opens the store of a Skein instance and the additional stores that calls can name. */
export async function openStores(choice: StoreChoice, parts: OpenStoreParts): Promise<Spaces<SkeinStore>> {
  const home = await openHome(choice, parts);
  const { newId, owner } = parts;
  const { work } = home;
  const attendance = new Attendance();
  const attended: SkeinStore = {
    ...home,
    work: {
      ...work,
      attend: (attendant) => {
        work.attend(attendant);
        attendance.attendant = attendant;
      },
    },
  };
  const runs = { attendance, newId, owner, isGone: isOwnerGone, erase: () => work.erase() };
  const open = (name: string, store: Store) =>
    new ExternalStore(store, name, { ledger: requireLedger(work, "An additional store"), ...runs });
  const spaces = new Spaces(attended, open, newId, choice.stores);
  if (choice.store !== undefined) spaces.register(choice.store);
  return spaces;
}

/** Connects to the database that the configuration names. Returns `null` if sessions are stored in a folder. */
export async function openBackend(config: DatabaseConfig): Promise<WorkingBackend | null> {
  if (config.store.kind !== "postgres") return null;
  const { openPostgres } = await import("../store/postgres/open-postgres.ts");
  return requireWorking(await openPostgres(databaseOptions(config, config.store.url)));
}

type DatabaseConfig = Pick<Config, "store" | "postgres" | "blobs">;

function databaseOptions({ postgres, blobs: { s3 } }: DatabaseConfig, url: string): PostgresOptions {
  const { workerUrl, migratorUrl, directUrl, maxConnections } = postgres;
  return {
    url,
    maxConnections,
    ...present({ workerUrl, migratorUrl, directUrl, s3: toS3Options(s3) }),
  };
}

/** Connects to the configured database without changing it. Throws an error that says why it cannot be used. */
export async function checkDatabase(config: DatabaseConfig): Promise<void> {
  if (config.store.kind !== "postgres") return;
  const { PostgresBackend } = await import("../store/postgres/store.ts");
  const backend = await PostgresBackend.open(databaseOptions(config, config.store.url));
  try {
    await backend.check();
  } finally {
    await backend.close();
  }
}

/** Throws `invalid_arguments` if a setting is missing. */
function toS3Options({ bucket, endpoint, accessKeyId, secretAccessKey, ...more }: Config["blobs"]["s3"]) {
  if (bucket === null) return null;
  if (endpoint !== null && accessKeyId !== null && secretAccessKey !== null)
    return { bucket, endpoint, accessKeyId, secretAccessKey, ...more };
  throw new SkeinError("invalid_arguments", {
    problem: "blobs.s3 has a bucket, but endpoint, accessKeyId or secretAccessKey is missing",
    advice: "Set all of them",
  });
}

async function openHome(choice: StoreChoice, parts: OpenStoreParts): Promise<SkeinStore> {
  const { clock, newId, report, cwdFor } = parts;
  const { config } = parts.loaded;
  const { store } = choice;
  if (store !== undefined) return isWorking(store) ? leftOpen(store) : openExternal(store, choice, parts);
  if (choice.backend !== null) return choice.backend.openStore({ clock, newId });
  if (choice.memory === true) return createMemoryStore({ clock, newId });
  refuseDatabaseFolder(config.store.path);
  return openFilesStore({
    root: config.store.path,
    durability: config.durability,
    lockTimeoutMs: config.lock.timeoutMs,
    clock,
    newId,
    report,
    cwdFor,
  });
}

/** Returns the clock of a database that several machines share, or `undefined` if there is none. */
export function sharedClock(
  { store }: Pick<StoreChoice, "store">,
  backend: WorkingBackend | null,
): Clock | undefined {
  const given = store !== undefined && isWorking(store) ? store.work.shared : null;
  return (given ?? backend?.shared)?.clock;
}

/** Whether this is one of this package's stores, which also store the runs of their sessions. */
function isWorking(store: Store): store is WorkingStore {
  return "work" in store;
}

function leftOpen(store: WorkingStore): WorkingStore {
  return { ...store, close: async () => undefined };
}

/** Adapts the options for one of this package's stores so that the store's folder is used. */
export function placedByStore<O extends Omit<StoreChoice, "backend"> & { readonly backend?: Backend }>(
  options: O,
): O {
  const { store, backend, memory, cwd = "." } = options;
  if (backend !== undefined && (store !== undefined || memory === true)) {
    throw new SkeinError("invalid_arguments", {
      problem: `createSkein has both backend and ${store === undefined ? "memory" : "store"}`,
      advice: "Pass only one of them",
    });
  }
  if (store === undefined || !isWorking(store)) return options;
  const { root } = store as SkeinStore;
  if (root === undefined) return { ...options, memory: true };
  const dir = options.dir === undefined ? root : resolve(cwd, options.dir);
  if (dir !== root) {
    throw new SkeinError("invalid_arguments", {
      problem: `The store is in ${root}, but dir is ${dir}`,
      advice: "Remove dir; a store in a folder keeps its runs in that folder",
    });
  }
  return { ...options, dir: root };
}

function openExternal(store: Store, choice: StoreChoice, parts: OpenStoreParts): WorkingStore {
  const { newId, owner } = parts;
  const { ledger, erase, close } = openLedger(choice, parts);
  const attendance = new Attendance();
  const runs = { ledger, attendance, newId, owner, isGone: isOwnerGone, erase };
  const external = new ExternalStore(store, null, runs);
  const { sessions, search, state, blobs, watch, work } = external;
  return {
    ...{ sessions, search, state, blobs, watch, work },
    purgeUser: (userId) => external.purgeUser(userId),
    close: async () => {
      await external.close();
      close();
    },
  };
}

type OwnLedger = Pick<ExternalRuns, "ledger" | "erase"> & { close(): void };

/** Opens the ledger for the runs of an external store. */
function openLedger({ dir, memory }: StoreChoice, { loaded, clock, report }: OpenStoreParts): OwnLedger {
  if (memory === true) {
    const ledger = createMemoryLedger();
    return { ledger, erase: () => undefined, close: () => ledger.close() };
  }
  const from = loaded.sources.get("store")?.from ?? "default";
  if (dir === undefined && from === "default") {
    throw new SkeinError("invalid_arguments", {
      problem: "A custom store needs a folder for its sessions' runs",
      advice: "Pass dir, or memory: true to keep runs only until the process exits",
    });
  }
  const root = loaded.config.store.path;
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const now = clock.now();
  const work = openWork(join(root, workDbName), (path) => new WorkDb(path), now, report, false);
  if (beginExternal(work.ledger, now))
    return { ledger: work.ledger, erase: () => eraseRemoved(work), close: () => work.close() };
  work.close();
  throw new SkeinError("conflict", {
    problem: `The folder ${root} already contains sessions`,
    advice: "Choose a different dir for your store's runs",
  });
}
