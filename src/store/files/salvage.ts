import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { SQLInputValue } from "node:sqlite";
import { SkeinError } from "../../core/errors.ts";
import type { Script, Statement, StatementResult } from "../../core/script.ts";
import { runScript } from "../../core/script.ts";
import { DatabaseSync, databaseEndings, integrityProblem, isBusy, isDamage } from "./database.ts";

/** How the owners of tables in `work.db` handle salvaged data. */
export interface SalvageRules {
  /** Schema versions to use if the version facts are lost. */
  readonly schemas: readonly SchemaVersion[];
  /** Deletes rows that depend on lost rows, and returns the number of deleted rows per table. */
  settle(tables: readonly string[]): Script<readonly LostRows[]>;
}

/** The newest version of a schema, the fact that stores it, and one of its tables. */
export interface SchemaVersion {
  readonly fact: string;
  readonly table: string;
  readonly version: number;
}

export interface LostRows {
  readonly table: string;
  /** `null` if unknown. */
  readonly rows: number | null;
}

export interface Salvage {
  /** A description of the damage. */
  readonly problem: string;
  /** The path of the damaged file, which is kept. */
  readonly aside: string;
  readonly saved: number;
  readonly lost: readonly LostRows[];
}

/** The maximum number of attempts at finding rows between unreadable pages. More attempts would take minutes. */
const mostProbes = 20_000;
/**
 * The limit that applies while no row has been found, which indicates that the table's root page is unreadable or
 * missing.
 */
const mostEmptyProbes = 4096;
/** The highest row ID to look for if the database does not provide one. */
const fallbackRowId = 2 ** 20;

/** Completes a salvage that was interrupted before its last rename. */
export function finishSalvage(path: string): void {
  if (!existsSync(path) && existsSync(salvagedPath(path))) renameSync(salvagedPath(path), path);
}

/**
 * Copies the readable rows of a damaged database into a new one that replaces it, and keeps the damaged file. Returns
 * `null` if the database is intact or completely unreadable.
 */
export function salvageDatabase(path: string, now: number, rules: SalvageRules): Salvage | null {
  if (!existsSync(path)) return null;
  const problem = checkDatabase(path);
  if (problem === null) return null;
  const fresh = salvagedPath(path);
  const unfinished = `${fresh}.tmp`;
  const removeUnfinished = () => {
    for (const ending of databaseEndings) rmSync(unfinished + ending, { force: true });
  };
  removeUnfinished();
  let copied: ReturnType<typeof copyReadable> = null;
  try {
    copied = copyReadable(path, unfinished, rules);
  } finally {
    if (copied === null) removeUnfinished();
  }
  if (copied === null) return null;
  syncPath(unfinished);
  renameSync(unfinished, fresh);
  // From here on, a crash leaves either the damaged database or the new one in place, and `finishSalvage` continues.
  const aside = `${path}.damaged-${now}`;
  for (const ending of [...databaseEndings].reverse())
    if (existsSync(path + ending)) renameSync(path + ending, aside + ending);
  renameSync(fresh, path);
  syncPath(dirname(path));
  return { problem, aside, ...copied };
}

function salvagedPath(path: string): string {
  return `${path}.salvaged`;
}

function checkDatabase(path: string): string | null {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  try {
    return integrityProblem(db, "integrity_check");
  } finally {
    db.close();
  }
}

function copyReadable(
  path: string,
  target: string,
  rules: SalvageRules,
): { saved: number; lost: LostRows[] } | null {
  // Created here with mode 0600 because SQLite would apply the umask.
  closeSync(openSync(target, "wx", 0o600));
  const old = new DatabaseSync(path, { timeout: 0, defensive: false });
  const fresh = new DatabaseSync(target);
  try {
    // Without this, SQLite rejects a file that is truncated or that has even one unreadable table definition.
    old.exec("PRAGMA writable_schema = ON");
    // No other process may have the database open, because its writes to the old file would be lost.
    old.exec("PRAGMA locking_mode = EXCLUSIVE");
    const schema = readSchema(old, path);
    if (schema === null) return null;
    fresh.exec("BEGIN");
    for (const { sql } of schema) fresh.exec(sql);
    fresh.exec(
      `PRAGMA user_version = ${Number(old.prepare("PRAGMA user_version").get()?.user_version ?? 0)}`,
    );
    const tables = schema.filter(({ type }) => type === "table").map(({ name }) => name);
    const counted = tables.map((table) => ({ table, ...copyTable(old, fresh, table) }));
    keepVersions(fresh, tables, rules);
    const settled = runScript(rules.settle(tables), (statement) => executeOn(fresh, statement));
    fresh.exec("COMMIT");
    const saved = counted.reduce((sum, each) => sum + each.saved, 0);
    const lost = counted.filter(({ rows }) => rows !== 0).map(({ table, rows }) => ({ table, rows }));
    return { saved, lost: [...lost, ...settled.filter(({ rows }) => rows !== 0)] };
  } catch (error) {
    if (!isBusy(error)) throw error;
    const holder = "another process, such as a running gateway";
    throw new SkeinError("locked", { file: path, holder }, { cause: error });
  } finally {
    old.close();
    fresh.close();
  }
}

interface SchemaPart {
  readonly type: "table" | "index";
  readonly name: string;
  readonly sql: string;
}

/** Reads the schema, tables first. Returns `null` if it is unreadable. */
function readSchema(old: DatabaseSync, path: string): SchemaPart[] | null {
  try {
    const rows = old
      .prepare(
        `SELECT type, name, sql FROM sqlite_schema
         WHERE type IN ('table', 'index') AND sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY type DESC`,
      )
      .all() as unknown as SchemaPart[];
    return rows.length === 0 ? null : rows;
  } catch (error) {
    if (isDamage(error)) return null;
    throw (error as { readonly errcode?: number }).errcode === undefined
      ? new Error(`${path}: ${(error as Error).message}`, { cause: error })
      : error;
  }
}

/** `rows` is the number of lost rows, or `null` if unknown. */
function copyTable(
  old: DatabaseSync,
  fresh: DatabaseSync,
  table: string,
): { saved: number; rows: number | null } {
  const columns = fresh
    .prepare("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid")
    .all(table)
    .map(({ name, pk }) => ({ name: String(name), key: Number(pk) }));
  const names = columns.map(({ name }) => `"${name}"`).join(", ");
  // A row that violates a constraint comes from a damaged page.
  const insert = fresh.prepare(
    `INSERT OR IGNORE INTO "${table}" (${names}) VALUES (${columns.map(() => "?").join(", ")})`,
  );
  let saved = 0;
  const take = (values: readonly SQLInputValue[]) => {
    saved += Number(insert.run(...values).changes);
  };
  const isWithoutRowId =
    Number(fresh.prepare("SELECT wr FROM pragma_table_list WHERE name = ?").get(table)?.wr) === 1;
  const keys = columns.filter(({ key }) => key > 0).toSorted((a, b) => a.key - b.key);
  const isWhole = isWithoutRowId
    ? readByKey(
        old,
        table,
        names,
        keys.map(({ name }) => `"${name}"`),
        take,
      )
    : readByRowId(old, table, names, take);
  if (isWhole) return { saved, rows: 0 };
  const expected = countByIndexes(old, table);
  return { saved, rows: expected === null ? null : Math.max(0, expected - saved) };
}

type Take = (values: readonly SQLInputValue[]) => void;

/** Reads rows until one is unreadable. Returns `true` if all were readable. */
function readWhile(
  db: DatabaseSync,
  text: string,
  values: readonly SQLInputValue[],
  take: (row: SQLInputValue[]) => void,
): boolean {
  try {
    const statement = db.prepare(text);
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    for (const row of statement.iterate(...values)) take(row as unknown as SQLInputValue[]);
    return true;
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

/**
 * Reads from both ends toward the unreadable part, then recursively in each half of the gap, so that a damaged page
 * hides only its own rows.
 */
function readByRowId(db: DatabaseSync, table: string, names: string, take: Take): boolean {
  const text = (order: string) =>
    `SELECT rowid, ${names} FROM "${table}" WHERE rowid BETWEEN ? AND ? ORDER BY rowid ${order}`;
  let last: bigint | null = null;
  let limit = mostEmptyProbes;
  const taking = ([rowId, ...row]: SQLInputValue[]) => {
    limit = mostProbes;
    take(row);
    last = rowId as bigint;
  };
  const read = (order: "ASC" | "DESC", low: bigint, high: bigint): bigint | "all" | null => {
    last = null;
    return readWhile(db, text(order), [low, high], taking) ? "all" : last;
  };
  const ranges: [bigint, bigint][] = [[-(2n ** 63n), 2n ** 63n - 1n]];
  let isWhole = true;
  for (let probes = 0; ranges.length > 0 && probes < limit; probes++) {
    const [low, high] = ranges.shift() as [bigint, bigint];
    const up = read("ASC", low, high);
    if (up === "all") continue;
    isWhole = false;
    const from = up === null ? low : up + 1n;
    const down = read("DESC", from, high);
    if (down === "all") continue;
    // There are no rows outside this range. Probing there would only hit the damaged page again.
    const lowest = from < 0n ? 0n : from;
    const to = down === null ? high : down - 1n;
    const highest = probes === 0 && down === null ? highestRowId(db, table, to) : to;
    if (lowest >= highest) continue;
    if (probes === 0) {
      // Row IDs start at 1, so most are small. Each range is twice as wide as the previous one.
      for (let [start, width] = [lowest, 1n]; start <= highest; [start, width] = [start + width, width * 2n])
        ranges.push([start, start + width > highest ? highest : start + width - 1n]);
      continue;
    }
    const middle = (lowest + highest) / 2n;
    ranges.push([lowest, middle], [middle + 1n, highest]);
  }
  return isWhole;
}

function highestRowId(db: DatabaseSync, table: string, most: bigint): bigint {
  const known: bigint[] = [];
  const take = ([rowId]: SQLInputValue[]) => void (typeof rowId === "bigint" && known.push(rowId));
  readWhile(db, "SELECT seq FROM sqlite_sequence WHERE name = ?", [table], take);
  for (const index of fullIndexes(db, table))
    readWhile(db, `SELECT max(rowid) FROM "${table}" INDEXED BY "${index}"`, [], take);
  const highest = known.reduce((one, other) => (one > other ? one : other), 0n);
  const bound = known.length === 0 ? BigInt(fallbackRowId) : highest;
  return bound < most ? bound : most;
}

/** Reads from both ends. Rows between two damaged pages are found through the keys in indexes. */
function readByKey(
  db: DatabaseSync,
  table: string,
  names: string,
  keys: readonly string[],
  take: Take,
): boolean {
  const order = (direction: string) => keys.map((key) => `${key} ${direction}`).join(", ");
  const all = (direction: string) => `SELECT ${names} FROM "${table}" ORDER BY ${order(direction)}`;
  if (readWhile(db, all("ASC"), [], take)) return true;
  readWhile(db, all("DESC"), [], take);
  const one = `SELECT ${names} FROM "${table}" WHERE ${keys.map((key) => `${key} = ?`).join(" AND ")}`;
  for (const index of fullIndexes(db, table)) {
    const found: SQLInputValue[][] = [];
    readWhile(db, `SELECT ${keys.join(", ")} FROM "${table}" INDEXED BY "${index}"`, [], (row) =>
      found.push(row),
    );
    for (const key of found) readWhile(db, one, key, take);
  }
  return false;
}

/** Returns the number of rows according to the non-partial indexes, or `null` if none of them can be read. */
function countByIndexes(db: DatabaseSync, table: string): number | null {
  const counts = fullIndexes(db, table).map((index) => {
    let count: number | null = null;
    readWhile(db, `SELECT count(*) FROM "${table}" INDEXED BY "${index}"`, [], ([value]) => {
      count = Number(value);
    });
    return count;
  });
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function fullIndexes(db: DatabaseSync, table: string): string[] {
  return db
    .prepare("SELECT name FROM pragma_index_list(?) WHERE partial = 0 AND origin <> 'pk'")
    .all(table)
    .map(({ name }) => String(name));
}

/** Restores lost schema versions. Otherwise, existing tables would be created again, and the start would fail. */
function keepVersions(fresh: DatabaseSync, tables: readonly string[], { schemas }: SalvageRules): void {
  if (!tables.includes("facts")) return;
  for (const { fact, table, version } of schemas) {
    if (!tables.includes(table)) continue;
    fresh.prepare("INSERT OR IGNORE INTO facts (name, value) VALUES (?, ?)").run(fact, String(version));
  }
  // Marks might have been lost. Deleting this fact marks every session again.
  fresh.exec("DELETE FROM facts WHERE name = 'index'");
}

function executeOn(database: DatabaseSync, { text, values, wants }: Statement): StatementResult {
  const prepared = database.prepare(text);
  if (wants === "changes") return Number(prepared.run(...values).changes);
  return wants === "row" ? prepared.get(...values) : prepared.all(...values);
}

function syncPath(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
