import { dirname } from "node:path";
import type { Disk, DiskFile, DiskStat } from "../../src/store/files/disk.ts";

/** A file's contents: as written, and as far as a power cut would leave them. */
interface Inode {
  readonly number: number;
  data: Uint8Array;
  durable: Uint8Array;
  modifiedAt: number;
  changes: number;
}

export type DiskOperation =
  | "write"
  | "sync"
  | "syncFolder"
  | "truncate"
  | "rename"
  | "link"
  | "unlink"
  | "makeFolder";

/** Says what goes wrong with an operation: an error to throw, or for a write how many bytes are taken. */
export type Fault = (
  operation: DiskOperation,
  path: string,
  count: number,
) => { error: string } | { take: number } | null;

/**
 * A disk in memory that forgets, at a power cut, all that was not synced: bytes, names, folders. It can also be told to
 * fail, and to lie about syncing.
 */
export class SimDisk implements Disk {
  readonly #names: Map<string, Inode>;
  readonly #folders: Set<string>;
  #durableNames: Map<string, Inode>;
  #durableFolders: Set<string>;
  #nextNumber: number;
  #isDead = false;
  /** How many operations have changed something, or made it durable. */
  operations = 0;
  /** How many bytes have been read. */
  bytesRead = 0;
  fault: Fault = () => null;
  /** A disk that only says that it syncs. */
  liesAboutSync = false;

  constructor(names = new Map<string, Inode>(), folders = new Set<string>(["/"])) {
    this.#names = names;
    this.#folders = folders;
    this.#durableNames = new Map(names);
    this.#durableFolders = new Set(folders);
    this.#nextNumber = Math.max(0, ...[...names.values()].map((inode) => inode.number)) + 1;
  }

  /** From now on nothing works here; the disk that comes back has only what was durable. */
  cutPower(): SimDisk {
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
    return new SimDisk(names, new Set([...this.#durableFolders].filter(reachable)));
  }

  /** For looking at: the text of a file. */
  textOf(path: string): string | null {
    const inode = this.#names.get(path);
    return inode === undefined ? null : Buffer.from(inode.data).toString("utf8");
  }

  open(path: string): DiskFile {
    return new SimFile(this, path, this.#names.get(path) ?? this.#make(path));
  }

  create(path: string): DiskFile {
    if (this.#names.has(path)) throw failure("EEXIST", path);
    return new SimFile(this, path, this.#make(path));
  }

  openExisting(path: string): DiskFile | null {
    this.alive();
    const inode = this.#names.get(path);
    return inode === undefined ? null : new SimFile(this, path, inode);
  }

  stat(path: string): DiskStat | null {
    this.alive();
    const inode = this.#names.get(path);
    return inode === undefined ? null : statOf(inode);
  }

  openToRead(path: string): DiskFile | null {
    return this.openExisting(path);
  }

  kind(path: string): "file" | "folder" | null {
    this.alive();
    return this.#names.has(path) ? "file" : this.#folders.has(path) ? "folder" : null;
  }

  isFolder(path: string): boolean {
    this.alive();
    return this.#folders.has(path);
  }

  removeTree(path: string): void {
    this.step("unlink", path);
    const isIn = (each: string) => each === path || each.startsWith(`${path}/`);
    for (const each of [...this.#names.keys()]) if (isIn(each)) this.#names.delete(each);
    for (const each of [...this.#folders]) if (isIn(each)) this.#folders.delete(each);
  }

  list(folder: string): string[] {
    this.alive();
    return [...this.#names.keys(), ...this.#folders]
      .filter((path) => dirname(path) === folder && path !== "/")
      .map((path) => path.slice(folder === "/" ? 1 : folder.length + 1));
  }

  makeFolder(folder: string): string[] {
    const made: string[] = [];
    for (let path = folder; !this.#folders.has(path); path = dirname(path)) made.unshift(path);
    if (made.length === 0) return made;
    this.step("makeFolder", folder);
    for (const path of made) this.#folders.add(path);
    return made;
  }

  rename(from: string, to: string): void {
    this.step("rename", from);
    const inode = this.#names.get(from);
    if (inode === undefined) throw failure("ENOENT", from);
    this.#names.delete(from);
    this.#names.set(to, inode);
  }

  link(from: string, to: string): boolean {
    this.step("link", to);
    const inode = this.#names.get(from);
    if (inode === undefined) throw failure("ENOENT", from);
    if (this.#names.has(to)) throw failure("EEXIST", to);
    this.#names.set(to, inode);
    return true;
  }

  unlink(path: string): boolean {
    this.step("unlink", path);
    return this.#names.delete(path);
  }

  touch(path: string, time: number): void {
    const inode = this.#names.get(path);
    if (inode === undefined) throw failure("ENOENT", path);
    inode.modifiedAt = time;
  }

  async syncFolder(folder: string): Promise<void> {
    this.step("syncFolder", folder);
    if (this.liesAboutSync) return;
    const isIn = (path: string) => dirname(path) === folder;
    const names = [...this.#durableNames].filter(([path]) => !isIn(path));
    this.#durableNames = new Map([...names, ...[...this.#names].filter(([path]) => isIn(path))]);
    for (const path of this.#folders) if (isIn(path)) this.#durableFolders.add(path);
    for (const path of [...this.#durableFolders]) {
      if (isIn(path) && !this.#folders.has(path)) this.#durableFolders.delete(path);
    }
  }

  alive(): void {
    if (this.#isDead) throw failure("EIO", "the power is off");
  }

  /** Counts an operation, and lets it fail. */
  step(operation: DiskOperation, path: string): number {
    this.alive();
    this.operations += 1;
    const fault = this.fault(operation, path, this.operations);
    if (fault !== null && "error" in fault) throw failure(fault.error, path);
    return fault === null ? Number.POSITIVE_INFINITY : fault.take;
  }

  #make(path: string): Inode {
    this.alive();
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

class SimFile implements DiskFile {
  readonly #disk: SimDisk;
  readonly #path: string;
  readonly #inode: Inode;

  constructor(disk: SimDisk, path: string, inode: Inode) {
    this.#disk = disk;
    this.#path = path;
    this.#inode = inode;
  }

  stat(): DiskStat {
    this.#disk.alive();
    return statOf(this.#inode);
  }

  size(): number {
    return this.stat().size;
  }

  read(position: number, length: number): Uint8Array {
    this.#disk.alive();
    const bytes = this.#inode.data.slice(position, position + length);
    this.#disk.bytesRead += bytes.length;
    return bytes;
  }

  append(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, this.#disk.step("write", this.#path));
    this.#inode.data = Buffer.concat([this.#inode.data, taken]);
    this.#inode.changes += 1;
    this.#inode.modifiedAt = Date.now();
    return taken.length;
  }

  truncate(size: number): void {
    this.#disk.step("truncate", this.#path);
    this.#inode.data = this.#inode.data.slice(0, size);
    this.#inode.changes += 1;
  }

  async sync(): Promise<void> {
    this.#disk.step("sync", this.#path);
    const { data } = this.#inode;
    // As a disk would: what is written meanwhile is not covered.
    await Promise.resolve();
    this.#disk.alive();
    if (!this.#disk.liesAboutSync) this.#inode.durable = data;
  }

  close(): void {
    // Nothing to give back.
  }
}

function statOf(inode: Inode): DiskStat {
  const { number, data, modifiedAt, changes } = inode;
  return { size: data.length, identity: String(number), modifiedAt, changedAt: BigInt(changes) };
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
