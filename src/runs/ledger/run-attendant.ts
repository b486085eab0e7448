import { SkeinError } from "../../core/errors.ts";
import { childRunId, deliveryId } from "../../core/hashed-id.ts";
import { isRecord } from "../../core/is-record.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { redactedText, redactMessage } from "../../core/tombstone.ts";
import type { AfterCommit, Outcome, RemovedEntries, RunOptions, Sequel, WorkAttendant } from "../contract.ts";
import { openStates } from "../states.ts";
import { unbindThreads } from "./children.ts";
import { checkLoopTurn } from "./claim-eligibility.ts";
import { endRun } from "./end-run.ts";
import { isUnreadDelivery, putDeadLetter } from "./outbox.ts";
import { refreshQueue } from "./ready-queue.ts";
import { forgetRoot, forgetRun } from "./recover-runs.ts";
import type { RunLedger, RunRow } from "./run-ledger.ts";

/** Changes a session's runs together with the session itself, in the store's transaction. */
export class RunAttendant implements WorkAttendant {
  readonly #ledger: RunLedger;

  constructor(ledger: RunLedger) {
    this.#ledger = ledger;
  }

  reset(old: SessionRef, fresh: SessionRef, isOwner: boolean): AfterCommit {
    if (!isOwner) this.#checkIdle(old, "reset");
    return this.#collect(() => {
      const reason = "Its session was reset while the run was asleep.";
      for (const row of this.#open(old.uid, "sleeping")) this.#abort(row, reason);
      // A run whose input has been written to the old session cannot continue in the new one.
      for (const row of this.#open(old.uid, "queued")) {
        if (!row.isWritten) this.#move(row, fresh);
        else this.#abort(row, "Its session was reset before the run could continue.");
      }
      for (const row of this.#open(old.uid, "running")) this.#move(row, fresh);
      refreshQueue(this.#ledger, old.uid);
      refreshQueue(this.#ledger, fresh.uid);
    });
  }

  remove(session: SessionRef, parent: SessionRef | null): AfterCommit {
    const ledger = this.#ledger;
    ledger.leaving = session.uid;
    try {
      return this.#collect(() => this.#remove(session, parent));
    } finally {
      ledger.leaving = null;
    }
  }

  #remove(session: SessionRef, parent: SessionRef | null): void {
    for (const row of this.#open(session.uid, "queued")) {
      if (!isUnreadDelivery(row)) continue;
      if (parent !== null && parent.uid !== session.uid) this.#move(row, parent);
      else putDeadLetter(this.#ledger, row);
    }
    const reason = "Its session was removed.";
    for (const state of openStates) {
      for (const row of this.#open(session.uid, state)) this.#abort(row, reason);
    }
    refreshQueue(this.#ledger, session.uid);
    if (parent !== null) refreshQueue(this.#ledger, parent.uid);
  }

  branch(session: SessionRef, act: "reset" | "moved to another branch" = "moved to another branch"): void {
    this.#checkIdle(session, act);
  }

  redact(removed: RemovedEntries): void {
    redactWork(this.#ledger, removed);
  }

  async discardFiles(of: readonly string[] | RemovedEntries): Promise<void> {
    if (!("entryIds" in of)) return this.#discard("uid", of);
    // In a child's session, the redacted entry is the child's input. In a parent's session, it contains the call that
    // spawned the child.
    const called = of.uids.flatMap((uid) => this.#childrenOf(uid, of));
    await this.#discard("run_id", called);
    await this.#discard("entry_id", [...of.entryIds]);
  }

  /** Returns the first runs of children spawned by tool calls in these entries. */
  #childrenOf(uid: string, { entryIds, toolCallIds }: RemovedEntries): string[] {
    const named = this.#ledger.all("SELECT DISTINCT session_id FROM runs WHERE uid = ?", uid);
    return named.flatMap(({ session_id }) =>
      [...entryIds].flatMap((entryId) =>
        [...toolCallIds].map((callId) => childRunId(uid, deliveryId(String(session_id), entryId, callId))),
      ),
    );
  }

  async #discard(column: "uid" | "run_id" | "entry_id", values: readonly string[]): Promise<void> {
    const sql = `SELECT attachments, session_id FROM children JOIN runs USING (run_id)
      WHERE ${column} IN (SELECT value FROM json_each(?)) AND attachments IS NOT NULL AND tidied_at IS NULL`;
    for (const { attachments, session_id } of this.#ledger.all(sql, JSON.stringify(values)))
      await this.#ledger.options.removeAttachments(String(attachments), String(session_id));
  }

  hasRuns(uid: string): boolean {
    return this.#ledger.get("SELECT 1 FROM runs WHERE uid = ? LIMIT 1", uid) !== undefined;
  }

  isBlobInUse(sha256: string): boolean {
    const sql = `SELECT 1 FROM runs JOIN run_inputs USING (seq)
      WHERE ended_at IS NULL AND instr(message, ?) > 0 LIMIT 1`;
    return this.#ledger.get(sql, sha256) !== undefined;
  }

  purge(uids: readonly string[], userId?: string): void {
    const roots = new Set<string>();
    for (const uid of uids) {
      for (const { root } of this.#ledger.all("SELECT DISTINCT root FROM runs WHERE uid = ?", uid))
        roots.add(String(root));
      const keys = this.#ledger.all("SELECT DISTINCT user, key FROM runs WHERE uid = ?", uid);
      for (const { user, key } of keys)
        unbindThreads(this.#ledger, user === "" ? null : String(user), String(key));
      for (const { seq } of this.#ledger.all("SELECT seq FROM runs WHERE uid = ?", uid)) {
        forgetRun(this.#ledger, Number(seq));
      }
      this.#ledger.run("DELETE FROM outbox WHERE uid = ?", uid);
      this.#ledger.run("DELETE FROM turns WHERE uid = ?", uid);
      this.#ledger.run("DELETE FROM loop_turns WHERE uid = ?", uid);
      refreshQueue(this.#ledger, uid);
    }
    if (userId !== undefined) this.#purgeUser(userId);
    for (const root of roots) forgetRoot(this.#ledger, root);
    // Rows without runs still contain user IDs.
    this.#ledger.run("DELETE FROM ready_users WHERE count = 0");
  }

  /** Deletes the user's remaining rows, which belong to sessions purged earlier or to runs without a session. */
  #purgeUser(userId: string): void {
    for (const { seq } of this.#ledger.all("SELECT seq FROM runs WHERE user = ?", userId))
      forgetRun(this.#ledger, Number(seq));
    const tables = ["outbox", "threads", "session_apps", "children", "approvals", "ready", "ready_users"];
    for (const table of tables) this.#ledger.run(`DELETE FROM ${table} WHERE user = ?`, userId);
  }

  #collect(act: () => void): AfterCommit {
    return this.#ledger.collectEvents(act).emit;
  }

  #open(uid: string, state: string): RunRow[] {
    return this.#ledger.rows("uid = ? AND state = ? AND ended_at IS NULL ORDER BY seq", uid, state);
  }

  #checkIdle(session: SessionRef, what: string): void {
    const { uid, sessionId } = session;
    checkLoopTurn(this.#ledger, session);
    const [busy] = this.#ledger.rows("uid = ? AND state IN ('running', 'waiting') LIMIT 1", uid);
    if (busy === undefined) return;
    throw new SkeinError("conflict", {
      problem: `Session ${sessionId} cannot be ${what} while run ${busy.runId} is ${busy.state}`,
      advice: "Wait for it to end, or abort it",
    });
  }

  #abort(row: RunRow, error: string): void {
    const now = this.#ledger.row(row.runId);
    if (now !== null) endRun(this.#ledger, now, { state: "aborted", code: "aborted", error });
  }

  #move(row: RunRow, to: SessionRef): void {
    this.#ledger.run(
      "UPDATE runs SET uid = ?, agent = ?, key = ?, session_id = ?, kept_for = NULL WHERE run_id = ?",
      to.uid,
      to.agentId,
      to.key,
      to.sessionId,
      row.runId,
    );
    if (row.state === "queued") this.#ledger.addQueued({ ...row, session: to });
  }
}

/**
 * Removes redacted text from runs and the outbox. A row that belongs to a redacted entry always loses its text. Other
 * rows of the same sessions lose theirs if they repeat redacted text. Unread input is kept because it is not an entry
 * yet.
 */
function redactWork(ledger: RunLedger, removed: RemovedEntries): void {
  for (const uid of removed.uids) {
    for (const row of ledger.rows("uid = ?", uid)) redactRun(ledger, row, removed);
    redactOutbox(ledger, uid, removed);
  }
  redactDeliveries(ledger, removed);
}

function redactRun(ledger: RunLedger, row: RunRow, removed: RemovedEntries): void {
  const { texts, entryIds } = removed;
  const isInput = entryIds.has(row.entryId);
  const isRead = row.isWritten || row.endedAt !== null;
  const { runId, seq } = row;
  const isGone = isInput || (isRead && texts.isRepeatedBy(messageText(row)));
  if (isGone) {
    const message = JSON.stringify(redactMessage({ ...row.message }));
    ledger.run("UPDATE run_inputs SET message = ? WHERE seq = ?", message, seq);
    ledger.run("UPDATE children SET task = ? WHERE run_id = ?", redactedText, runId);
    forgetClientKey(ledger, row);
  }
  const options = redactOptions(isGone ? withoutDigests(row.options) : row.options, removed, isInput);
  if (options !== row.options)
    ledger.run("UPDATE run_inputs SET options = ? WHERE seq = ?", JSON.stringify(options), seq);
  const outcome = row.outcome === null ? null : redactOutcome(row.outcome, removed);
  if (outcome !== row.outcome)
    ledger.run("UPDATE runs SET outcome = ? WHERE run_id = ?", JSON.stringify(outcome), runId);
  const partial = ledger.get("SELECT text FROM run_partials WHERE run_id = ?", runId);
  if (partial !== undefined && texts.isRepeatedBy(String(partial.text)))
    ledger.run("DELETE FROM run_partials WHERE run_id = ?", runId);
  redactApprovals(ledger, runId, removed);
}

/** Clients can derive the key from the text. Retries are still recognized by the run ID, which is a hash of the key. */
function forgetClientKey(ledger: RunLedger, { runId, kind }: RunRow): void {
  if (kind === "user" || kind === "channel")
    ledger.run("UPDATE runs SET idem = NULL WHERE run_id = ?", runId);
}

function redactApprovals(ledger: RunLedger, runId: string, { toolCallIds, texts }: RemovedEntries): void {
  const sql = "SELECT approval_id, tool_call_id, arguments FROM approvals WHERE run_id = ?";
  for (const row of ledger.all(sql, runId)) {
    const isGone = toolCallIds.has(String(row.tool_call_id)) || repeats(texts, String(row.arguments));
    if (isGone)
      ledger.run("UPDATE approvals SET arguments = '{}' WHERE approval_id = ?", String(row.approval_id));
  }
}

/** Drops a message that has not been sent. */
function redactOutbox(ledger: RunLedger, uid: string, { texts }: RemovedEntries): void {
  for (const row of ledger.all("SELECT seq, text, receipt, last_error FROM outbox WHERE uid = ?", uid)) {
    const seq = Number(row.seq);
    if (texts.isRepeatedBy(String(row.text))) {
      ledger.run("UPDATE outbox SET text = ? WHERE seq = ?", redactedText, seq);
      const drop = `UPDATE outbox SET state = 'dropped', ended_at = ?, owner = NULL, lease_until = NULL
        WHERE seq = ? AND state = 'queued'`;
      ledger.run(drop, ledger.now(), seq);
    }
    if (repeats(texts, String(row.receipt ?? "")))
      ledger.run("UPDATE outbox SET receipt = NULL WHERE seq = ?", seq);
    if (repeats(texts, String(row.last_error ?? "")))
      ledger.run("UPDATE outbox SET last_error = ? WHERE seq = ?", redactedText, seq);
  }
}

/** Unread messages from these sessions to the user's other sessions are delivered without the redacted text. */
function redactDeliveries(ledger: RunLedger, { uids, texts }: RemovedEntries): void {
  if (texts.quotable.length === 0) return;
  const users = ledger.all(
    "SELECT DISTINCT user FROM runs WHERE uid IN (SELECT value FROM json_each(?))",
    JSON.stringify(uids),
  );
  const where = `user = ? AND ended_at IS NULL AND written = 0 AND kind IN ('announce', 'send', 'ping_pong')`;
  for (const { user } of users) {
    for (const row of ledger.rows(where, String(user))) {
      if (uids.includes(row.session.uid) || !("content" in row.message)) continue;
      const { content } = row.message;
      if (typeof content !== "string") continue;
      const left = texts.quotable.reduce((text, gone) => text.replaceAll(gone, redactedText), content);
      if (left === content) continue;
      const message = JSON.stringify({ ...row.message, content: left });
      const options = JSON.stringify(withoutDigests(row.options));
      ledger.run("UPDATE run_inputs SET message = ?, options = ? WHERE seq = ?", message, options, row.seq);
    }
  }
}

/** A digest would let an attacker verify a guess at the redacted text. */
function withoutDigests(options: RunOptions): RunOptions {
  const { requestDigests, ...rest } = options;
  return requestDigests === undefined ? options : rest;
}

function redactOptions(options: RunOptions, { texts }: RemovedEntries, isInput: boolean): RunOptions {
  const { extraSystemPrompt, sequel } = options;
  const isQuoting = extraSystemPrompt !== undefined && repeats(texts, extraSystemPrompt);
  const left = sequel === undefined ? undefined : redactSequel(sequel, texts, isInput);
  if (!isQuoting && left === sequel) return options;
  return {
    ...options,
    ...(isQuoting ? { extraSystemPrompt: redactedText } : {}),
    ...(left === undefined ? {} : { sequel: left }),
  };
}

const quotingFields = ["task", "request", "firstReply", "latestReply"] as const;

function redactSequel(sequel: Sequel, texts: RemovedEntries["texts"], isInput: boolean): Sequel {
  const quoted = quotingFields.filter((field) => {
    const value: unknown = Reflect.get(sequel, field);
    const isOfInput = isInput && (field === "task" || field === "request");
    return typeof value === "string" && (isOfInput || texts.isRepeatedBy(value));
  });
  if (quoted.length === 0) return sequel;
  return { ...sequel, ...Object.fromEntries(quoted.map((field) => [field, redactedText])) };
}

function redactOutcome(outcome: Outcome, { texts, entryIds }: RemovedEntries): Outcome {
  const { reply, output, error } = outcome;
  const isReply = outcome.entryId !== undefined && entryIds.has(outcome.entryId);
  const isGone = {
    reply: reply !== undefined && (isReply || texts.isRepeatedBy(reply)),
    output: output !== undefined && (isReply || repeats(texts, JSON.stringify(output))),
    error: error !== undefined && repeats(texts, error),
  };
  if (!isGone.reply && !isGone.output && !isGone.error) return outcome;
  const { output: _, ...rest } = outcome;
  return {
    ...rest,
    ...(isGone.reply ? { reply: redactedText } : {}),
    ...(isGone.error ? { error: redactedText } : {}),
    ...(isGone.output || output === undefined ? {} : { output }),
  };
}

/** Whether a longer text, either JSON or plain, quotes one of these texts. */
function repeats(texts: RemovedEntries["texts"], value: string): boolean {
  return texts.quotable.some(
    (gone) => value.includes(gone) || value.includes(JSON.stringify(gone).slice(1, -1)),
  );
}

function messageText({ message }: RunRow): string {
  const content: unknown = "content" in message ? message.content : "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block) => (isRecord(block) && typeof block.text === "string" ? block.text : ""))
    .join("");
}
