import type { Json } from "../contract.ts";
import type { PostgresDatabase, Sql } from "./database.ts";
import { everyUser } from "./database.ts";
import { parseLines } from "./entry-rows.ts";
import { searchRows } from "./search-rows.ts";

/** Entries per transaction, so that no transaction takes long. */
const atOnce = 200;

interface OldEntry {
  readonly session_uid: string;
  readonly seq: number;
  readonly user_id: string;
  readonly line: string;
}

/**
 * Rewrites the words of entries that were stored before the format of stored words last changed. Until then, searches
 * do not find these entries, and report how many sessions are affected. Several processes can do this at the same time.
 */
export async function renewWords(database: PostgresDatabase, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await database.transact(everyUser, renewSome)));
}

/** Returns `false` if nothing is left. */
async function renewSome(sql: Sql): Promise<boolean> {
  const old = await sql<OldEntry>(
    `SELECT w.session_uid, w.seq, w.user_id, e.line FROM skein.entry_search AS w
     JOIN skein.entries AS e ON e.session_uid = w.session_uid AND e.seq = w.seq
     WHERE w.codes IS NULL AND w.part = 0 LIMIT ${atOnce} FOR UPDATE OF w SKIP LOCKED`,
  );
  if (old.length === 0) return false;
  await sql(
    `DELETE FROM skein.entry_search AS w USING unnest($1::text[], $2::integer[]) AS o (uid, seq)
     WHERE w.session_uid = o.uid AND w.seq = o.seq`,
    [old.map(({ session_uid: uid }) => uid), old.map(({ seq }) => seq)],
  );
  const rows = old.flatMap(({ line, ...owner }) =>
    parseLines([line])
      .flatMap((entry) => searchRows(owner.user_id, entry))
      .map((row): Readonly<Record<string, Json>> => ({ ...owner, ...row })),
  );
  await sql(
    "INSERT INTO skein.entry_search SELECT * FROM json_populate_recordset(NULL::skein.entry_search, $1)",
    [JSON.stringify(rows)],
  );
  return true;
}
