import type { Entry } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { parseSession, parsingSession } from "../../core/parse-session.ts";
import { Slices } from "../../core/slices.ts";
import type { TreeOptions } from "../../core/tree.ts";
import { SessionTree } from "../../core/tree.ts";
import type { Json } from "../contract.ts";
import type { Sql } from "./database.ts";
import type { EntryPlace } from "./entry-places.ts";
import { lookupText, userKey } from "./lookup-text.ts";
import { searchRows } from "./search-rows.ts";
import type { SessionRow } from "./session-row.ts";

/** Conversion between entries and rows, and sessions that are read or written as a whole. */

/** An entry to store. */
export interface PlacedEntry {
  readonly entry: Entry;
  readonly line: string;
  readonly place: EntryPlace;
}

type JsonRow = Readonly<Record<string, Json>>;

/** Returns the entry rows and the search rows as JSON parameters for a database function. */
export function entryRows(
  { uid, userId }: { readonly uid: string; readonly userId: string | null },
  placed: readonly PlacedEntry[],
): { readonly entries: string; readonly search: string } {
  const owner = { session_uid: uid, user_id: userKey(userId) };
  const entries = placed.map(
    ({ entry, line, place }): JsonRow => ({
      ...owner,
      ...{ seq: place.seq, entry_id: lookupText(entry.id), chain_seq: place.chainSeq, up_seq: place.upSeq },
      ...{ leaf_seq: place.leafSeq, context_seq: place.contextSeq, model_seq: place.modelSeq },
      ...{ thinking_seq: place.thinkingSeq, system_seq: place.systemSeq, line },
    }),
  );
  const search = placed.flatMap(({ entry, place }) =>
    searchRows(owner.user_id, entry).map((row): JsonRow => ({ ...owner, seq: place.seq, ...row })),
  );
  return { entries: JSON.stringify(entries), search: JSON.stringify(search) };
}

/** Parameters that are larger than this are sent in several statements. */
const mostBytesAtOnce = 4 * 1024 * 1024;

/** Writes many entries. */
export async function insertEntries(
  sql: Sql,
  owner: { readonly uid: string; readonly userId: string | null },
  placed: readonly PlacedEntry[],
): Promise<void> {
  for (let from = 0; from < placed.length; ) {
    let [to, bytes] = [from, 0];
    while (to < placed.length && bytes < mostBytesAtOnce) bytes += placed[to++]?.line.length ?? 0;
    const { entries, search } = entryRows(owner, placed.slice(from, to));
    await sql("SELECT skein.add_entries($1, $2, $3)", [userKey(owner.userId), entries, search]);
    from = to;
  }
}

/** Parses stored lines. They were checked before they were stored. */
export function parseLines(lines: readonly string[]): Entry[] {
  return parseSession(lines.join("\n")).lines.filter((line): line is Entry => !isCorrupt(line));
}

/** Reads a session as the bytes of a session file. */
export async function sessionBytes(sql: Sql, { session, header }: SessionRow): Promise<Buffer> {
  const rows = await sql<{ line: string }>(
    "SELECT line FROM skein.entries WHERE session_uid = $1 AND user_id = $2 ORDER BY seq",
    [session.uid, userKey(session.userId)],
  );
  return Buffer.from([JSON.stringify(header), ...rows.map(({ line }) => line), ""].join("\n"));
}

export async function readWholeTree(sql: Sql, row: SessionRow, options: TreeOptions): Promise<SessionTree> {
  return parseTree(await sessionBytes(sql, row), options);
}

export async function parseTree(bytes: Uint8Array, options: TreeOptions): Promise<SessionTree> {
  const slices = new Slices();
  return slices.run(SessionTree.growing(await slices.run(parsingSession(bytes)), options));
}
