import { isRecord } from "../../core/shape.ts";
import { redactedText, redactMessage } from "../../core/tombstone.ts";
import type { Outcome, RemovedEntries, RunOptions, Sequel } from "../contract.ts";
import type { Books } from "./books.ts";
import type { RunRow } from "./rows.ts";

/**
 * What work repeats of entries that are redacted. A row that belongs to such an entry is emptied whatever it says; other rows of
 * the same sessions where they repeat its text. Input that is not conversation yet stays: it is no entry, and is yet to be read.
 */
export function redactWork(books: Books, removed: RemovedEntries): void {
  for (const uid of removed.uids) {
    for (const row of books.rows("uid = ?", uid)) redactRun(books, row, removed);
    redactOutbox(books, uid, removed);
  }
  redactDeliveries(books, removed);
}

function redactRun(books: Books, row: RunRow, removed: RemovedEntries): void {
  const { texts, entryIds } = removed;
  const isInput = entryIds.has(row.entryId);
  const isRead = row.isWritten || row.endedAt !== null;
  const { runId, seq } = row;
  const isGone = isInput || (isRead && texts.isRepeatedBy(messageText(row)));
  if (isGone) {
    const message = JSON.stringify(redactMessage({ ...row.message }));
    books.run("UPDATE run_inputs SET message = ? WHERE seq = ?", message, seq);
    books.run("UPDATE children SET task = ? WHERE run_id = ?", redactedText, runId);
    forgetClientKey(books, row);
  }
  const options = redactOptions(isGone ? withoutDigests(row.options) : row.options, removed, isInput);
  if (options !== row.options)
    books.run("UPDATE run_inputs SET options = ? WHERE seq = ?", JSON.stringify(options), seq);
  const outcome = row.outcome === null ? null : redactOutcome(row.outcome, removed);
  if (outcome !== row.outcome)
    books.run("UPDATE runs SET outcome = ? WHERE run_id = ?", JSON.stringify(outcome), runId);
  const partial = books.get("SELECT text FROM run_partials WHERE run_id = ?", runId);
  if (partial !== undefined && texts.isRepeatedBy(String(partial.text)))
    books.run("DELETE FROM run_partials WHERE run_id = ?", runId);
  redactApprovals(books, runId, removed);
}

/** A client may have made its key from the text. The run's own id is made from the key, and still stands for it. */
function forgetClientKey(books: Books, { runId, kind }: RunRow): void {
  if (kind === "user" || kind === "channel") books.run("UPDATE runs SET idem = NULL WHERE run_id = ?", runId);
}

function redactApprovals(books: Books, runId: string, { toolCallIds, texts }: RemovedEntries): void {
  const sql = "SELECT approval_id, tool_call_id, arguments FROM approvals WHERE run_id = ?";
  for (const row of books.all(sql, runId)) {
    const isGone = toolCallIds.has(String(row.tool_call_id)) || repeats(texts, String(row.arguments));
    if (isGone)
      books.run("UPDATE approvals SET arguments = '{}' WHERE approval_id = ?", String(row.approval_id));
  }
}

/** A message that has not been sent is dropped: nobody is to get one that says nothing. */
function redactOutbox(books: Books, uid: string, { texts }: RemovedEntries): void {
  for (const row of books.all("SELECT seq, text, receipt, last_error FROM outbox WHERE uid = ?", uid)) {
    const seq = Number(row.seq);
    if (texts.isRepeatedBy(String(row.text))) {
      books.run("UPDATE outbox SET text = ? WHERE seq = ?", redactedText, seq);
      const drop = `UPDATE outbox SET state = 'dropped', ended_at = ?, owner = NULL, lease_until = NULL
        WHERE seq = ? AND state = 'queued'`;
      books.run(drop, books.now(), seq);
    }
    if (repeats(texts, String(row.receipt ?? "")))
      books.run("UPDATE outbox SET receipt = NULL WHERE seq = ?", seq);
    if (repeats(texts, String(row.last_error ?? "")))
      books.run("UPDATE outbox SET last_error = ? WHERE seq = ?", redactedText, seq);
  }
}

/** What these sessions have sent to others of their user, and nobody has read: it goes on without what is gone. */
function redactDeliveries(books: Books, { uids, texts }: RemovedEntries): void {
  if (texts.quotable.length === 0) return;
  const users = books.all(
    "SELECT DISTINCT user FROM runs WHERE uid IN (SELECT value FROM json_each(?))",
    JSON.stringify(uids),
  );
  const where = `user = ? AND ended_at IS NULL AND written = 0 AND kind IN ('announce', 'send', 'ping_pong')`;
  for (const { user } of users) {
    for (const row of books.rows(where, String(user))) {
      if (uids.includes(row.session.uid) || !("content" in row.message)) continue;
      const { content } = row.message;
      if (typeof content !== "string") continue;
      const left = texts.quotable.reduce((text, gone) => text.replaceAll(gone, redactedText), content);
      if (left === content) continue;
      const message = JSON.stringify({ ...row.message, content: left });
      const options = JSON.stringify(withoutDigests(row.options));
      books.run("UPDATE run_inputs SET message = ?, options = ? WHERE seq = ?", message, options, row.seq);
    }
  }
}

/** A digest would confirm a guess at the text that is gone. */
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

/** Whether a longer text, JSON or not, quotes one of the texts. */
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
