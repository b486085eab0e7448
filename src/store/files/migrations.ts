import type { DatabaseSync } from "node:sqlite";
import { SkeinError } from "../../core/errors.ts";

/** Brings a database forward, a step a version, each whole or not at all. One from a newer Skein is refused. */
export function migrate(db: DatabaseSync, path: string, steps: readonly string[]): void {
  const versionNow = () => Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  // Nothing is written to a database that is up to date: it is opened on a full disk too.
  if (versionNow() === steps.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = versionNow();
    if (version > steps.length) {
      const problem = `its version ${version} is newer than ${steps.length}, the last that this Skein knows`;
      throw new SkeinError("read_only", { name: path, problem });
    }
    for (const step of steps.slice(version)) db.exec(step);
    db.exec(`PRAGMA user_version = ${steps.length}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK"); // on a full disk SQLite has done so
    throw error;
  }
}
