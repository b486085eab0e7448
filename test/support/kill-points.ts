// Every durable act of a process, counted, so that it can be killed right before or right after any of them.
import type { StatementSync } from "node:sqlite";
import { DatabaseSync } from "node:sqlite";
import type { Disk, DiskFile } from "../../src/store/files/disk.ts";
import { realDisk } from "../../src/store/files/disk.ts";

/** Two points an act: the even one before it, the odd one behind it. */
export class KillPoints {
  readonly #dieAt: number | null;
  readonly names: string[] = [];
  #isCounting = false;

  constructor(dieAt: number | null) {
    this.#dieAt = dieAt;
  }

  /** What happens before this is no point. */
  begin(): void {
    this.#isCounting = true;
  }

  around<T>(name: string, act: () => T): T {
    if (!this.#isCounting) return act();
    this.#reach(`before ${name}`);
    const done = act();
    if (!(done instanceof Promise)) {
      this.#reach(`after ${name}`);
      return done;
    }
    return done.then((value: unknown) => {
      this.#reach(`after ${name}`);
      return value;
    }) as T;
  }

  #reach(name: string): void {
    this.names.push(name);
    if (this.#dieAt === this.names.length - 1) process.kill(process.pid, "SIGKILL");
  }
}

const changes = ["makeFolder", "rename", "link", "unlink", "removeTree", "syncFolder"] as const;
const opened = ["open", "create", "openExisting"] as const;

/** The disk of the files store. Its index works in a thread of its own, and is derived: it is not counted. */
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
    append: (bytes) => points.around(`append ${name}`, () => file.append(bytes)),
    truncate: (size) => points.around(`truncate ${name}`, () => file.truncate(size)),
    sync: () => points.around(`sync ${name}`, () => file.sync()),
    close: () => file.close(),
  };
}

/** The commits of `work.db`, and the changes outside of transactions, which are commits of their own. */
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
