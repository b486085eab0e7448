import { dirname } from "node:path";
import type { Disk, DiskFile, DiskStat } from "./disk.ts";

/** A file's contents as written, and as they would be after a power failure. */
interface Inode {
  readonly number: number;
  data: Uint8Array;
  durable: Uint8Array;
  modifiedAt: number;
  changes: number;
}

/** A simulated disk's operations that change something or make it durable. */
export type DiskOperation =
  | "write"
  | "sync"
  | "syncFolder"
  | "truncate"
  | "rename"
  | "link"
  | "unlink"
  | "makeFolder";

/** Decides how an operation fails. Returns the error code to throw, or the number of bytes that a write accepts. */
export type DiskFault = (
  operation: DiskOperation,
  path: string,
  count: number,
) => { error: string } | { take: number } | null;

/**
 * An in-memory disk for testing an application's durability. On a power failure, it loses every byte, name and folder
 * that has not been synced. It can also fail operations and skip syncs. The store's databases are on the real disk, in
 * the `databases` folder.
 *
 * @example
 * ```ts
 * import { createStore } from "skein/store";
 * import { SimulatedDisk, temporaryFolder } from "skein/testing";
 * using folder = temporaryFolder();
 * const disk = new SimulatedDisk();
 * const store = await createStore({ dir: "/store", databases: folder.path, disk });
 * disk.fault = (operation) => (operation === "write" ? { error: "ENOSPC" } : null);
 * const after = await createStore({ dir: "/store", databases: folder.path, disk: disk.cutPower() });
 * await Promise.all([store.close(), after.close()]);
 * ```
 */
export class SimulatedDisk implements Disk {
  readonly #names: Map<string, Inode>;
  readonly #folders: Set<string>;
  #durableNames: Map<string, Inode>;
  #durableFolders: Set<string>;
  #nextNumber: number;
  #isDead = false;
  /** The number of operations so far that changed something or made it durable. */
  operations = 0;
  bytesRead = 0;
  /** Called before each operation. The operation succeeds if it returns `null`. */
  fault: DiskFault = () => null;
  /** Acknowledges syncs without making anything durable. */
  ignoresSync = false;

  constructor(names = new Map<string, Inode>(), folders = new Set<string>(["/"])) {
    this.#names = names;
    this.#folders = folders;
    this.#durableNames = new Map(names);
    this.#durableFolders = new Set(folders);
    this.#nextNumber = Math.max(0, ...[...names.values()].map((inode) => inode.number)) + 1;
  }

  /** Shuts down this disk and returns a new one that contains only the durable data. */
  cutPower(): SimulatedDisk {
    this.#isDead = true;
    const reachable = (path: string): boolean =>
      path === "/" || (this.#durableFolders.has(path) && reachable(dirname(path)));
    const kept = new Map<Inode, Inode>();
    const names = new Map<string, Inode>();
    for (const [path, inode] of this.#durableNames) {
      if (!reachable(dirname(path))) continue;
      const copy = kept.get(inode) ?? { ...inode, data: inode.durable };
      kept.set(inode, copy);
      names.set(path, copy);
    }
    return new SimulatedDisk(names, new Set([...this.#durableFolders].filter(reachable)));
  }

  /** Returns the contents of a file, or `null` if there is no such file. */
  textOf(path: string): string | null {
    const inode = this.#names.get(path);
    return inode === undefined ? null : Buffer.from(inode.data).toString("utf8");
  }

  open(path: string): DiskFile {
    return this.#file(path, this.#names.get(path) ?? this.#make(path));
  }

  create(path: string): DiskFile {
    if (this.#names.has(path)) throw failure("EEXIST", path);
    return this.#file(path, this.#make(path));
  }

  openExisting(path: string): DiskFile | null {
    this.#checkPower();
    const inode = this.#names.get(path);
    return inode === undefined ? null : this.#file(path, inode);
  }

  stat(path: string): DiskStat | null {
    this.#checkPower();
    const inode = this.#names.get(path);
    return inode === undefined ? null : statOf(inode);
  }

  openToRead(path: string): DiskFile | null {
    return this.openExisting(path);
  }

  kind(path: string): "file" | "folder" | null {
    this.#checkPower();
    return this.#names.has(path) ? "file" : this.#folders.has(path) ? "folder" : null;
  }

  isFolder(path: string): boolean {
    this.#checkPower();
    return this.#folders.has(path);
  }

  removeTree(path: string): void {
    this.#count("unlink", path);
    const isIn = (each: string) => each === path || each.startsWith(`${path}/`);
    for (const each of [...this.#names.keys()]) if (isIn(each)) this.#names.delete(each);
    for (const each of [...this.#folders]) if (isIn(each)) this.#folders.delete(each);
  }

  list(folder: string): string[] {
    this.#checkPower();
    return [...this.#names.keys(), ...this.#folders]
      .filter((path) => dirname(path) === folder && path !== "/")
      .map((path) => path.slice(folder === "/" ? 1 : folder.length + 1));
  }

  makeFolder(folder: string): string[] {
    const made: string[] = [];
    for (let path = folder; !this.#folders.has(path); path = dirname(path)) made.unshift(path);
    if (made.length === 0) return made;
    this.#count("makeFolder", folder);
    for (const path of made) this.#folders.add(path);
    return made;
  }

  rename(from: string, to: string): void {
    this.#count("rename", from);
    const inode = this.#names.get(from);
    if (inode === undefined) throw failure("ENOENT", from);
    this.#names.delete(from);
    this.#names.set(to, inode);
  }

  link(from: string, to: string): boolean {
    this.#count("link", to);
    const inode = this.#names.get(from);
    if (inode === undefined) throw failure("ENOENT", from);
    if (this.#names.has(to)) throw failure("EEXIST", to);
    this.#names.set(to, inode);
    return true;
  }

  unlink(path: string): boolean {
    this.#count("unlink", path);
    return this.#names.delete(path);
  }

  touch(path: string, time: number): void {
    const inode = this.#names.get(path);
    if (inode === undefined) throw failure("ENOENT", path);
    inode.modifiedAt = time;
    inode.changes += 1;
  }

  async syncFolder(folder: string): Promise<void> {
    this.#count("syncFolder", folder);
    if (this.ignoresSync) return;
    const isIn = (path: string) => dirname(path) === folder;
    const names = [...this.#durableNames].filter(([path]) => !isIn(path));
    this.#durableNames = new Map([...names, ...[...this.#names].filter(([path]) => isIn(path))]);
    for (const path of this.#folders) if (isIn(path)) this.#durableFolders.add(path);
    for (const path of [...this.#durableFolders]) {
      if (isIn(path) && !this.#folders.has(path)) this.#durableFolders.delete(path);
    }
  }

  #checkPower(): void {
    if (this.#isDead) throw failure("EIO", "the power is off");
  }

  /** Counts an operation and makes it fail if it should. Returns the number of bytes that a write can accept. */
  #count(operation: DiskOperation, path: string): number {
    this.#checkPower();
    this.operations += 1;
    const fault = this.fault(operation, path, this.operations);
    if (fault !== null && "error" in fault) throw failure(fault.error, path);
    return fault === null ? Number.POSITIVE_INFINITY : fault.take;
  }

  #file(path: string, inode: Inode): DiskFile {
    const stat = () => {
      this.#checkPower();
      return statOf(inode);
    };
    const read = (position: number, length: number) => {
      this.#checkPower();
      const bytes = inode.data.slice(position, position + length);
      this.bytesRead += bytes.length;
      return bytes;
    };
    return {
      stat,
      size: () => stat().size,
      read,
      readInto: (buffer, position) => {
        const bytes = read(position, buffer.length);
        buffer.set(bytes);
        return buffer.subarray(0, bytes.length);
      },
      append: (bytes) => {
        const taken = bytes.subarray(0, this.#count("write", path));
        inode.data = Buffer.concat([inode.data, taken]);
        inode.changes += 1;
        inode.modifiedAt = Date.now();
        return taken.length;
      },
      truncate: (size) => {
        this.#count("truncate", path);
        inode.data = inode.data.slice(0, size);
        inode.changes += 1;
      },
      sync: async () => {
        this.#count("sync", path);
        const { data } = inode;
        // A sync does not cover bytes that are written while it is in progress.
        await Promise.resolve();
        this.#checkPower();
        if (!this.ignoresSync) inode.durable = data;
      },
      close: () => undefined,
    };
  }

  #make(path: string): Inode {
    this.#checkPower();
    if (!this.#folders.has(dirname(path))) throw failure("ENOENT", path);
    const empty = new Uint8Array(0);
    const inode: Inode = {
      number: this.#nextNumber++,
      data: empty,
      durable: empty,
      modifiedAt: Date.now(),
      changes: 0,
    };
    this.#names.set(path, inode);
    return inode;
  }
}

function statOf(inode: Inode): DiskStat {
  const { number, data, modifiedAt, changes } = inode;
  return { size: data.length, identity: String(number), modifiedAt, changedAt: BigInt(changes) };
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
