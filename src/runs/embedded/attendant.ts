import { SkeinError } from "../../core/errors.ts";
import { childRunId, deliveryId } from "../../core/hashed-id.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { RemovedEntries, TellLater, WorkAttendant } from "../contract.ts";
import { openStates } from "../states.ts";
import type { Books } from "./books.ts";
import { bury, isUnread } from "./dead-letter.ts";
import { endRun } from "./ending.ts";
import { checkLoopTurn } from "./loop-turns.ts";
import { refreshQueue } from "./queue.ts";
import { redactWork } from "./redacting.ts";
import type { RunRow } from "./rows.ts";
import { forgetRoot, forgetRun } from "./sweeping.ts";
import { unbind } from "./threads.ts";

/** The runs of a session go with it, in the store's own transaction. */
export class RunAttendant implements WorkAttendant {
  readonly #books: Books;

  constructor(books: Books) {
    this.#books = books;
  }

  reset(old: SessionRef, fresh: SessionRef, isOwner: boolean): TellLater {
    if (!isOwner) this.#checkIdle(old, "reset");
    return this.#together(() => {
      const reason = "Its session was reset while it slept.";
      for (const row of this.#open(old.uid, "sleeping")) this.#abort(row, reason);
      // A run whose input stands in the old one belongs there; it does not go on in another.
      for (const row of this.#open(old.uid, "queued")) {
        if (!row.isWritten) this.#move(row, fresh);
        else this.#abort(row, "Its session was reset before it could go on.");
      }
      for (const row of this.#open(old.uid, "running")) this.#move(row, fresh);
      refreshQueue(this.#books, old.uid);
      refreshQueue(this.#books, fresh.uid);
    });
  }

  remove(session: SessionRef, parent: SessionRef | null): TellLater {
    const books = this.#books;
    books.leaving = session.uid;
    try {
      return this.#together(() => this.#remove(session, parent));
    } finally {
      books.leaving = null;
    }
  }

  #remove(session: SessionRef, parent: SessionRef | null): void {
    for (const row of this.#open(session.uid, "queued")) {
      const isTheirs = isUnread(row);
      if (isTheirs && parent !== null && parent.uid !== session.uid) this.#move(row, parent);
      else if (isTheirs) bury(this.#books, row);
    }
    const reason = "Its session was removed.";
    for (const state of openStates) {
      for (const row of this.#open(session.uid, state)) this.#abort(row, reason);
    }
    refreshQueue(this.#books, session.uid);
    if (parent !== null) refreshQueue(this.#books, parent.uid);
  }

  branch(session: SessionRef, act: "reset" | "moved to another branch" = "moved to another branch"): void {
    this.#checkIdle(session, act);
  }

  redact(removed: RemovedEntries): void {
    redactWork(this.#books, removed);
  }

  async discardFiles(of: readonly string[] | RemovedEntries): Promise<void> {
    if (!("entryIds" in of)) return this.#discard("uid", of);
    // An entry of a child's session is its input; one of a parent's session holds the call that spawned the child.
    const called = of.uids.flatMap((uid) => this.#childrenOf(uid, of));
    await this.#discard("run_id", called);
    await this.#discard("entry_id", [...of.entryIds]);
  }

  /** The first runs of the children that the calls in these entries spawned. */
  #childrenOf(uid: string, { entryIds, toolCallIds }: RemovedEntries): string[] {
    const named = this.#books.all("SELECT DISTINCT session_id FROM runs WHERE uid = ?", uid);
    return named.flatMap(({ session_id }) =>
      [...entryIds].flatMap((entryId) =>
        [...toolCallIds].map((callId) => childRunId(uid, deliveryId(String(session_id), entryId, callId))),
      ),
    );
  }

  async #discard(column: "uid" | "run_id" | "entry_id", values: readonly string[]): Promise<void> {
    const sql = `SELECT attachments, session_id FROM children JOIN runs USING (run_id)
      WHERE ${column} IN (SELECT value FROM json_each(?)) AND attachments IS NOT NULL AND tidied_at IS NULL`;
    for (const { attachments, session_id } of this.#books.all(sql, JSON.stringify(values)))
      await this.#books.options.removeHanded(String(attachments), String(session_id));
  }

  hasRuns(uid: string): boolean {
    return this.#books.get("SELECT 1 FROM runs WHERE uid = ? LIMIT 1", uid) !== undefined;
  }

  isBlobInUse(sha256: string): boolean {
    const sql = `SELECT 1 FROM runs JOIN run_inputs USING (seq)
      WHERE ended_at IS NULL AND instr(message, ?) > 0 LIMIT 1`;
    return this.#books.get(sql, sha256) !== undefined;
  }

  purge(uids: readonly string[], userId?: string): void {
    const roots = new Set<string>();
    for (const uid of uids) {
      for (const { root } of this.#books.all("SELECT DISTINCT root FROM runs WHERE uid = ?", uid))
        roots.add(String(root));
      const keys = this.#books.all("SELECT DISTINCT user, key FROM runs WHERE uid = ?", uid);
      for (const { user, key } of keys) unbind(this.#books, user === "" ? null : String(user), String(key));
      for (const { seq } of this.#books.all("SELECT seq FROM runs WHERE uid = ?", uid)) {
        forgetRun(this.#books, Number(seq));
      }
      this.#books.run("DELETE FROM outbox WHERE uid = ?", uid);
      this.#books.run("DELETE FROM turns WHERE uid = ?", uid);
      this.#books.run("DELETE FROM loop_turns WHERE uid = ?", uid);
      refreshQueue(this.#books, uid);
    }
    if (userId !== undefined) this.#purgeUser(userId);
    for (const root of roots) forgetRoot(this.#books, root);
    // Whose turn it was is a user's name too.
    this.#books.run("DELETE FROM ready_users WHERE count = 0");
  }

  /** What is left under the user's name, of sessions that were purged before and of runs that lost theirs. */
  #purgeUser(userId: string): void {
    for (const { seq } of this.#books.all("SELECT seq FROM runs WHERE user = ?", userId))
      forgetRun(this.#books, Number(seq));
    for (const table of [
      "outbox",
      "threads",
      "session_apps",
      "children",
      "approvals",
      "ready",
      "ready_users",
    ])
      this.#books.run(`DELETE FROM ${table} WHERE user = ?`, userId);
  }

  #together(act: () => void): TellLater {
    return this.#books.collect(act).tell;
  }

  #open(uid: string, state: string): RunRow[] {
    return this.#books.rows("uid = ? AND state = ? AND ended_at IS NULL ORDER BY seq", uid, state);
  }

  #checkIdle(session: SessionRef, what: string): void {
    const { uid, sessionId } = session;
    checkLoopTurn(this.#books, session);
    const [busy] = this.#books.rows("uid = ? AND state IN ('running', 'waiting') LIMIT 1", uid);
    if (busy === undefined) return;
    throw new SkeinError("conflict", {
      problem: `Session ${sessionId} cannot be ${what} while run ${busy.runId} is ${busy.state}`,
      advice: "Wait until it has ended, or abort it",
    });
  }

  #abort(row: RunRow, error: string): void {
    const now = this.#books.row(row.runId);
    if (now !== null) endRun(this.#books, now, { state: "aborted", code: "aborted", error });
  }

  #move(row: RunRow, to: SessionRef): void {
    this.#books.run(
      "UPDATE runs SET uid = ?, agent = ?, key = ?, session_id = ?, kept_for = NULL WHERE run_id = ?",
      to.uid,
      to.agentId,
      to.key,
      to.sessionId,
      row.runId,
    );
    if (row.state === "queued")
      this.#books.note("run.queued", to, row.runId, { lane: row.lane, kind: row.kind });
  }
}
