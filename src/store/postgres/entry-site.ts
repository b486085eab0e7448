import type { Entry } from "../../core/entries.ts";
import type { Node } from "../../core/link-entries.ts";
import { requireNode, targetOf } from "../../core/plan.ts";
import type { AppendItem } from "../contract.ts";
import type { Sql } from "./database.ts";
import type { EntryPlace } from "./entry-places.ts";
import { parseLines } from "./entry-rows.ts";
import { lookupText, userKey } from "./lookup-text.ts";
import type { SessionRow, StoredPlace } from "./session-row.ts";
import { placeOf } from "./session-row.ts";

/** A stored entry, or the tip, which is known without being read. */
interface KnownEntry {
  readonly node: Node;
  readonly place: EntryPlace;
  readonly leafId: string | null;
}

/** The entries of a session that an append depends on. The others are not read. */
export interface EntrySite {
  /** The entry that the first new entry is attached to. */
  readonly parent: KnownEntry | null;
  find(id: string): KnownEntry | undefined;
}

/** Appends to the tip, for items that refer to no other entry. */
export function siteAtTip(row: SessionRow): EntrySite {
  return { parent: knownTip(row), find: () => undefined };
}

function knownTip({ tip, tipId, session }: SessionRow): KnownEntry | null {
  if (tip === null || tipId === null) return null;
  const entry: Entry = {
    ...{ type: "opaque", id: tipId, parentId: null, timestamp: "" },
    ...{ original: {}, problem: null },
  };
  return { node: { entry, position: tip.seq, parent: null }, place: tip, leafId: session.leafId };
}

/**
 * Reads the stored entries that the items depend on: entries with the same IDs, entries that the items refer to, and
 * the parent if it is not the tip. Throws `not_found` for an unknown parent.
 */
export async function readSite(
  sql: Sql,
  row: SessionRow,
  items: readonly AppendItem[],
  parentId?: string | null,
): Promise<EntrySite> {
  const asked = [...items.flatMap((item) => [item.id, targetOf(item.draft)]), parentId];
  const ids = [...new Set(asked.filter((id) => typeof id === "string"))];
  const known = ids.length === 0 ? new Map<string, KnownEntry>() : await readKnown(sql, row, ids);
  const tip = row.tipId === null ? null : (known.get(row.tipId) ?? knownTip(row));
  const parent = parentId === undefined ? tip : parentId === null ? null : requireKnown(known, parentId);
  const kept = items.flatMap(({ draft }) =>
    draft?.type === "compaction" && draft.firstKeptEntryId !== null ? [draft.firstKeptEntryId] : [],
  );
  if (kept.length > 0 && parent !== null) await linkToBranch(sql, row, parent, kept, known);
  return { parent, find: (id) => known.get(id) };
}

function requireKnown(known: ReadonlyMap<string, KnownEntry>, id: string): KnownEntry {
  const found = known.get(id);
  requireNode(found?.node, id);
  return found as KnownEntry;
}

interface KnownRow extends StoredPlace {
  readonly line: string;
  readonly leaf_line: string | null;
}

async function readKnown(
  sql: Sql,
  { session }: SessionRow,
  ids: readonly string[],
): Promise<Map<string, KnownEntry>> {
  const rows = await sql<KnownRow>(
    `SELECT e.seq, e.chain_seq, e.up_seq, e.leaf_seq, e.context_seq, e.model_seq, e.thinking_seq, e.system_seq, e.line,
       CASE WHEN e.leaf_seq <> e.seq THEN (
         SELECT l.line FROM skein.entries AS l WHERE l.session_uid = $2 AND l.seq = e.leaf_seq
       ) END AS leaf_line
     FROM skein.entries AS e WHERE e.user_id = $1 AND e.session_uid = $2 AND e.entry_id = ANY ($3)`,
    [userKey(session.userId), session.uid, ids.map(lookupText)],
  );
  const known = new Map<string, KnownEntry>();
  for (const row of rows) {
    const [entry] = parseLines([row.line]);
    if (entry === undefined) continue;
    const [leaf] = row.leaf_line === null ? [] : parseLines([row.leaf_line]);
    const leafId = row.leaf_seq === row.seq ? entry.id : (leaf?.id ?? null);
    const node: Node = { entry, position: row.seq, parent: null };
    known.set(entry.id, { node, place: placeOf(row), leafId });
  }
  return known;
}

/** A chain of consecutive entries on a branch. */
export interface Chain {
  readonly from: number;
  readonly to: number;
}

/** Returns the chains of the branch that ends at an entry, newest first. */
export async function readChains(sql: Sql, { session }: SessionRow, { seq }: EntryPlace): Promise<Chain[]> {
  return sql<Chain>(
    `WITH RECURSIVE chain (chain_seq, seq, up_seq) AS (
       SELECT e.chain_seq, e.seq, e.up_seq FROM skein.entries AS e
       WHERE e.user_id = $1 AND e.session_uid = $2 AND e.seq = $3
       UNION ALL
       SELECT e.chain_seq, e.seq, e.up_seq FROM chain AS c
       JOIN skein.entries AS e ON e.user_id = $1 AND e.session_uid = $2 AND e.seq = c.up_seq
     ) SELECT chain_seq AS "from", seq AS "to" FROM chain`,
    [userKey(session.userId), session.uid, seq],
  );
}

/** Links the parent to the kept entries on its branch, as if all entries in between had been read. */
async function linkToBranch(
  sql: Sql,
  row: SessionRow,
  parent: KnownEntry,
  keptIds: readonly string[],
  known: ReadonlyMap<string, KnownEntry>,
): Promise<void> {
  const chains = await readChains(sql, row, parent.place);
  const isOnBranch = (seq: number) => chains.some(({ from, to }) => from <= seq && seq <= to);
  const kept = [...new Set(keptIds)]
    .map((id) => known.get(id)?.node)
    .filter((node) => node !== undefined && node !== parent.node && isOnBranch(node.position))
    .sort((a, b) => (b?.position ?? 0) - (a?.position ?? 0));
  let below = parent.node;
  for (const node of kept) {
    if (node === undefined) continue;
    below.parent = node;
    below = node;
  }
}
