import { isDeepStrictEqual } from "node:util";
import { SkeinError } from "../../core/errors.ts";
import type { Script } from "../../core/script.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { HeldRun, Run } from "../contract.ts";
import type { RunRow, RunTransaction } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";

/**
 * Replaces the message of a queued run, in the same transaction as the check that no process has read it. Throws
 * `conflict` if the run has started or its message is not the expected one. Returns `null` if the run does not exist.
 */
export function* editInput(
  tx: RunTransaction,
  runId: string,
  message: MessageDraft,
  expected?: MessageDraft,
): Script<Run | null> {
  const row = yield* tx.row(runId);
  if (row === null) return null;
  // The response to an earlier, identical call might have been lost.
  if (isDeepStrictEqual(row.message, message)) return publicRun(row);
  const problem = findEditProblem(row);
  if (problem !== null)
    throw new SkeinError("conflict", {
      problem: `The message of run ${runId} cannot be changed: ${problem}`,
      advice: "Send a new message instead",
    });
  if (expected !== undefined && !isDeepStrictEqual(row.message, expected))
    throw new SkeinError("conflict", {
      problem: `The message of run ${runId} has been changed by another client`,
      advice: "Read it again, then change its new text",
    });
  const options = { ...row.options, editedAt: tx.now() };
  yield* tx.run(
    "UPDATE run_inputs SET message = ?, options = ? WHERE seq = ?",
    JSON.stringify(message),
    JSON.stringify(options),
    row.seq,
  );
  tx.addQueued(row);
  return publicRun({ ...row, message, options });
}

function findEditProblem(row: RunRow): string | null {
  const { kind, state, startedAt, isWritten, keptFor, retryOf } = row;
  if (kind !== "user") return "it was not written by a person";
  if (state !== "queued" || startedAt !== null || isWritten || keptFor !== null) return "the run has started";
  // The run being retried might already have written the message.
  return retryOf === null ? null : "it is a retry of another run";
}

/**
 * Reserves queued input for the running turn so that the input cannot be edited or ended while the turn writes it.
 * Returns the current input, or `null` if it has since ended or been taken by a turn.
 */
export function* reserveInput(tx: RunTransaction, held: HeldRun, runId: string): Script<Run | null> {
  const into = yield* tx.held(held);
  const sql = `UPDATE runs SET kept_for = ? WHERE run_id = ? AND uid = ? AND state = 'queued'
    AND (kept_for IS NULL OR kept_for = ?)`;
  const isReserved = (yield* tx.run(sql, into.runId, runId, into.session.uid, into.runId)) === 1;
  const row = isReserved ? yield* tx.row(runId) : null;
  return row === null ? null : publicRun(row);
}
