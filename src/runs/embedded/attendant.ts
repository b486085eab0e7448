import { SkeinError } from "../../core/errors.ts";
import type { RunSession, TellLater, WorkAttendant } from "../contract.ts";
import { openStates } from "../states.ts";
import type { Books } from "./books.ts";
import { bury, isUnread } from "./dead-letter.ts";
import { endRun } from "./ending.ts";
import { refreshQueue } from "./queue.ts";
import type { RunRow } from "./rows.ts";
import { forgetRun } from "./sweeping.ts";
import { unbind } from "./threads.ts";

/** The runs of a session go with it, in the store's own transaction. */
export class RunAttendant implements WorkAttendant {
  readonly #books: Books;

  constructor(books: Books) {
    this.#books = books;
  }

  reset(old: RunSession, fresh: RunSession, isOwner: boolean): TellLater {
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

  remove(session: RunSession, parent: RunSession | null): TellLater {
    const books = this.#books;
    books.leaving = session.uid;
    try {
      return this.#together(() => this.#remove(session, parent));
    } finally {
      books.leaving = null;
    }
  }

  #remove(session: RunSession, parent: RunSession | null): void {
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

  branch(session: RunSession): void {
    this.#checkIdle(session, "moved to another branch");
  }

  purge(uids: readonly string[]): void {
    for (const uid of uids) {
      const keys = this.#books.all("SELECT DISTINCT user, key FROM runs WHERE uid = ?", uid);
      for (const { user, key } of keys) unbind(this.#books, user === "" ? null : String(user), String(key));
      for (const { seq } of this.#books.all("SELECT seq FROM runs WHERE uid = ?", uid)) {
        forgetRun(this.#books, Number(seq));
      }
      this.#books.run("DELETE FROM outbox WHERE uid = ?", uid);
      this.#books.run("DELETE FROM turns WHERE uid = ?", uid);
      refreshQueue(this.#books, uid);
    }
    // Whose turn it was is a user's name too.
    this.#books.run("DELETE FROM ready_users WHERE count = 0");
  }

  #together(act: () => void): TellLater {
    return this.#books.collect(act).tell;
  }

  #open(uid: string, state: string): RunRow[] {
    return this.#books.rows("uid = ? AND state = ? AND ended_at IS NULL ORDER BY seq", uid, state);
  }

  #checkIdle({ uid, sessionId }: RunSession, what: string): void {
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

  #move(row: RunRow, to: RunSession): void {
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
