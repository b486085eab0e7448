import type { Entry } from "../../core/entries.ts";
import { isBookkeeping } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { kindOf, parseKey } from "../../core/keys.ts";
import type { SqlRow } from "../../core/script.ts";
import { changeRows, queryRow } from "../../core/script.ts";
import type { Json } from "../contract.ts";
import { addToDigest, emptyDigest } from "../digest.ts";
import type {
  LedgerTable,
  MigrationTarget,
  StoredBlob,
  StoredSession,
  StoredState,
} from "../migrate/contract.ts";
import {
  deleteChannelFacts,
  finishedFact,
  ledgerTables,
  putFact,
  unfinishedFact,
} from "../migrate/ledger-tables.ts";
import { applyMetaEntry, metaOf } from "../session-meta.ts";
import { blobTable } from "./blobs.ts";
import type { Sql } from "./database.ts";
import { everyUser } from "./database.ts";
import { driveScript } from "./drive-script.ts";
import type { PlacedEntry } from "./entry-rows.ts";
import { insertEntries, parseLines } from "./entry-rows.ts";
import { LogPlaces } from "./log-places.ts";
import { encodeText, userKey } from "./lookup-text.ts";
import { DatabaseSource } from "./migration-source.ts";
import type { SessionRow } from "./session-row.ts";
import { insertSession } from "./session-writes.ts";

/** Fills an empty database, for all users. The role must own the tables. */
export class DatabaseTarget extends DatabaseSource implements MigrationTarget {
  async begin(source: string, name: string): Promise<boolean> {
    const content = await this.#findContent();
    return this.database.transact(
      everyUser,
      async (sql) => {
        const text = "SELECT value FROM facts WHERE name = ?";
        const fact = await driveScript(sql, queryRow(text, unfinishedFact));
        if (fact?.value === source) return true;
        if (fact !== undefined) throw this.#refuse("contains an unfinished migration from another store");
        const done = await driveScript(sql, queryRow(text, finishedFact));
        if (content !== null && done?.value === source) throw this.#refuseRepeated(name);
        if (content !== null) throw this.#refuse(`is not empty (${content})`);
        await driveScript(sql, putFact(unfinishedFact, source));
        return false;
      },
      { locks: "gateway", isRepeatable: true },
    );
  }

  async putSession(
    session: StoredSession,
    lines: () => AsyncIterable<readonly string[]>,
    states: readonly StoredState[],
  ): Promise<void> {
    const { uid, userId } = session;
    await this.database.transact(userId, async (sql) => {
      const log = new LogFold(session);
      for await (const some of lines()) await insertEntries(sql, session, log.add(some));
      await insertSession(sql, log.row());
      const text = "INSERT INTO skein.state_values (session_uid, key, user_id, value, version)";
      for (const { key, value, version } of states)
        await sql(`${text} VALUES ($1, $2, $3, $4, $5)`, [uid, key, userKey(userId), value, version]);
    });
  }

  async removeSession({ uid, userId }: StoredSession): Promise<void> {
    await this.database.transact(userId, async (sql) => {
      for (const table of ["entries", "entry_search", "state_values"])
        await sql(`DELETE FROM skein.${table} WHERE session_uid = $1`, [uid]);
      await sql("DELETE FROM skein.sessions WHERE uid = $1", [uid]);
    });
  }

  putBlob({ userId, agentId, sha256 }: StoredBlob, bytes: Uint8Array): Promise<void> {
    return blobTable(this.database).put({ userId, agentId }, sha256, bytes);
  }

  async insertRows(
    { name, tenant }: LedgerTable,
    columns: readonly string[],
    rows: readonly SqlRow[],
  ): Promise<void> {
    const names = [...columns, ...(tenant === undefined ? [] : ["tenant"])];
    const list = names.map((column) => `"${column}"`).join(", ");
    const encoded = rows.map((row) =>
      Object.fromEntries(names.map((column) => [column, encode(row[column])])),
    );
    await this.#change(
      `INSERT INTO skein.${name} (${list}) OVERRIDING SYSTEM VALUE
       SELECT ${list} FROM json_populate_recordset(NULL::skein.${name}, $1)`,
      [JSON.stringify(encoded)],
    );
  }

  deleteRows({ name }: LedgerTable): Promise<void> {
    return this.#change(`DELETE FROM skein.${name}`);
  }

  async setLastNumber({ name }: LedgerTable, number: number): Promise<void> {
    const text = "SELECT setval(pg_get_serial_sequence($1, 'seq')::regclass, $2)";
    if (number > 0) await this.#change(text, [`skein.${name}`, number]);
  }

  async putFacts(facts: ReadonlyMap<string, string>): Promise<void> {
    await this.database.transact(
      everyUser,
      async (sql) => {
        await driveScript(sql, changeRows(deleteChannelFacts));
        for (const [name, value] of facts) await driveScript(sql, putFact(name, value));
      },
      { isRepeatable: true },
    );
  }

  /** Updates the statistics that the query planner needs for the new content, then marks the migration as finished. */
  async finish(): Promise<void> {
    await this.#change("ANALYZE skein.sessions, skein.entries, skein.entry_search, skein.runs");
    await this.#change("DELETE FROM skein.facts WHERE name = $1", [finishedFact]);
    const text = "UPDATE skein.facts SET name = $1 WHERE name = $2";
    await this.#change(text, [finishedFact, unfinishedFact]);
  }

  async #change(text: string, values: readonly (string | number)[] = []): Promise<void> {
    await this.database.transact(everyUser, (sql: Sql) => sql(text, values));
  }

  /** Returns what the database contains, for example `sessions: 3`, or `null` if it is empty. */
  async #findContent(): Promise<string | null> {
    const counts: [name: string, count: number][] = [
      ["sessions", await this.countSessions()],
      ["blobs", await this.countBlobs()],
    ];
    for (const table of ledgerTables) counts.push([table.name, await this.countRows(table)]);
    const found = counts.filter(([, count]) => count > 0).map(([name, count]) => `${name}: ${count}`);
    return found.length === 0 ? null : found.join(", ");
  }

  #refuseRepeated(source: string): SkeinError {
    const problem = `The migration from ${source} to ${this.name} has already finished`;
    const advice =
      "Nothing was changed. Start a gateway on the database. To copy again, name an empty database";
    return new SkeinError("conflict", { problem, advice });
  }

  #refuse(problem: string): SkeinError {
    const advice = "Nothing was changed. Name an empty database, or drop the skein schema in this one";
    return new SkeinError("conflict", { problem: `${this.name} ${problem}`, advice });
  }
}

function encode(value: unknown): Json {
  return typeof value === "string" ? encodeText(value) : ((value ?? null) as Json);
}

/** Computes a session's row from its lines, in the order of the log. */
class LogFold {
  readonly #session: StoredSession;
  readonly #places = new LogPlaces();
  #versioned: ReturnType<typeof metaOf>;
  #digest = emptyDigest;
  #name: string | null = null;
  #saidAt = 0;

  constructor(session: StoredSession) {
    const { header } = session;
    this.#session = session;
    this.#versioned = metaOf(header, []);
    this.#digest = { ...emptyDigest, bytes: Buffer.byteLength(JSON.stringify(header)) + 1 };
  }

  add(lines: readonly string[]): PlacedEntry[] {
    const entries = parseLines(lines);
    if (entries.length !== lines.length)
      throw new Error(`session ${this.#session.sessionId} contains a line that is not an entry`);
    return entries.map((entry, index) => {
      const line = lines[index] ?? "";
      this.#addEntry(entry, line);
      return { entry, line, place: this.#places.add(entry) };
    });
  }

  #addEntry(entry: Entry, line: string): void {
    const { createdAt, header } = this.#session;
    const bytes = this.#digest.bytes + Buffer.byteLength(line) + 1;
    this.#digest = { ...addToDigest(this.#digest, entry, createdAt), bytes };
    this.#versioned = applyMetaEntry(this.#versioned, header, entry);
    if (entry.type === "session_info") this.#name = entry.name?.trim() || null;
    if (!isBookkeeping(entry)) this.#saidAt = Date.parse(entry.timestamp) || this.#saidAt;
  }

  row(): SessionRow {
    const { uid, userId, agentId, key, sessionId, createdAt, removedAt, header } = this.#session;
    const { tip, tipId, leafId, isOdd } = this.#places;
    const { meta, version } = this.#versioned;
    return {
      session: {
        ...{ uid, userId, agentId, key, kind: kindOf(parseKey(key)), sessionId, cwd: header.cwd ?? "" },
        ...{ version, meta, name: this.#name, createdAt, leafId, digest: this.#digest },
        updatedAt: Math.max(createdAt, this.#saidAt),
      },
      ...{ header, removedAt, revision: 1, tip, tipId, isOdd, bytes: this.#digest.bytes },
      ...{ holderRun: null, fence: 0 },
    };
  }
}
