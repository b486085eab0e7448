import type { LedgerPart } from "../core/migrate-part.ts";
import { migratePart } from "../core/migrate-part.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { Ledger } from "../runs/contract.ts";

/** A session that is being created. The store might not have chosen its uid yet. */
export interface CreatedSession {
  readonly userId: string | null;
  readonly agentId: string | null;
  readonly sessionId: string;
}

/** A change that affects both a store and the runs of its sessions. */
type ExternalChange =
  | ({ readonly act: "create" } & CreatedSession)
  | {
      readonly act: "reset";
      readonly session: SessionRef;
      readonly freshId: string;
      readonly isOwner: boolean;
    }
  | { readonly act: "remove"; readonly session: SessionRef; readonly parentKey: string | null }
  | { readonly act: "purge"; readonly session: SessionRef }
  | { readonly act: "purge_user"; readonly userId: string; readonly uids: readonly string[] };

/** A change whose effects on runs have not been applied to the ledger yet. */
export interface PendingChange {
  readonly id: number;
  readonly change: ExternalChange;
  /**
   * The process that is making the change, or `null` if that process gave up. In that case, it is unknown whether the
   * change happened.
   */
  readonly owner: string | null;
  /** `true` if another process started the change, or if the process that started it gave up. */
  readonly isLeft: boolean;
}

const part: LedgerPart = {
  fact: "schema.external",
  about: "external stores",
  steps: [
    [
      // Records which session has which key, as last reported by the stores. Runs read this inside transactions, in
      // which a store cannot be called.
      `CREATE TABLE external_sessions (
       uid TEXT PRIMARY KEY, user TEXT NOT NULL, agent TEXT NOT NULL, key TEXT NOT NULL, session_id TEXT NOT NULL
     ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX external_sessions_key ON external_sessions (user, key)",
      "CREATE INDEX external_sessions_id ON external_sessions (user, session_id COLLATE NOCASE)",
      `CREATE TABLE external_changes (
       id INTEGER PRIMARY KEY AUTOINCREMENT, store TEXT NOT NULL, user TEXT NOT NULL, session_id TEXT NOT NULL,
       owner TEXT, change TEXT NOT NULL) STRICT`,
    ],
  ],
};

/** Access to the tables for external stores in `work.db`. */
export class ExternalChanges {
  readonly #ledger: Ledger;
  readonly #owner: string;
  readonly #store: string;

  constructor(ledger: Ledger, owner: string, store: string | null) {
    this.#ledger = ledger;
    this.#owner = owner;
    this.#store = store ?? "";
    migratePart(ledger, part);
  }

  /**
   * Returns a session's uid as used outside its store. The uid is prefixed because two stores might use the same uids.
   */
  outerUid(uid: string): string {
    return this.#store === "" ? uid : `${this.#store}/${uid}`;
  }

  innerUid(uid: string): string {
    return this.#store !== "" && uid.startsWith(`${this.#store}/`) ? uid.slice(this.#store.length + 1) : uid;
  }

  change<T>(act: () => T): T {
    return this.#ledger.exclusively(act);
  }

  /** Caches a session's identity as reported by its store. The store can be asked again, so the write is not synced. */
  keep({ uid, userId, agentId, key, sessionId }: SessionRef): void {
    const sql = "SELECT 1 FROM external_sessions WHERE uid = ? AND user = ? AND key = ? AND session_id = ?";
    if (this.#ledger.sql(sql).get(uid, userId ?? "", key, sessionId) !== undefined) return;
    this.#ledger.unsynced(() =>
      this.#ledger.exclusively(() => {
        this.#ledger.run("DELETE FROM external_sessions WHERE user = ? AND key = ?", userId ?? "", key);
        this.#ledger.run(
          "INSERT OR REPLACE INTO external_sessions (uid, user, agent, key, session_id) VALUES (?, ?, ?, ?, ?)",
          uid,
          userId ?? "",
          agentId,
          key,
          sessionId,
        );
      }),
    );
  }

  drop(uids: readonly string[]): void {
    for (const uid of uids) this.#ledger.run("DELETE FROM external_sessions WHERE uid = ?", uid);
  }

  forgetKey(userId: string | null, key: string): void {
    const where = "FROM external_sessions WHERE user = ? AND key = ?";
    if (this.#ledger.sql(`SELECT 1 ${where}`).get(userId ?? "", key) === undefined) return;
    this.#ledger.unsynced(() => this.#ledger.run(`DELETE ${where}`, userId ?? "", key));
  }

  find(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null {
    const [column, name] = "key" in by ? ["key", by.key] : ["session_id", by.sessionId];
    const collation = column === "key" ? "" : "COLLATE NOCASE";
    const sql = `SELECT uid, user, agent, key, session_id FROM external_sessions
      WHERE user = ? AND ${column} = ? ${collation}`;
    const row = this.#ledger.sql(sql).get(userId ?? "", name);
    if (row === undefined) return null;
    return {
      uid: String(row.uid),
      userId,
      agentId: String(row.agent),
      key: String(row.key),
      sessionId: String(row.session_id),
    };
  }

  uidsOf(userId: string): string[] {
    const sql = "SELECT uid FROM external_sessions WHERE user = ?";
    return this.#ledger
      .sql(sql)
      .all(userId)
      .map(({ uid }) => String(uid));
  }

  users(): (string | null)[] {
    return this.#ledger
      .sql("SELECT DISTINCT user FROM external_sessions")
      .all()
      .map(({ user }) => (user === "" ? null : String(user)));
  }

  /** Records a change before the store is called. */
  note(change: ExternalChange): PendingChange {
    const { userId, sessionId } = placeOf(change);
    return this.#ledger.exclusively(() => {
      this.#ledger.run(
        "INSERT INTO external_changes (store, user, session_id, owner, change) VALUES (?, ?, ?, ?, ?)",
        this.#store,
        userId ?? "",
        sessionId.toLowerCase(),
        this.#owner,
        JSON.stringify(change),
      );
      const row = this.#ledger.sql("SELECT last_insert_rowid() AS id").get();
      return { id: Number(row?.id), change, owner: this.#owner, isLeft: false };
    });
  }

  /**
   * Marks a change whose outcome is unknown because the store's response was lost. The next caller checks whether the
   * change happened.
   */
  leave({ id }: PendingChange): void {
    this.#ledger.run("UPDATE external_changes SET owner = NULL WHERE id = ?", id);
  }

  forget({ id }: PendingChange): void {
    this.#ledger.run("DELETE FROM external_changes WHERE id = ?", id);
  }

  /** Returns pending changes for one session or the whole store, oldest first. */
  pending(userId?: string | null, sessionId?: string): PendingChange[] {
    const sql = "SELECT id, owner, change FROM external_changes WHERE store = ?";
    const rows =
      sessionId === undefined
        ? this.#ledger.sql(`${sql} ORDER BY id`).all(this.#store)
        : this.#ledger
            .sql(`${sql} AND user = ? AND session_id = ? ORDER BY id`)
            .all(this.#store, userId ?? "", sessionId.toLowerCase());
    return rows.map(({ id, owner, change }) => ({
      id: Number(id),
      change: JSON.parse(String(change)) as ExternalChange,
      owner: owner === null ? null : String(owner),
      isLeft: owner !== this.#owner,
    }));
  }
}

function placeOf(change: ExternalChange): { readonly userId: string | null; readonly sessionId: string } {
  if (change.act === "create") return change;
  return change.act === "purge_user" ? { userId: change.userId, sessionId: "" } : change.session;
}

/** Whether `work.db` contains only an external store's runs. */
export function isOfExternalStore(ledger: Ledger): boolean {
  return ledger.sql("SELECT 1 FROM facts WHERE name = 'external'").get() !== undefined;
}

/** Claims a new `work.db` for an external store's runs. Returns `false` if it belongs to a session folder. */
export function beginExternal(ledger: Ledger, time: number): boolean {
  return ledger.exclusively(() => {
    if (isOfExternalStore(ledger)) return true;
    if (ledger.sql("SELECT 1 FROM facts WHERE name = 'begun'").get() !== undefined) return false;
    for (const name of ["begun", "external"])
      ledger.run("INSERT INTO facts (name, value) VALUES (?, ?)", name, String(time));
    return true;
  });
}
