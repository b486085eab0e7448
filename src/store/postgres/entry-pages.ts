import type { ContextOptions, SessionContext } from "../../core/context.ts";
import { contextOf, initialState, stateAfter } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import type { Node } from "../../core/link-entries.ts";
import type { EntryPage, EntryRange, Scope } from "../contract.ts";
import { entryLimit, noSuchEntry, withinBytes } from "../list-query.ts";
import type { PostgresDatabase, Sql } from "./database.ts";
import { parseLines } from "./entry-rows.ts";
import type { Chain } from "./entry-site.ts";
import { readChains } from "./entry-site.ts";
import { idKey, lookupText, userKey } from "./lookup-text.ts";
import type { SessionRow } from "./session-row.ts";

interface ContextRow {
  readonly what: "session" | "odd" | "state" | "path";
  readonly seq: number;
  readonly line: string;
}

/** With a byte budget, this many of the newest entries are read first. */
const firstEntries = 200;
const growth = 4;

/**
 * Reads the context in one query, starting after the last compaction. Returns `null` if there is no such session, and
 * `odd` if the session must be read as a whole.
 */
export async function readContext(
  database: PostgresDatabase,
  { userId, agentId }: Scope,
  sessionId: string,
  options: ContextOptions,
): Promise<SessionContext | "odd" | null> {
  const text = "SELECT * FROM skein.read_context($1, $2, $3, $4)";
  for (let limit = options.byteBudget === undefined ? null : firstEntries; ; ) {
    const values = [userKey(userId), agentId ?? null, idKey(sessionId), limit];
    const { rows } = await database.call<ContextRow>(text, values);
    const [first] = rows;
    if (first === undefined) return null;
    if (first.what === "odd") return "odd";
    const context = contextOfRows(rows, options);
    const isWhole = limit === null || context.entryCount < limit || context.built.cut !== null;
    if (isWhole || limit === null) return context.built;
    limit *= growth;
  }
}

function contextOfRows(
  rows: readonly ContextRow[],
  options: ContextOptions,
): { readonly built: SessionContext; readonly entryCount: number } {
  const linesOf = (what: ContextRow["what"]) =>
    rows
      .filter((row) => row.what === what)
      .sort((a, b) => a.seq - b.seq)
      .map(({ line }) => line);
  const path = parseLines(linesOf("path"));
  const initial = parseLines(linesOf("state")).reduce(stateAfter, initialState);
  const base = path[0]?.parentId ?? null;
  const leftOut = base === null ? {} : { base, initial };
  return { built: contextOf(linkPath(path), [], { ...options, ...leftOut }), entryCount: path.length };
}

function linkPath(path: readonly Entry[]): Node | null {
  let leaf: Node | null = null;
  for (const [position, entry] of path.entries()) leaf = { entry, position, parent: leaf };
  return leaf;
}

/** Reads one entry on any branch. */
export async function readEntry(sql: Sql, row: SessionRow, entryId: string): Promise<Entry | null> {
  const { uid, userId } = row.session;
  const rows = await sql<{ line: string }>(
    "SELECT line FROM skein.entries WHERE user_id = $1 AND session_uid = $2 AND entry_id = $3",
    [userKey(userId), uid, lookupText(entryId)],
  );
  return parseLines(rows.map(({ line }) => line))[0] ?? null;
}

/** Reads a page of the branch or of all entries. Only the entries on the page are read. */
export async function readPage(sql: Sql, row: SessionRow, range: EntryRange): Promise<EntryPage> {
  const limit = entryLimit(range.limit);
  const { leafId, digest } = row.session;
  const all: Chain[] = digest.entries === 0 ? [] : [{ from: 0, to: digest.entries - 1 }];
  const onBranch = async () => (row.tip === null ? [] : readChains(sql, row, row.tip));
  const chains = range.along === "all" ? all : (await onBranch()).toReversed();
  const length = chains.reduce((sum, { from, to }) => sum + to - from + 1, 0);
  const after = range.after === undefined ? null : await indexOf(sql, row, chains, range.after);
  const before = range.before === undefined ? length : await indexOf(sql, row, chains, range.before);
  const from = after === null ? Math.max(0, before - limit) : after + 1;
  const to = after === null ? before : Math.min(before, from + limit);
  const rows = await readRange(sql, row, cutChains(chains, from, Math.max(from, to)));
  const kept = withinBytes(rows, after !== null, range.bytes, (line) => Buffer.byteLength(line));
  const isCut = kept.length < rows.length;
  const hasAny = kept.length > 0;
  return {
    entries: parseLines(kept),
    hasEarlier: hasAny && (from > 0 || (isCut && after === null)),
    hasLater: hasAny && (to < length || (isCut && after !== null)),
    leafId,
  };
}

/** Returns an entry's index in the listed chains. Throws `not_found` if no chain contains the entry. */
async function indexOf(
  sql: Sql,
  { session }: SessionRow,
  chains: readonly Chain[],
  entryId: string,
): Promise<number> {
  const [found] = await sql<{ seq: number }>(
    "SELECT seq FROM skein.entries WHERE user_id = $1 AND session_uid = $2 AND entry_id = $3",
    [userKey(session.userId), session.uid, lookupText(entryId)],
  );
  let index = 0;
  for (const { from, to } of chains) {
    if (found !== undefined && from <= found.seq && found.seq <= to) return index + found.seq - from;
    index += to - from + 1;
  }
  return noSuchEntry(entryId);
}

/** Returns the parts of the chains between two indexes. */
function cutChains(chains: readonly Chain[], first: number, end: number): Chain[] {
  let index = 0;
  return chains.flatMap(({ from, to }) => {
    const begin = index;
    index += to - from + 1;
    const part = { from: from + Math.max(0, first - begin), to: Math.min(to, from + end - begin - 1) };
    return part.from > part.to ? [] : [part];
  });
}

async function readRange(sql: Sql, { session }: SessionRow, chains: readonly Chain[]): Promise<string[]> {
  if (chains.length === 0) return [];
  const rows = await sql<{ line: string }>(
    `SELECT e.line FROM unnest($3::integer[], $4::integer[]) AS r (low, high)
     JOIN skein.entries AS e ON e.user_id = $1 AND e.session_uid = $2 AND e.seq BETWEEN r.low AND r.high
     ORDER BY e.seq`,
    [userKey(session.userId), session.uid, chains.map((each) => each.from), chains.map((each) => each.to)],
  );
  return rows.map(({ line }) => line);
}
