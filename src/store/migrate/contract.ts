import type { SessionHeader } from "../../core/entries.ts";
import type { SqlRow } from "../../core/script.ts";
import type { SessionMeta } from "../contract.ts";

/** Ports for copying everything from one kind of store to another. Folders and PostgreSQL databases implement both. */

/** A session without its entries. */
export interface StoredSession {
  readonly uid: string;
  /** `null` for the unnamed user. */
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly createdAt: number;
  /** When the session was moved to the trash, or `null` if it is not there. */
  readonly removedAt: number | null;
  /** The header in the format of a session file, including the initial metadata. */
  readonly header: SessionHeader;
  /** The current metadata, if the store also keeps it outside the log. */
  readonly current?: { readonly meta: SessionMeta; readonly version: number };
}

/** A state module's value, as JSON. */
export interface StoredState {
  readonly key: string;
  readonly version: number;
  readonly value: string;
}

export interface StoredBlob {
  readonly userId: string | null;
  readonly agentId: string;
  readonly sha256: string;
  /** The user's folder, if the store has one. */
  readonly home?: string;
}

/** A table that both kinds of stores have, with the columns of its primary key. */
export interface LedgerTable {
  readonly name: string;
  readonly key: readonly string[];
  /** Whether the first column of the key is generated, in which case the last generated value must also be copied. */
  readonly isNumbered?: true;
  /** The SQLite query for the user of a row. Absent if the row contains the user ID. */
  readonly tenant?: string;
}

export interface MigrationSource {
  /** The address without secrets. */
  readonly name: string;
  /** Returns an ID that is unique to this store and never changes. */
  identify(): Promise<string>;
  /** Throws if the store cannot be moved now, for example because a process uses it. */
  checkIdle(): Promise<void>;
  /** Returns the number of runs that have not ended, by state. */
  openRuns(): Promise<ReadonlyMap<string, number>>;
  /** Returns the same value only if no session was changed in between. */
  mark(): Promise<string>;
  /** Returns uids in byte order. */
  uidsAfter(uid: string, limit: number): Promise<readonly string[]>;
  countSessions(): Promise<number>;
  session(uid: string): Promise<StoredSession | null>;
  /** Yields the lines of the entries in the order of the log, without the header. */
  lines(session: StoredSession): AsyncIterable<readonly string[]>;
  /** Returns the values in the byte order of their keys. */
  states(session: StoredSession): Promise<readonly StoredState[]>;
  blobs(): AsyncIterable<StoredBlob>;
  countBlobs(): Promise<number>;
  /** Returns `null` if there is no such blob. */
  blob(blob: StoredBlob): Promise<Uint8Array | null>;
  /** Returns the names of a table's columns, sorted. Empty if the table does not exist. */
  columns(table: LedgerTable): Promise<readonly string[]>;
  countRows(table: LedgerTable): Promise<number>;
  /** Returns rows in the order of the key. Starts at the first row if `after` is `null`. */
  rowsAfter(
    table: LedgerTable,
    columns: readonly string[],
    after: SqlRow | null,
    limit: number,
  ): Promise<readonly SqlRow[]>;
  /** Returns the last row in the order of the key, or `null`. */
  lastRow(table: LedgerTable, columns: readonly string[]): Promise<SqlRow | null>;
  /** Returns the last generated number. */
  lastNumber(table: LedgerTable): Promise<number>;
  /** Returns facts that are not specific to this kind of store, by name. */
  facts(): Promise<ReadonlyMap<string, string>>;
  close(): Promise<void>;
}

export interface MigrationTarget extends MigrationSource {
  /**
   * Claims an empty store for a migration. Returns `true` if an earlier attempt from the same source is unfinished.
   * Throws `conflict` if the store contains anything else. `name` is the address of the source without secrets.
   */
  begin(source: string, name: string): Promise<boolean>;
  /**
   * Stores a session with its entries and state. `session` does not return it until it is complete. `lines` is called
   * again if an attempt has to be repeated.
   */
  putSession(
    session: StoredSession,
    lines: () => AsyncIterable<readonly string[]>,
    states: readonly StoredState[],
  ): Promise<void>;
  removeSession(session: StoredSession): Promise<void>;
  putBlob(blob: StoredBlob, bytes: Uint8Array): Promise<void>;
  insertRows(table: LedgerTable, columns: readonly string[], rows: readonly SqlRow[]): Promise<void>;
  deleteRows(table: LedgerTable): Promise<void>;
  setLastNumber(table: LedgerTable, number: number): Promise<void>;
  /** Stores facts, and replaces the state of channels. */
  putFacts(facts: ReadonlyMap<string, string>): Promise<void>;
  /** Makes the store usable. */
  finish(): Promise<void>;
}
