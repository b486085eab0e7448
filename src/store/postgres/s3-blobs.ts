import { SkeinError } from "../../core/errors.ts";
import type { BlobBytes, BlobOwner } from "./blobs.ts";
import { userKey } from "./lookup-text.ts";
import type { S3Options } from "./s3-client.ts";
import { S3Client } from "./s3-client.ts";

const listedAtOnce = 1000;
const deletedAtOnce = 10;

/**
 * Keeps blobs in an object store as `<prefix><user>/<agent>/<sha256>`. Blobs that are in `earlier` remain readable, so
 * that a database can be switched to an object store.
 */
export class S3Blobs implements BlobBytes {
  readonly #client: S3Client;
  readonly #prefix: string;
  readonly #earlier: BlobBytes;

  constructor(options: S3Options, earlier: BlobBytes) {
    this.#client = new S3Client(options);
    this.#prefix = options.prefix ?? "";
    this.#earlier = earlier;
  }

  get name(): string {
    return this.#client.name;
  }

  /** Throws `blobs_unavailable` if the bucket does not exist or the access key is not allowed to list it. */
  async check(): Promise<void> {
    await this.#list(this.#prefix, 1);
  }

  async put(owner: BlobOwner, sha256: string, bytes: Uint8Array): Promise<void> {
    const { status } = await this.#client.send({ method: "PUT", key: this.#key(owner, sha256), body: bytes });
    if (status === 404) throw new SkeinError("internal", { problem: `${this.name} did not store a blob` });
  }

  async get(owner: BlobOwner, sha256: string): Promise<Uint8Array | null> {
    if (!/^[0-9a-f]{64}$/.test(sha256)) return null;
    const { status, bytes } = await this.#client.send({ method: "GET", key: this.#key(owner, sha256) });
    return status === 404 ? this.#earlier.get(owner, sha256) : bytes;
  }

  async copy(owner: BlobOwner, agentId: string, hashes: readonly string[]): Promise<void> {
    for (const sha256 of hashes) {
      const bytes = await this.get(owner, sha256);
      if (bytes !== null) await this.put({ ...owner, agentId }, sha256, bytes);
    }
  }

  async delete(owner: BlobOwner, hashes: readonly string[]): Promise<void> {
    await this.#earlier.delete(owner, hashes);
    await this.#deleteKeys(hashes.map((sha256) => this.#key(owner, sha256)));
  }

  async purgeUser(userId: string): Promise<void> {
    await this.#earlier.purgeUser(userId);
    const prefix = this.#userPrefix(userId);
    // Deleted blobs are no longer listed, so every request is for the first page.
    for (let keys: string[] = []; ; ) {
      keys = await this.#list(prefix, listedAtOnce);
      if (keys.length === 0) return;
      await this.#deleteKeys(keys);
    }
  }

  async #deleteKeys(keys: readonly string[]): Promise<void> {
    for (let start = 0; start < keys.length; start += deletedAtOnce) {
      const some = keys.slice(start, start + deletedAtOnce);
      await Promise.all(some.map((key) => this.#client.send({ method: "DELETE", key })));
    }
  }

  /** Object names contain no characters that XML escapes, so they are not unescaped. */
  async #list(prefix: string, limit: number): Promise<string[]> {
    const query = { "list-type": "2", prefix, "max-keys": String(limit) };
    const { bytes } = await this.#client.send({ method: "GET", query });
    return [
      ...Buffer.from(bytes)
        .toString("utf8")
        .matchAll(/<Key>([^<]*)<\/Key>/g),
    ].map(([, key]) => key ?? "");
  }

  #userPrefix(userId: string | null): string {
    return `${this.#prefix}${encodeSegment(userKey(userId))}/`;
  }

  #key({ userId, agentId }: BlobOwner, sha256: string): string {
    return `${this.#userPrefix(userId)}${encodeSegment(agentId)}/${sha256}`;
  }
}

/** Different names have different segments, which contain no slash. */
function encodeSegment(name: string): string {
  return Buffer.from(name, "utf8").toString("base64url");
}
