// Loaded before everything else in a process. While the file named by FULL_DISK_FLAG exists, nothing can be written, as
// on a disk without free blocks. Existing files can still be read, removed, renamed and overwritten in place. While the
// flag file contains the word "files", the databases still have free pages, and only other files cannot be written.
import type { PathLike } from "node:fs";
import fs from "node:fs";
import fsPromises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync, StatementSync } from "node:sqlite";

const flag = process.env.FULL_DISK_FLAG ?? "";
const { constants, existsSync, readFileSync, fstatSync, statfsSync } = fs;
const { writeSync, openSync, mkdirSync, linkSync } = fs;
const isFull = () => existsSync(flag);
const areDatabasesFull = () => isFull() && readFileSync(flag, "utf8") !== "files";
const noSpace = (call: string) =>
  Object.assign(new Error(`ENOSPC: no space left on device, ${call}`), {
    code: "ENOSPC",
    errno: -28,
    syscall: call,
  });

type Any = (...args: never[]) => unknown;
/** Fails while the disk is full if the call would use space. */
function failing<F extends Any>(name: string, real: F, takesRoom: (...args: Parameters<F>) => boolean): F {
  return ((...args: Parameters<F>) => {
    if (isFull() && takesRoom(...args)) throw noSpace(name);
    return real(...args);
  }) as F;
}

type Write = [fd: number, bytes: unknown, offset?: unknown, length?: number, position?: number | null];
const standardStreams = 2;
function growsFile(...[fd, , , length = 0, position]: Write): boolean {
  if (fd <= standardStreams) return false;
  // Short files take a whole block.
  const block = 4096;
  const end = typeof position === "number" ? position + length : Number.POSITIVE_INFINITY;
  return end > Math.ceil(fstatSync(fd).size / block) * block;
}
Object.assign(fs, {
  writeSync: failing("write", writeSync as Any, ((...write: Write) => growsFile(...write)) as never),
  openSync: failing(
    "open",
    openSync,
    (path: PathLike, flags) =>
      (typeof flags === "string" ? /[aw]/.test(flags) : (Number(flags) & constants.O_CREAT) !== 0) &&
      !existsSync(path),
  ),
  mkdirSync: failing("mkdir", mkdirSync as Any, ((path: PathLike) => !existsSync(path)) as never),
  linkSync: failing("link", linkSync, () => true),
  statfsSync: (path: PathLike) => ({ ...statfsSync(path), ...(isFull() ? { bavail: 0 } : {}) }),
});
const { mkdir, writeFile } = fsPromises;
Object.assign(fsPromises, {
  mkdir: async (...args: Parameters<typeof mkdir>) => {
    if (isFull()) throw noSpace("mkdir");
    return mkdir(...args);
  },
  writeFile: async (...args: Parameters<typeof writeFile>) => {
    if (isFull()) throw noSpace("write");
    return writeFile(...args);
  },
});
syncBuiltinESMExports();

/** SQLite notices when it commits, because only then are pages written to its log. */
const databaseFull = () =>
  Object.assign(new Error("database or disk is full"), { code: "ERR_SQLITE_ERROR", errcode: 13 });
/** SQLite has no space for the `-shm` file, which the last process to close a database removes. */
const noSharedMemory = () =>
  Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 4874 });
const changesRows = /^\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|VACUUM|PRAGMA wal_checkpoint)/i;
const owners = new WeakMap<StatementSync, DatabaseSync>();
const changed = new WeakSet<DatabaseSync>();
const opened = new WeakSet<DatabaseSync>();

const { prepare, exec } = DatabaseSync.prototype;
DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string) {
  const statement = prepare.call(this, sql);
  owners.set(statement, this);
  return statement;
};
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
  const path = this.location();
  if (!opened.has(this) && path !== null && areDatabasesFull() && !existsSync(`${path}-shm`))
    throw noSharedMemory();
  opened.add(this);
  if (areDatabasesFull() && sql === "COMMIT" && changed.has(this)) {
    exec.call(this, "ROLLBACK");
    changed.delete(this);
    throw databaseFull();
  }
  if (areDatabasesFull() && !this.isTransaction && changesRows.test(sql)) throw databaseFull();
  exec.call(this, sql);
  if (!this.isTransaction) changed.delete(this);
};
for (const name of ["run", "get", "all"] as const) {
  const real = StatementSync.prototype[name] as (this: StatementSync, ...values: never[]) => unknown;
  (StatementSync.prototype as unknown as Record<string, unknown>)[name] = function (
    this: StatementSync,
    ...values: never[]
  ) {
    const owner = owners.get(this);
    if (owner !== undefined && changesRows.test(this.sourceSQL)) {
      if (!owner.isTransaction && areDatabasesFull()) throw databaseFull();
      if (owner.isTransaction) changed.add(owner);
    }
    return real.apply(this, values);
  };
}
