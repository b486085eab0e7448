import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { BlobStore, Scope } from "../contract.ts";
import { agentOfBlob, hashOf } from "../rules.ts";
import { blobsOf, hashesIn } from "../session-trees.ts";
import type { Disk } from "./disk.ts";
import { readWhole, replaceWhole } from "./disk.ts";
import type { IndexDb } from "./index-db.ts";
import type { AgentPlace, HomeFor } from "./layout.ts";
import { agentsIn, blobsFolder, namesIn, trashIn } from "./layout.ts";

interface BlobDisk {
  readonly root: string;
  readonly disk: Disk;
  readonly clock: Clock;
  newId(): string;
}

/** Blobs in `blobs/<sha256>` in the folder of a user's agent. */
export class FileBlobs implements BlobStore {
  readonly #settings: BlobDisk;
  readonly #homeFor: HomeFor;

  constructor(settings: BlobDisk, homeFor: HomeFor) {
    this.#settings = settings;
    this.#homeFor = homeFor;
  }

  async put(scope: Scope, bytes: Uint8Array): Promise<string> {
    const sha256 = hashOf(bytes);
    const path = this.#path(scope, agentOfBlob(scope), sha256);
    await putBlob(this.#settings, path, bytes);
    return sha256;
  }

  async get(scope: Scope, sha256: string): Promise<Uint8Array | null> {
    const { agentId } = scope;
    if (agentId === undefined || !isHash(sha256)) return null;
    const bytes = readWhole(this.#settings.disk, this.#path(scope, agentId, sha256));
    return bytes === null ? null : new Uint8Array(bytes);
  }

  #path({ userId }: Scope, agentId: string, sha256: string): string {
    const home = this.#homeFor(userId ?? null);
    return join(blobsFolder(this.#settings.root, { home, agentId }), sha256);
  }
}

/** Copies a fork's blobs to another agent's folder before its entries exist. */
export async function copyBlobs(
  settings: BlobDisk,
  from: AgentPlace,
  to: AgentPlace,
  tree: SessionTree,
): Promise<void> {
  const { root, disk } = settings;
  const [source, target] = [blobsFolder(root, from), blobsFolder(root, to)];
  if (source === target) return;
  for (const sha256 of new Set([...tree.entries()].flatMap(blobsOf))) {
    const bytes = isHash(sha256) ? readWhole(disk, join(source, sha256)) : null;
    if (bytes !== null) await putBlob(settings, join(target, sha256), bytes);
  }
}

/** Touching an existing file restarts the grace period during which a blob may remain unreferenced. */
async function putBlob({ disk, clock, newId }: BlobDisk, path: string, bytes: Uint8Array): Promise<void> {
  if (disk.stat(path) === null) await replaceWhole(disk, path, bytes, newId());
  else disk.touch(path, clock.now());
}

function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** Returns the blobs that sessions in the trash refer to. */
export function blobsInTrash(root: string, disk: Disk): string[] {
  return [...trashIn(root, disk)].flatMap(({ path }) =>
    hashesIn(Buffer.from(readWhole(disk, path) ?? new Uint8Array(0)).toString("utf8")),
  );
}

/** A blob's file, as it was when it was found. */
export interface FoundBlob {
  readonly place: AgentPlace;
  readonly folder: string;
  readonly sha256: string;
  readonly stamp: string;
}

/** Finds the files of blobs in agents' folders. */
export function findBlobs(
  { root, disk }: Pick<BlobDisk, "root" | "disk">,
  places: readonly AgentPlace[],
  hashes: readonly string[],
): FoundBlob[] {
  const folders = new Map(places.map((place) => [blobsFolder(root, place), place]));
  return [...folders].flatMap(([folder, place]) =>
    [...new Set(hashes)].flatMap((sha256) => {
      const stamp = stampOf(disk, join(folder, sha256));
      return stamp === null ? [] : [{ place, folder, sha256, stamp }];
    }),
  );
}

/** Whether a blob has been neither deleted nor put again since it was found. */
export function isUnchanged(disk: Disk, { folder, sha256, stamp }: FoundBlob): boolean {
  return stampOf(disk, join(folder, sha256)) === stamp;
}

function stampOf(disk: Disk, path: string): string | null {
  const stat = disk.stat(path);
  return stat === null ? null : `${stat.identity} ${stat.modifiedAt} ${stat.changedAt}`;
}

const graceMs = 24 * 60 * 60 * 1000;

/** Deletes unreferenced blobs that are older than a day. The index must be up to date with all logs. */
export function sweepBlobs(
  root: string,
  disk: Disk,
  index: IndexDb,
  now: number,
): { files: number; bytes: number } {
  const inTrash = new Set(blobsInTrash(root, disk));
  let files = 0;
  let bytes = 0;
  for (const agent of agentsIn(root, disk)) {
    const used = index.blobsIn(agent.home, agent.agentId);
    const folder = blobsFolder(root, agent);
    for (const name of namesIn(disk, folder)) {
      const path = join(folder, name);
      const stat = disk.kind(path) === "file" ? disk.stat(path) : null;
      if (stat === null || used.has(name) || inTrash.has(name) || now - stat.modifiedAt < graceMs) continue;
      disk.unlink(path);
      files += 1;
      bytes += stat.size;
    }
  }
  return { files, bytes };
}
