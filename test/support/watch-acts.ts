// Reports this process's durable writes, on disk and in `work.db`, to the kill points.

import type { StatementSync } from "node:sqlite";
import { DatabaseSync } from "node:sqlite";
import type { Disk, DiskFile } from "../../src/store/files/disk.ts";
import { realDisk } from "../../src/store/files/disk.ts";
import type { KillPoints } from "./kill-points.ts";

const changes = ["makeFolder", "rename", "link", "unlink", "removeTree", "syncFolder"] as const;
const opened = ["open", "create", "openExisting"] as const;

/** Watches the files store's disk. Its index runs in a separate thread and is derived, so it is not counted. */
export function watchDisk(points: KillPoints): void {
  const real: Disk = { ...realDisk };
  const disk = realDisk as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const name of changes) {
    const act = real[name] as (...args: unknown[]) => unknown;
    disk[name] = (...args) => points.around(`${name} ${shortOf(args[0])}`, () => act(...args));
  }
  for (const name of opened) {
    const act = real[name];
    disk[name] = (path) => {
      const open = () => act(String(path));
      const file = name === "create" ? points.around(`create ${shortOf(path)}`, open) : open();
      return file === null ? null : watchedFile(points, file, shortOf(path));
    };
  }
}

function watchedFile(points: KillPoints, file: DiskFile, name: string): DiskFile {
  return {
    stat: () => file.stat(),
    size: () => file.size(),
    read: (position, length) => file.read(position, length),
    readInto: (buffer, position) => file.readInto(buffer, position),
    append: (bytes) => points.around(`append ${name}`, () => file.append(bytes)),
    truncate: (size) => points.around(`truncate ${name}`, () => file.truncate(size)),
    sync: () => points.around(`sync ${name}`, () => file.sync()),
    close: () => file.close(),
  };
}

/** Watches the commits to `work.db`, and changes outside transactions, which are commits in themselves. */
export function watchWork(points: KillPoints): void {
  const { exec, prepare } = DatabaseSync.prototype;
  const isWork = (db: DatabaseSync) => db.location()?.endsWith("work.db") === true;
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    if (sql !== "COMMIT" || !isWork(this)) return exec.call(this, sql);
    return points.around("commit", () => exec.call(this, sql));
  };
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, ...args: Parameters<typeof prepare>) {
    const statement: StatementSync = prepare.apply(this, args);
    if (!isWork(this)) return statement;
    const run = statement.run.bind(statement) as (...values: unknown[]) => unknown;
    const watched = (...values: unknown[]) =>
      this.isTransaction ? run(...values) : points.around("change", () => run(...values));
    return Object.assign(statement, { run: watched }) as StatementSync;
  };
}

function shortOf(path: unknown): string {
  return String(path)
    .split("/")
    .slice(-1)
    .join("")
    .replace(/^[0-9a-f-]{20,}/, "<id>");
}
