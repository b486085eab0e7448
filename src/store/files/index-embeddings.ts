import type { PackedVector } from "../search/vectors.ts";
import { NearestItems, packedBytes, unpackBytes } from "../search/vectors.ts";
import type { IndexDb } from "./index-db.ts";
import type { FoundEntry, WordSearch } from "./index-search.ts";

/** A search compares at most this many of the newest embeddings. */
const mostCompared = 50_000;

/** The entries to search, and the model whose embeddings are compared. */
export interface EmbeddingSearch extends Pick<WordSearch, "searched" | "since" | "until" | "limit"> {
  readonly model: string;
}

/** An entry's row in the index, with the entry's ID, because row numbers can be reused. */
export interface EmbeddedRow {
  readonly row: number;
  readonly entryId: string;
  readonly vector: PackedVector;
}

/** Returns the entries whose embeddings are nearest to a vector, nearest first. */
export function findNearest({ db }: IndexDb, search: EmbeddingSearch, vector: PackedVector): FoundEntry[] {
  const nearest = new NearestItems<FoundEntry>(vector, search.limit);
  db.sql(
    `SELECT said.id, uid, entry_id, role, time, length, vector FROM said JOIN embeddings ON embeddings.id = said.id
     WHERE ${search.searched.sql} AND model = ? AND time BETWEEN ? AND ? ORDER BY said.id DESC LIMIT ?`,
  ).each([...search.searched.values, search.model, search.since, search.until, mostCompared], (row) =>
    nearest.add(foundEntry(row), unpackBytes(row.vector as Uint8Array)),
  );
  return nearest.items;
}

/** Returns the newest entries without an embedding. */
export function findUnembedded({ db }: IndexDb, search: EmbeddingSearch): FoundEntry[] {
  return db
    .sql(
      `SELECT said.id, uid, entry_id, role, time, length
       FROM said LEFT JOIN embeddings ON embeddings.id = said.id AND model = ?
       WHERE embeddings.id IS NULL AND ${search.searched.sql} ORDER BY said.id DESC LIMIT ?`,
    )
    .all(search.model, ...search.searched.values, search.limit)
    .map(foundEntry);
}

export function putEmbeddings(index: IndexDb, search: EmbeddingSearch, rows: readonly EmbeddedRow[]): void {
  const { model, searched } = search;
  index.exclusively(() => {
    for (const { row, entryId, vector } of rows)
      index.db.run(
        `INSERT OR REPLACE INTO embeddings
         SELECT id, ?, ? FROM said WHERE id = ? AND entry_id = ? AND ${searched.sql}`,
        ...[model, packedBytes(vector), row, entryId, ...searched.values],
      );
  });
}

function foundEntry(row: Record<string, unknown>): FoundEntry {
  return {
    row: Number(row.id),
    uid: String(row.uid),
    entryId: String(row.entry_id),
    role: String(row.role),
    time: Number(row.time),
    length: Number(row.length),
  };
}
