import type { BlobStore, Scope } from "../contract.ts";
import { agentOfBlob, hashOf } from "../rules.ts";
import type { PostgresDatabase } from "./database.ts";
import { lookupText, userKey } from "./lookup-text.ts";

/** The owner of a blob. Two users who store the same bytes have two blobs, so neither can probe for the other's. */
export interface BlobOwner {
  readonly userId: string | null;
  readonly agentId: string;
}

/** Where the bytes of blobs are kept: in a table, or in an object store. */
export interface BlobBytes {
  /** Storing the same bytes again changes nothing. */
  put(owner: BlobOwner, sha256: string, bytes: Uint8Array): Promise<void>;
  get(owner: BlobOwner, sha256: string): Promise<Uint8Array | null>;
  /** Copies blobs to another agent of the same user. Unknown hashes are skipped. */
  copy(owner: BlobOwner, agentId: string, hashes: readonly string[]): Promise<void>;
  delete(owner: BlobOwner, hashes: readonly string[]): Promise<void>;
  purgeUser(userId: string): Promise<void>;
}

/** Keeps blobs in the table `blobs`. */
export function blobTable(database: PostgresDatabase): BlobBytes {
  return {
    async put({ userId, agentId }, sha256, bytes) {
      const text = "INSERT INTO skein.blobs VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
      const values = [userKey(userId), agentId, sha256, Buffer.from(bytes)];
      await database.transact(userId, (sql) => sql(text, values), { isRepeatable: true });
    },
    async get({ userId, agentId }, sha256) {
      const text = "SELECT bytes FROM skein.blobs WHERE user_id = $1 AND agent_id = $2 AND sha256 = $3";
      const values = [userKey(userId), agentId, lookupText(sha256)];
      const [row] = await database.read<{ bytes: Buffer }>(userId, text, values);
      return row === undefined ? null : Uint8Array.from(row.bytes);
    },
    async copy({ userId, agentId }, target, hashes) {
      const text = `INSERT INTO skein.blobs SELECT user_id, $3, sha256, bytes FROM skein.blobs
        WHERE user_id = $1 AND agent_id = $2 AND sha256 = ANY ($4) ON CONFLICT DO NOTHING`;
      const values = [userKey(userId), agentId, target, hashes.map(lookupText)];
      if (hashes.length > 0)
        await database.transact(userId, (sql) => sql(text, values), { isRepeatable: true });
    },
    async delete({ userId, agentId }, hashes) {
      const text = "DELETE FROM skein.blobs WHERE user_id = $1 AND agent_id = $2 AND sha256 = ANY ($3)";
      const values = [userKey(userId), agentId, hashes.map(lookupText)];
      await database.transact(userId, (sql) => sql(text, values), { isRepeatable: true });
    },
    async purgeUser(userId) {
      const text = "DELETE FROM skein.blobs WHERE user_id = $1";
      await database.transact(userId, (sql) => sql(text, [userKey(userId)]), { isRepeatable: true });
    },
  };
}

export function postgresBlobs(kept: BlobBytes): BlobStore {
  const ownerOf = ({ userId }: Scope, agentId: string) => ({ userId: userId ?? null, agentId });
  return {
    async put(scope, bytes) {
      const sha256 = hashOf(bytes);
      await kept.put(ownerOf(scope, agentOfBlob(scope)), sha256, bytes);
      return sha256;
    },
    async get(scope, sha256) {
      const { agentId } = scope;
      return agentId === undefined ? null : kept.get(ownerOf(scope, agentId), sha256);
    },
  };
}
