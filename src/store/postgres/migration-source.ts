import type { SessionHeader } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { SqlRow, SqlValue } from "../../core/script.ts";
import { queryRow, queryRows } from "../../core/script.ts";
import type { SessionMeta } from "../contract.ts";
import type {
  LedgerTable,
  MigrationSource,
  StoredBlob,
  StoredSession,
  StoredState,
} from "../migrate/contract.ts";
import {
  isSharedFact,
  lastRowQuery,
  objectStoreFact,
  openRunsQuery,
  pageQuery,
  unfinishedError,
  unfinishedFact,
} from "../migrate/ledger-tables.ts";
import { changedIn } from "../session-meta.ts";
import type { PostgresDatabase, Sql } from "./database.ts";
import { everyUser } from "./database.ts";
import { isPooled } from "./direct-connection.ts";
import { driveScript } from "./drive-script.ts";
import { parseLines } from "./entry-rows.ts";
import { userKey } from "./lookup-text.ts";
import type { StoredSession as SessionColumns } from "./session-row.ts";
import { rowOf, storedColumns, userOf } from "./session-row.ts";

const linesAtOnce = 256;

/** Reads a whole database, for all users. The role must own the tables. */
export class DatabaseSource implements MigrationSource {
  readonly name: string;
  protected readonly database: PostgresDatabase;
  #lock: { end(): Promise<void> } | null = null;
  /** User IDs by their key in the database. A long user ID cannot be recovered from its key. */
  readonly #users = new Map<string, string | null>();

  constructor(database: PostgresDatabase) {
    this.name = `postgres://${database.name}`;
    this.database = database;
  }

  /** Excludes other migrations from and to this database until `close`. */
  static async claim<T extends DatabaseSource>(
    database: PostgresDatabase,
    Kind: new (database: PostgresDatabase) => T,
  ): Promise<T> {
    const reader = new Kind(database);
    try {
      await reader.#takeLock();
      return reader;
    } catch (error) {
      await reader.close();
      throw error;
    }
  }

  async #takeLock(): Promise<void> {
    const client = await this.database.openConnection();
    this.#lock = client;
    // A migration keeps its process alive.
    client.ref();
    if (await isPooled(client))
      throw new SkeinError("invalid_arguments", {
        problem: `${this.name} is a connection pooler, which cannot hold a migration's lock`,
        advice: "Use the address of the PostgreSQL server itself",
      });
    const text = "SELECT pg_try_advisory_lock(hashtextextended('skein store migrate', 0)) AS locked";
    const { rows } = await client.query<{ locked: boolean }>(text);
    if (rows[0]?.locked === true) return;
    throw new SkeinError("conflict", {
      problem: `Another migration is using ${this.name}`,
      advice: "Wait until that migration has ended",
    });
  }

  async identify(): Promise<string> {
    const text = "SELECT applied_at::text AS at FROM skein.migrations WHERE number = 1";
    const [first] = await this.read<{ at: string }>(text);
    return `${this.database.name} ${first?.at ?? ""}`;
  }

  /** Throws `unavailable` if a migration to the database was interrupted, or if its blobs are in an object store. */
  async checkComplete(): Promise<void> {
    const text = "SELECT value FROM skein.facts WHERE name = $1";
    if ((await this.read(text, [unfinishedFact])).length > 0) throw unfinishedError();
    const [elsewhere] = await this.read<{ value: string }>(text, [objectStoreFact]);
    if (elsewhere === undefined) return;
    throw new SkeinError("unavailable", {
      problem: `This database's images and large outputs are in ${elsewhere.value}, which cannot be migrated`,
      advice: "Use PostgreSQL's own tools to copy the database",
    });
  }

  /** A process that uses the database updates its heartbeat there every two seconds. */
  async checkIdle(): Promise<void> {
    const text = `SELECT count(*) AS count FROM skein.feed_publishers
      WHERE left_at IS NULL AND beat_at > now() - interval '10 seconds'`;
    const [live] = await this.read<{ count: number }>(text);
    const count = live?.count ?? 0;
    if (count === 0) return;
    throw new SkeinError("conflict", {
      problem: `${this.name} is in use by ${count} ${count === 1 ? "process" : "processes"}`,
      advice:
        "Stop every gateway and program that uses it, wait ten seconds, then run the same command again",
    });
  }

  async openRuns(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#run((sql) => driveScript(sql, queryRows(openRunsQuery)));
    return new Map(rows.map(({ state, count }) => [String(state), Number(count)]));
  }

  async mark(): Promise<string> {
    const [row] = await this.read<SqlRow>(
      `SELECT (SELECT count(*) FROM skein.sessions) AS sessions, (SELECT sum(revision) FROM skein.sessions) AS revisions,
         (SELECT sum(version) FROM skein.state_values) AS states, (SELECT max(seq) FROM skein.runs) AS runs`,
    );
    return JSON.stringify(row);
  }

  async uidsAfter(uid: string, limit: number): Promise<string[]> {
    const text = "SELECT uid FROM skein.sessions WHERE uid > $1 ORDER BY uid LIMIT $2";
    return (await this.read<{ uid: string }>(text, [uid, limit])).map((row) => row.uid);
  }

  async countSessions(): Promise<number> {
    const [row] = await this.read<{ count: number }>("SELECT count(*) AS count FROM skein.sessions");
    return row?.count ?? 0;
  }

  async session(uid: string): Promise<StoredSession | null> {
    const [found] = await this.read<SessionColumns & { user_id: string }>(
      `SELECT ${storedColumns}, user_id FROM skein.sessions WHERE uid = $1`,
      [uid],
    );
    if (found === undefined) return null;
    const userId = userOf(found.detail, found.user_id);
    const { session, header, removedAt } = rowOf(userId, found);
    const { agentId, key, sessionId, createdAt, meta, version } = session;
    const ref = { uid, userId, agentId, key };
    return {
      ...{ ...ref, sessionId, createdAt, removedAt, current: { meta, version } },
      header: header.skein?.uid === uid ? header : await this.#withMeta(ref, header, meta),
    };
  }

  /** Positions have no gaps. For a range with both ends, PostgreSQL uses the index even if it expects few rows. */
  async *lines({ uid }: StoredSession): AsyncGenerator<readonly string[]> {
    const text =
      "SELECT line FROM skein.entries WHERE session_uid = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq";
    for (let seq = 0; ; seq += linesAtOnce) {
      const rows = await this.read<{ line: string }>(text, [uid, seq, seq + linesAtOnce - 1]);
      yield rows.map(({ line }) => line);
      if (rows.length < linesAtOnce) return;
    }
  }

  states({ uid }: StoredSession): Promise<readonly StoredState[]> {
    const text = "SELECT key, version, value FROM skein.state_values WHERE session_uid = $1 ORDER BY key";
    return this.read<StoredState>(text, [uid]);
  }

  /** Skips blobs of users whose IDs cannot be recovered. Such users have no sessions, so nothing refers to these blobs. */
  async *blobs(): AsyncGenerator<StoredBlob> {
    const text = "SELECT user_id, agent_id, sha256 FROM skein.blobs ORDER BY user_id, agent_id, sha256";
    for (const { user_id, agent_id, sha256 } of await this.read<Record<string, string>>(text)) {
      const userId = await this.#userOf(user_id ?? "");
      if (userId !== undefined) yield { userId, agentId: agent_id ?? "", sha256: sha256 ?? "" };
    }
  }

  async countBlobs(): Promise<number> {
    const [row] = await this.read<{ count: number }>("SELECT count(*) AS count FROM skein.blobs");
    return row?.count ?? 0;
  }

  async blob({ userId, agentId, sha256 }: StoredBlob): Promise<Uint8Array | null> {
    const text = "SELECT bytes FROM skein.blobs WHERE user_id = $1 AND agent_id = $2 AND sha256 = $3";
    const [row] = await this.read<{ bytes: Buffer }>(text, [userKey(userId), agentId, sha256]);
    return row?.bytes ?? null;
  }

  async columns({ name }: LedgerTable): Promise<string[]> {
    const text = `SELECT column_name AS name FROM information_schema.columns
      WHERE table_schema = 'skein' AND table_name = $1 AND column_name <> 'tenant'`;
    return (await this.read<{ name: string }>(text, [name])).map((row) => row.name).toSorted();
  }

  async countRows({ name }: LedgerTable): Promise<number> {
    return Number((await this.#queryRow(`SELECT count(*) AS count FROM ${name}`))?.count ?? 0);
  }

  rowsAfter(
    table: LedgerTable,
    columns: readonly string[],
    after: SqlRow | null,
    limit: number,
  ): Promise<SqlRow[]> {
    const values = after === null ? [] : table.key.map((column) => after[column] as SqlValue);
    const text = pageQuery(table, columns, after === null, false);
    return this.#run((sql) => driveScript(sql, queryRows(text, ...values, limit)));
  }

  async lastRow(table: LedgerTable, columns: readonly string[]): Promise<SqlRow | null> {
    return (await this.#queryRow(lastRowQuery(table, columns))) ?? null;
  }

  async lastNumber({ name }: LedgerTable): Promise<number> {
    const text = "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, 'seq')::regclass) AS last";
    const [row] = await this.read<{ last: number | null }>(text, [`skein.${name}`]);
    return row?.last ?? 0;
  }

  async facts(): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#run((sql) => driveScript(sql, queryRows("SELECT name, value FROM facts")));
    const facts = rows.map(({ name, value }) => [String(name), String(value)] as const);
    return new Map(facts.filter(([name]) => isSharedFact(name)));
  }

  async close(): Promise<void> {
    await this.#lock?.end();
    await this.database.close();
  }

  protected read<Row>(text: string, values: readonly (string | number)[] = []): Promise<Row[]> {
    return this.database.read<Row>(everyUser, text, values);
  }

  #run<T>(script: (sql: Sql) => Promise<T>): Promise<T> {
    return this.database.transact(everyUser, script, { isRepeatable: true });
  }

  #queryRow(text: string): Promise<SqlRow | undefined> {
    return this.#run((sql) => driveScript(sql, queryRow(text)));
  }

  /**
   * Returns the header in the format of a session file, with the initial metadata. Fields that were changed later are
   * left out, because the entries that record the changes contain them.
   */
  async #withMeta(
    { uid, userId, agentId, key }: Pick<StoredSession, "uid" | "userId" | "agentId" | "key">,
    header: SessionHeader,
    current: SessionMeta,
  ): Promise<SessionHeader> {
    const text = `SELECT line FROM skein.entries WHERE session_uid = $1 AND strpos(line, '"skein.meta"') > 0`;
    const rows = await this.read<{ line: string }>(text, [uid]);
    const own = parseLines(rows.map(({ line }) => line)).filter(
      (entry) => entry.type === "custom" && (entry.data as { of?: unknown } | undefined)?.of === uid,
    );
    const changed = new Set(own.flatMap(changedIn));
    const meta = Object.fromEntries(Object.entries(current).filter(([field]) => !changed.has(field)));
    const user = userId === null ? {} : { user: userId };
    return { ...header, skein: { ...header.skein, key, uid, agent: agentId, ...user, meta } };
  }

  async #userOf(key: string): Promise<string | null | undefined> {
    if (key === userKey(null)) return null;
    if (key === userKey(key)) return key;
    const known = this.#users.get(key);
    if (known !== undefined) return known;
    const text = "SELECT detail FROM skein.sessions WHERE user_id = $1 LIMIT 1";
    const [row] = await this.read<{ detail: string }>(text, [key]);
    if (row === undefined) return undefined;
    const userId = userOf(row.detail, key);
    this.#users.set(key, userId);
    return userId;
  }
}
