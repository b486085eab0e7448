import { SkeinError } from "../../core/errors.ts";
import { childRunId, deliveryId } from "../../core/hashed-id.ts";
import { isRecord } from "../../core/is-record.ts";
import type { Script } from "../../core/script.ts";
import { queryRow } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { redactedText, redactMessage } from "../../core/tombstone.ts";
import type { AfterCommit, Outcome, RemovedEntries, RunOptions, Sequel, WorkAttendant } from "../contract.ts";
import { openStates } from "../states.ts";
import { unbindThreads } from "./children.ts";
import { checkLoopTurn } from "./claim-eligibility.ts";
import { isUnreadDelivery } from "./dead-letter.ts";
import { endRun } from "./end-run.ts";
import { dropOutbox, putDeadLetter } from "./outbox.ts";
import { refreshQueue } from "./ready-queue.ts";
import { deleteRun, forgetRoot } from "./recover-runs.ts";
import type { RunLedger, RunRow } from "./run-ledger.ts";
import { RunTransaction } from "./run-ledger.ts";

/** Changes a session's runs together with the session itself, in the store's transaction. */
export class RunAttendant implements WorkAttendant {
  readonly #ledger: RunLedger;

  constructor(ledger: RunLedger) {
    this.#ledger = ledger;
  }

  reset(old: SessionRef, fresh: SessionRef, isOwner: boolean): Script<AfterCommit> {
    return this.#ledger.join(function* (tx) {
      if (!isOwner) yield* checkIdle(tx, old, "reset");
      const reason = "The run's session was reset while the run was sleeping.";
      for (const row of yield* openRuns(tx, old.uid, "sleeping")) yield* abort(tx, row, reason);
      // A run whose input has been written to the old session cannot continue in the new one.
      for (const row of yield* openRuns(tx, old.uid, "queued")) {
        if (!row.isWritten) yield* moveRun(tx, row, fresh);
        else yield* abort(tx, row, "The run's session was reset before the run could continue.");
      }
      for (const row of yield* openRuns(tx, old.uid, "running")) yield* moveRun(tx, row, fresh);
      yield* refreshQueue(old.uid);
      yield* refreshQueue(fresh.uid);
    });
  }

  remove(session: SessionRef, parent: SessionRef | null): Script<AfterCommit> {
    return this.#ledger.join((tx) => removeSession(tx, session, parent), session.uid);
  }

  branch(
    session: SessionRef,
    act: "reset" | "moved to another branch" = "moved to another branch",
  ): Script<void> {
    return checkIdle(new RunTransaction(this.#ledger), session, act);
  }

  redact(removed: RemovedEntries): Script<void> {
    return redactWork(new RunTransaction(this.#ledger), removed);
  }

  async discardFiles(of: readonly string[] | RemovedEntries): Promise<void> {
    const { removeAttachments } = this.#ledger.options;
    const found = await this.#ledger.read((tx) => listAttachments(tx, of));
    for (const { folder, sessionId } of found) await removeAttachments(folder, sessionId);
  }

  *hasRuns(uid: string): Script<boolean> {
    return (yield* queryRow("SELECT 1 FROM runs WHERE uid = ? LIMIT 1", uid)) !== undefined;
  }

  *isBlobInUse(sha256: string): Script<boolean> {
    const sql = `SELECT 1 FROM runs JOIN run_inputs USING (seq)
      WHERE ended_at IS NULL AND message LIKE ? LIMIT 1`;
    return (yield* queryRow(sql, `%${sha256}%`)) !== undefined;
  }

  purge(uids: readonly string[], userId?: string): Script<void> {
    return purgeRuns(new RunTransaction(this.#ledger), uids, userId);
  }
}

function* removeSession(tx: RunTransaction, session: SessionRef, parent: SessionRef | null): Script<void> {
  for (const row of yield* openRuns(tx, session.uid, "queued")) {
    if (!isUnreadDelivery(row)) continue;
    if (parent !== null && parent.uid !== session.uid) yield* moveRun(tx, row, parent);
    else yield* putDeadLetter(tx, row);
  }
  const reason = "The run's session was removed.";
  for (const state of openStates)
    for (const row of yield* openRuns(tx, session.uid, state)) yield* abort(tx, row, reason);
  yield* refreshQueue(session.uid);
  if (parent !== null) yield* refreshQueue(parent.uid);
}

interface Attachments {
  readonly folder: string;
  readonly sessionId: string;
}

function* listAttachments(
  tx: RunTransaction,
  of: readonly string[] | RemovedEntries,
): Script<readonly Attachments[]> {
  if (!("entryIds" in of)) return yield* attachmentsOf(tx, "uid", of);
  // In a child's session, the redacted entry is the child's input. In a parent's session, it contains the call that
  // spawned the child.
  const called: string[] = [];
  for (const uid of of.uids) called.push(...(yield* childrenSpawnedBy(tx, uid, of)));
  const spawned = yield* attachmentsOf(tx, "run_id", called);
  return [...spawned, ...(yield* attachmentsOf(tx, "entry_id", [...of.entryIds]))];
}

/** Returns the first runs of children spawned by tool calls in these entries. */
function* childrenSpawnedBy(
  tx: RunTransaction,
  uid: string,
  { entryIds, toolCallIds }: RemovedEntries,
): Script<string[]> {
  const named = yield* tx.all("SELECT DISTINCT session_id FROM runs WHERE uid = ?", uid);
  return named.flatMap(({ session_id }) =>
    [...entryIds].flatMap((entryId) =>
      [...toolCallIds].map((callId) => childRunId(uid, deliveryId(String(session_id), entryId, callId))),
    ),
  );
}

function* attachmentsOf(
  tx: RunTransaction,
  column: "uid" | "run_id" | "entry_id",
  values: readonly string[],
): Script<Attachments[]> {
  const sql = `SELECT attachments, session_id FROM children JOIN runs USING (run_id)
    WHERE ${column} IN (SELECT value FROM json_each(?)) AND attachments IS NOT NULL AND tidied_at IS NULL`;
  const rows = yield* tx.all(sql, JSON.stringify(values));
  return rows.map(({ attachments, session_id }) => ({
    folder: String(attachments),
    sessionId: String(session_id),
  }));
}

function* purgeRuns(tx: RunTransaction, uids: readonly string[], userId?: string): Script<void> {
  const roots = new Set<string>();
  for (const uid of uids) {
    for (const { root } of yield* tx.all("SELECT DISTINCT root FROM runs WHERE uid = ?", uid))
      roots.add(String(root));
    for (const { user, key } of yield* tx.all("SELECT DISTINCT user, key FROM runs WHERE uid = ?", uid))
      yield* unbindThreads(tx, user === "" ? null : String(user), String(key));
    for (const { seq } of yield* tx.all("SELECT seq FROM runs WHERE uid = ?", uid))
      yield* deleteRun(tx, Number(seq));
    for (const table of ["outbox", "turns", "loop_turns"])
      yield* tx.run(`DELETE FROM ${table} WHERE uid = ?`, uid);
    yield* refreshQueue(uid);
  }
  if (userId !== undefined) yield* purgeUser(tx, userId);
  for (const root of roots) yield* forgetRoot(tx, root);
  // Rows without runs still contain user IDs.
  yield* tx.run("DELETE FROM ready_users WHERE count = 0");
}

/** Deletes the user's remaining rows, which belong to sessions purged earlier or to runs without a session. */
function* purgeUser(tx: RunTransaction, userId: string): Script<void> {
  for (const { seq } of yield* tx.all("SELECT seq FROM runs WHERE user = ?", userId))
    yield* deleteRun(tx, Number(seq));
  const tables = [
    "outbox",
    "threads",
    "session_apps",
    "children",
    "approvals",
    "ready",
    "ready_users",
    "schedules",
  ];
  for (const table of tables) yield* tx.run(`DELETE FROM ${table} WHERE user = ?`, userId);
}

function openRuns(tx: RunTransaction, uid: string, state: string): Script<RunRow[]> {
  return tx.rows("uid = ? AND state = ? AND ended_at IS NULL ORDER BY seq", uid, state);
}

function* checkIdle(tx: RunTransaction, session: SessionRef, what: string): Script<void> {
  const { uid, sessionId } = session;
  yield* checkLoopTurn(tx, session);
  const [busy] = yield* tx.rows("uid = ? AND state IN ('running', 'waiting') LIMIT 1", uid);
  if (busy === undefined) return;
  throw new SkeinError("conflict", {
    problem: `Session ${sessionId} cannot be ${what} while run ${busy.runId} is ${busy.state}`,
    advice: "Wait for it to end, or abort it",
  });
}

function* abort(tx: RunTransaction, row: RunRow, error: string): Script<void> {
  const now = yield* tx.row(row.runId);
  if (now !== null) yield* endRun(tx, now, { state: "aborted", code: "aborted", error });
}

function* moveRun(tx: RunTransaction, row: RunRow, to: SessionRef): Script<void> {
  yield* tx.run(
    "UPDATE runs SET uid = ?, agent = ?, key = ?, session_id = ?, kept_for = NULL WHERE run_id = ?",
    to.uid,
    to.agentId,
    to.key,
    to.sessionId,
    row.runId,
  );
  if (row.state === "queued") tx.addQueued({ ...row, session: to });
}

/**
 * Removes redacted text from runs and the outbox. A row that belongs to a redacted entry always loses its text. Other
 * rows of the same sessions lose theirs if they repeat redacted text. Unread input is kept because it is not an entry
 * yet.
 */
function* redactWork(tx: RunTransaction, removed: RemovedEntries): Script<void> {
  for (const uid of removed.uids) {
    for (const row of yield* tx.rows("uid = ?", uid)) yield* redactRun(tx, row, removed);
    yield* redactOutbox(tx, uid, removed);
  }
  yield* redactDeliveries(tx, removed);
}

function* redactRun(tx: RunTransaction, row: RunRow, removed: RemovedEntries): Script<void> {
  const { texts, entryIds } = removed;
  const isInput = entryIds.has(row.entryId);
  const isRead = row.isWritten || row.endedAt !== null;
  const { runId, seq } = row;
  const isGone = isInput || (isRead && texts.isRepeatedBy(messageText(row)));
  if (isGone) {
    const message = JSON.stringify(redactMessage({ ...row.message }));
    yield* tx.run("UPDATE run_inputs SET message = ? WHERE seq = ?", message, seq);
    yield* tx.run("UPDATE children SET task = ? WHERE run_id = ?", redactedText, runId);
    yield* forgetClientKey(tx, row);
  }
  const options = redactOptions(isGone ? withoutDigests(row.options) : row.options, removed, isInput);
  if (options !== row.options)
    yield* tx.run("UPDATE run_inputs SET options = ? WHERE seq = ?", JSON.stringify(options), seq);
  const outcome = row.outcome === null ? null : redactOutcome(row.outcome, removed);
  if (outcome !== row.outcome)
    yield* tx.run("UPDATE runs SET outcome = ? WHERE run_id = ?", JSON.stringify(outcome), runId);
  const partial = yield* tx.get("SELECT text FROM run_partials WHERE run_id = ?", runId);
  if (partial !== undefined && texts.isRepeatedBy(String(partial.text)))
    yield* tx.run("DELETE FROM run_partials WHERE run_id = ?", runId);
  yield* redactApprovals(tx, runId, removed);
}

/**
 * Removes the client's idempotency key, because clients can derive it from the text. Retries are still recognized by
 * the run ID, which is a hash of the key.
 */
function* forgetClientKey(tx: RunTransaction, { runId, kind }: RunRow): Script<void> {
  if (kind === "user" || kind === "channel")
    yield* tx.run("UPDATE runs SET idem = NULL WHERE run_id = ?", runId);
}

function* redactApprovals(
  tx: RunTransaction,
  runId: string,
  { toolCallIds, texts }: RemovedEntries,
): Script<void> {
  const sql = "SELECT approval_id, tool_call_id, arguments FROM approvals WHERE run_id = ?";
  for (const row of yield* tx.all(sql, runId)) {
    const isGone = toolCallIds.has(String(row.tool_call_id)) || repeats(texts, String(row.arguments));
    if (isGone)
      yield* tx.run("UPDATE approvals SET arguments = '{}' WHERE approval_id = ?", String(row.approval_id));
  }
}

/** Redacts outbox rows that repeat the removed text. If such a message is still queued, it is also dropped. */
function* redactOutbox(tx: RunTransaction, uid: string, { texts }: RemovedEntries): Script<void> {
  const sql = "SELECT seq, outbox_id, text, receipt, last_error FROM outbox WHERE uid = ?";
  for (const row of yield* tx.all(sql, uid)) {
    const seq = Number(row.seq);
    if (texts.isRepeatedBy(String(row.text))) {
      yield* tx.run("UPDATE outbox SET text = ? WHERE seq = ?", redactedText, seq);
      yield* dropOutbox(tx, String(row.outbox_id), ["queued"]);
    }
    if (repeats(texts, String(row.receipt ?? "")))
      yield* tx.run("UPDATE outbox SET receipt = NULL WHERE seq = ?", seq);
    if (repeats(texts, String(row.last_error ?? "")))
      yield* tx.run("UPDATE outbox SET last_error = ? WHERE seq = ?", redactedText, seq);
  }
}

/** Removes the redacted text from unread messages to the user's other sessions, which are then delivered without it. */
function* redactDeliveries(tx: RunTransaction, { uids, texts }: RemovedEntries): Script<void> {
  if (texts.quotable.length === 0) return;
  const users = yield* tx.all(
    "SELECT DISTINCT user FROM runs WHERE uid IN (SELECT value FROM json_each(?))",
    JSON.stringify(uids),
  );
  const where = `user = ? AND ended_at IS NULL AND written = 0 AND kind IN ('announce', 'send', 'ping_pong')`;
  for (const { user } of users) {
    for (const row of yield* tx.rows(where, String(user))) {
      if (uids.includes(row.session.uid) || !("content" in row.message)) continue;
      const { content } = row.message;
      if (typeof content !== "string") continue;
      const left = texts.quotable.reduce((text, gone) => text.replaceAll(gone, redactedText), content);
      if (left === content) continue;
      const message = JSON.stringify({ ...row.message, content: left });
      const options = JSON.stringify(withoutDigests(row.options));
      yield* tx.run(
        "UPDATE run_inputs SET message = ?, options = ? WHERE seq = ?",
        message,
        options,
        row.seq,
      );
    }
  }
}

/** Removes the digests, because a digest would let an attacker verify a guess at the redacted text. */
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
