import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { SessionHeader } from "../../core/entries.ts";
import { isRecord } from "../../core/is-record.ts";
import { defaultNamespace } from "../../core/namespace.ts";
import { present } from "../../core/present.ts";
import type { SqlRow, SqlValue } from "../../core/script.ts";
import type {
  LedgerTable,
  MigrationSource,
  StoredBlob,
  StoredSession,
  StoredState,
} from "../migrate/contract.ts";
import { parseEntries } from "../migrate/fingerprint.ts";
import {
  isSharedFact,
  lastRowQuery,
  openRunsQuery,
  pageQuery,
  tombstonePrefix,
} from "../migrate/ledger-tables.ts";
import { blobsOf, hashesIn } from "../session-trees.ts";
import type { Disk } from "./disk.ts";
import { parseJson, readOwn } from "./disk.ts";
import type { SessionPaths } from "./layout.ts";
import { agentsIn, blobsFolder, homeOf, namesIn, sessionPaths, stateFolder, trashedPaths } from "./layout.ts";
import type { DamagedLines } from "./log-lines.ts";
import { damagedLog, readLogHeader, readLogLines } from "./log-lines.ts";
import { missingLog } from "./session-files.ts";
import type { SessionRow } from "./work-db.ts";
import { headerOf, readSessionRow, sessionColumns } from "./work-db.ts";

const rowsAtOnce = 500;

/** Runs a query on `work.db`. */
export type Query = (text: string, ...values: SqlValue[]) => SqlRow[];

/**
 * Reads a session folder without opening it as a store. Opening it would finish interrupted changes and update its
 * index.
 */
export abstract class FolderReader implements MigrationSource {
  readonly name: string;
  /** The number of damaged lines that were left out, by session key. */
  readonly skipped = new Map<string, number>();
  /** The blobs that a session refers to but whose files do not exist, by session key. */
  readonly missingBlobs = new Map<string, ReadonlySet<string>>();
  protected readonly damagedLines: DamagedLines = "refuse";
  protected readonly root: string;
  protected readonly disk: Disk;
  protected readonly query: Query;

  constructor(root: string, disk: Disk, query: Query) {
    this.name = `files:${root}`;
    this.root = root;
    this.disk = disk;
    this.query = query;
  }

  async identify(): Promise<string> {
    const [begun] = this.query("SELECT value FROM facts WHERE name = 'begun'");
    return `${realpathSync(this.root)} ${begun?.value ?? ""}`;
  }

  abstract checkIdle(): Promise<void>;

  async openRuns(): Promise<ReadonlyMap<string, number>> {
    if ((await this.columns({ name: "runs", key: [] })).length === 0) return new Map();
    return new Map(this.query(openRunsQuery).map(({ state, count }) => [String(state), Number(count)]));
  }

  async mark(): Promise<string> {
    const [version] = this.query("PRAGMA data_version");
    let bytes = 0;
    for (let last = ""; ; ) {
      const uids = await this.uidsAfter(last, rowsAtOnce);
      for (const uid of uids) bytes += this.disk.stat(this.#log({ uid }))?.size ?? 0;
      const next = uids.at(-1);
      if (next === undefined) return `${version?.data_version} ${bytes}`;
      last = next;
    }
  }

  async uidsAfter(uid: string, limit: number): Promise<string[]> {
    const rows = this.query("SELECT uid FROM sessions WHERE uid > ? ORDER BY uid LIMIT ?", uid, limit);
    return rows.map((row) => String(row.uid));
  }

  async countSessions(): Promise<number> {
    return this.#count("sessions");
  }

  async session(uid: string): Promise<StoredSession | null> {
    const row = this.#row(uid);
    if (row === null) return null;
    const { userId, agentId, key, sessionId, createdAt, removedAt } = row;
    return { uid, userId, agentId, key, sessionId, createdAt, removedAt, header: this.#header(row) };
  }

  async *lines(session: StoredSession): AsyncGenerator<readonly string[]> {
    const log = readLogLines(this.disk, this.#log(session), this.damagedLines);
    const missing = new Set<string>();
    let step = log.next();
    for (; step.done !== true; step = log.next()) {
      for (const sha256 of this.#blobsWithoutFile(session, step.value)) missing.add(sha256);
      yield step.value;
    }
    if (step.value > 0) this.skipped.set(session.key, step.value);
    if (missing.size > 0) this.missingBlobs.set(session.key, missing);
  }

  async states({ uid }: StoredSession): Promise<readonly StoredState[]> {
    const row = this.#row(uid);
    if (row === null) return [];
    const folder = stateFolder(this.root, row, row.sessionId);
    const names = namesIn(this.disk, folder).filter((name) => /^[^.].*\.json$/.test(name));
    return names
      .map((name) => ({ key: name.slice(0, -".json".length), ...this.#readState(join(folder, name)) }))
      .toSorted((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
  }

  async *blobs(): AsyncGenerator<StoredBlob> {
    for (const agent of agentsIn(this.root, this.disk)) {
      const { userId, agentId, home } = agent;
      if (userId === undefined) continue;
      for (const sha256 of namesIn(this.disk, blobsFolder(this.root, agent)).toSorted())
        if (/^[0-9a-f]{64}$/.test(sha256)) yield { userId, agentId, sha256, home };
    }
  }

  async countBlobs(): Promise<number> {
    let count = 0;
    for await (const _ of this.blobs()) count += 1;
    return count;
  }

  async blob(blob: StoredBlob): Promise<Uint8Array | null> {
    return readOwn(this.disk, this.blobPath(blob));
  }

  async columns({ name }: LedgerTable): Promise<string[]> {
    return this.query("SELECT name FROM pragma_table_info(?)", name)
      .map((row) => String(row.name))
      .toSorted();
  }

  async countRows(table: LedgerTable): Promise<number> {
    return (await this.columns(table)).length === 0 ? 0 : this.#count(table.name);
  }

  async rowsAfter(
    table: LedgerTable,
    columns: readonly string[],
    after: SqlRow | null,
    limit: number,
  ): Promise<SqlRow[]> {
    const values = after === null ? [] : table.key.map((column) => after[column] as SqlValue);
    return this.query(pageQuery(table, columns, after === null, true), ...values, limit);
  }

  async lastRow(table: LedgerTable, columns: readonly string[]): Promise<SqlRow | null> {
    return this.query(lastRowQuery(table, columns))[0] ?? null;
  }

  async lastNumber({ name }: LedgerTable): Promise<number> {
    return Number(this.query("SELECT seq FROM sqlite_sequence WHERE name = ?", name)[0]?.seq ?? 0);
  }

  async facts(): Promise<ReadonlyMap<string, string>> {
    const facts = this.query("SELECT name, value FROM facts").map(
      ({ name, value }) => [String(name), String(value)] as const,
    );
    const tombstones = this.query("SELECT id, what, name, at FROM tombstones").map(
      ({ id, ...tombstone }) => [`${tombstonePrefix}${id}`, JSON.stringify(tombstone)] as const,
    );
    return new Map([...facts.filter(([name]) => isSharedFact(name)), ...tombstones]);
  }

  abstract close(): Promise<void>;

  protected pathsOf(row: Pick<SessionRow, "uid" | "home" | "agentId" | "sessionId" | "state">): SessionPaths {
    return row.state === "trashed"
      ? trashedPaths(this.root, row.uid, row.sessionId)
      : sessionPaths(this.root, row, row.sessionId);
  }

  protected blobPath({
    userId,
    agentId,
    sha256,
    home = homeOf(defaultNamespace, userId),
  }: StoredBlob): string {
    return join(blobsFolder(this.root, { home, agentId }), sha256);
  }

  #count(table: string): number {
    return Number(this.query(`SELECT count(*) AS count FROM ${table}`)[0]?.count);
  }

  #row(uid: string): SessionRow | null {
    const [found] = this.query(`SELECT ${sessionColumns} FROM sessions WHERE uid = ?`, uid);
    return found === undefined ? null : readSessionRow(found);
  }

  #log({ uid }: Pick<StoredSession, "uid">): string {
    const row = this.#row(uid);
    return row === null ? "" : this.pathsOf(row).log;
  }

  #blobsWithoutFile({ uid, userId, agentId }: StoredSession, lines: readonly string[]): string[] {
    const entries = lines.filter((line) => hashesIn(line).length > 0).flatMap(parseEntries);
    const home = entries.length === 0 ? undefined : this.#row(uid)?.home;
    return entries
      .flatMap(blobsOf)
      .filter((sha256) => !this.disk.kind(this.blobPath({ userId, agentId, sha256, ...present({ home }) })));
  }

  /** A session that was accepted but never used has no log yet. */
  #header(row: SessionRow): SessionHeader {
    const { log } = this.pathsOf(row);
    const header = readLogHeader(this.disk, log);
    if (header === null && row.state !== "pending") throw missingLog(log);
    return header ?? headerOf(row);
  }

  #readState(path: string): Omit<StoredState, "key"> {
    const saved = parseJson(readOwn(this.disk, path) ?? new Uint8Array(0));
    if (!isRecord(saved) || typeof saved.version !== "number" || saved.value === undefined)
      throw damagedLog(path, "it is not a saved state");
    return { version: saved.version, value: JSON.stringify(saved.value) };
  }
}
