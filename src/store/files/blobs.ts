import { createHash } from "node:crypto";
import { SkeinError } from "../../core/errors.ts";
import type { BlobStore, Scope } from "../contract.ts";
import type { Disk } from "./disk.ts";
import { readWhole, replaceWhole } from "./disk-files.ts";
import { blobPath } from "./layout.ts";

/** `blobs/<sha256>` of a user's agent. */
export class FileBlobs implements BlobStore {
  readonly #root: string;
  readonly #disk: Disk;
  readonly #newToken: () => string;

  constructor(root: string, disk: Disk, newToken: () => string) {
    this.#root = root;
    this.#disk = disk;
    this.#newToken = newToken;
  }

  async put(scope: Scope, bytes: Uint8Array): Promise<string> {
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const path = this.#path(scope, sha256);
    if (path === null) {
      throw new SkeinError("invalid_arguments", {
        problem: "A blob belongs to an agent",
        advice: "Name one in the scope",
      });
    }
    if (this.#disk.stat(path) === null) await replaceWhole(this.#disk, path, bytes, this.#newToken());
    return sha256;
  }

  async get(scope: Scope, sha256: string): Promise<Uint8Array | null> {
    const path = /^[0-9a-f]{64}$/.test(sha256) ? this.#path(scope, sha256) : null;
    const bytes = path === null ? null : readWhole(this.#disk, path);
    return bytes === null ? null : new Uint8Array(bytes);
  }

  #path(
    { userId = null, agentId }: { userId?: string | null; agentId?: string },
    sha256: string,
  ): string | null {
    return agentId === undefined ? null : blobPath(this.#root, { userId, agentId }, sha256);
  }
}
