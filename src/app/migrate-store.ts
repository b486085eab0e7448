import type { StoreAddress } from "../config/sections/store.ts";
import { codeOf, SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { migrateTokens, tokenSchema } from "../gateway/auth/token-table.ts";
import { findRunning } from "../gateway/running-file.ts";
import { migrateRuns, runSteps } from "../runs/ledger/schema.ts";
import { realDisk } from "../store/files/disk.ts";
import type { DamagedLines } from "../store/files/log-lines.ts";
import { FolderSource } from "../store/files/migration-source.ts";
import { FolderTarget } from "../store/files/migration-target.ts";
import type { MigrationSource, MigrationTarget } from "../store/migrate/contract.ts";
import type { MoveOptions, MoveResult } from "../store/migrate/move-store.ts";
import { checkSource, moveStore } from "../store/migrate/move-store.ts";
import type { PostgresDatabase } from "../store/postgres/database.ts";
import type { PostgresOptions } from "../store/postgres/open-postgres.ts";

export type { MoveStage } from "../store/migrate/move-store.ts";

export interface MigrateOptions extends Pick<MoveOptions, "progress"> {
  readonly from: StoreAddress;
  readonly to: StoreAddress;
  /** Addresses with other roles. Each one is used only if its host and database name match the address being opened. */
  readonly roles: { readonly workerUrl: string | null; readonly migratorUrl: string | null };
  readonly now: number;
  /** How to handle log lines that cannot be read. */
  readonly damagedLines: DamagedLines;
}

export interface MigrateResult extends MoveResult {
  /** The number of damaged lines that were left out, by session key. */
  readonly skipped: ReadonlyMap<string, number>;
  /** The blobs that sessions refer to but that the source does not have, by session key. */
  readonly missingBlobs: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Moves everything from a session folder to PostgreSQL, or from PostgreSQL to a session folder. */
export async function migrateStore(options: MigrateOptions): Promise<MigrateResult> {
  const { from, to, progress } = options;
  if (from.kind === "files" && to.kind === "postgres") {
    const source = openSource(from.path, options.damagedLines);
    const openTo = () => openTargetDatabase(postgresOptions(to.url, options));
    const { skipped, missingBlobs } = source;
    return { ...(await withStores(source, openTo, progress)), skipped, missingBlobs };
  }
  if (from.kind === "postgres" && to.kind === "files") {
    const source = await openSourceDatabase(postgresOptions(from.url, options));
    const openTo = () => openTarget(to.path, options.now);
    return { ...(await withStores(source, openTo, progress)), skipped: new Map(), missingBlobs: new Map() };
  }
  throw new SkeinError("invalid_arguments", {
    problem: "One address must name a folder, and the other a PostgreSQL database",
    advice:
      "Write them as --from files:./skein --to postgres://db.example.org/skein, or the other way around",
  });
}

async function withStores(
  from: MigrationSource,
  openTarget: () => Promise<MigrationTarget>,
  progress: MoveOptions["progress"],
): Promise<MoveResult> {
  try {
    await checkSource(from);
    const to = await openTarget();
    try {
      return await moveStore({ from, to, progress });
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

function openSource(root: string, damagedLines: DamagedLines): FolderSource {
  const schemas = [{ fact: "schema.runs", version: runSteps.length }, tokenSchema];
  const refuseInUse = () => refuseRunning(root);
  return FolderSource.open({ root, disk: realDisk, schemas, damagedLines, refuseInUse });
}

async function openTarget(target: string, now: number): Promise<MigrationTarget> {
  refuseRunning(target);
  return FolderTarget.open({
    target,
    disk: realDisk,
    now,
    createTables: ({ ledger }) => {
      migrateRuns(ledger);
      migrateTokens(ledger);
    },
  });
}

function refuseRunning(root: string): void {
  const running = findRunning(root);
  if (running === null) return;
  throw new SkeinError("conflict", {
    problem: `A gateway is running for ${root} (process ${running.pid})`,
    advice: "Stop it, then run the same command again",
  });
}

async function openSourceDatabase(options: PostgresOptions): Promise<MigrationSource> {
  const { DatabaseSource } = await import("../store/postgres/migration-source.ts");
  const reader = await DatabaseSource.claim(await connect(options), DatabaseSource);
  try {
    await reader.checkComplete();
    return reader;
  } catch (error) {
    await reader.close();
    throw error;
  }
}

/**
 * Creates the tables in a database that has none. Leaves tables of another version alone, because another process might
 * be using them.
 */
async function openTargetDatabase(options: PostgresOptions): Promise<MigrationTarget> {
  const { DatabaseTarget } = await import("../store/postgres/migration-target.ts");
  const { updateTables } = await import("../store/postgres/open-postgres.ts");
  const database = await connect(options).catch(async (error: unknown) => {
    const isNew =
      codeOf(error) === "database_behind" && (error as SkeinError<"database_behind">).details.found === 0;
    if (!isNew) throw error;
    await updateTables(options);
    return connect(options);
  });
  return DatabaseTarget.claim(database, DatabaseTarget);
}

/** Connects as the owner of the tables, because only the owner can set the sequence numbers of rows. */
async function connect({ url, migratorUrl = url }: PostgresOptions): Promise<PostgresDatabase> {
  const { PostgresDatabase } = await import("../store/postgres/database.ts");
  const { checkDatabase } = await import("../store/postgres/migrate.ts");
  const database = await PostgresDatabase.create({ url: migratorUrl, maxConnections: 2 });
  try {
    const check = { isRepeatable: true };
    await database.transact(null, (sql) => checkDatabase(sql, database.name), check);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

function postgresOptions(url: string, { roles }: MigrateOptions): PostgresOptions {
  const { host, pathname } = new URL(url);
  const isSame = (other: string | null) => {
    if (other === null) return false;
    const found = new URL(other);
    return found.host === host && found.pathname === pathname;
  };
  const { workerUrl, migratorUrl } = roles;
  return {
    url,
    ...present({
      workerUrl: isSame(workerUrl) ? workerUrl : null,
      migratorUrl: isSame(migratorUrl) ? migratorUrl : null,
    }),
  };
}
