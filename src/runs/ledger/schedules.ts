import type { Script } from "../../core/script.ts";
import type { ScheduleId, ScheduleState } from "../contract.ts";
import type { RunTransaction } from "./run-ledger.ts";
import { numberOrNull, textOrNull } from "./run-ledger.ts";

/**
 * Returns the states of these schedules, in the same order. A schedule that has never been recorded has the state
 * `null`.
 */
export function* readSchedules(
  tx: RunTransaction,
  ids: readonly ScheduleId[],
): Script<(ScheduleState | null)[]> {
  const states: (ScheduleState | null)[] = [];
  for (const id of ids) states.push(yield* readState(tx, id));
  return states;
}

/**
 * A schedule that is settled for longer than this into the future was settled while a clock was ahead. Smaller
 * differences between clocks are tolerated.
 */
const maxAheadMs = 3_600_000;

/**
 * Records a schedule that is new, whose due times have changed, or that was settled while a clock was ahead. Due times
 * before `since` then do not count as missed. `since` must not be in the future.
 */
export function* noteSchedule(
  tx: RunTransaction,
  id: ScheduleId,
  { pattern, since }: { readonly pattern: string; readonly since: number },
): Script<ScheduleState & { readonly wasAhead: boolean }> {
  yield* insertState(tx, id, pattern, since);
  const sql = `UPDATE schedules SET pattern = ?,
      settled_until = CASE WHEN settled_until < ? THEN ? ELSE settled_until END
    WHERE user = ? AND name = ? AND pattern <> ?`;
  yield* tx.run(sql, pattern, since, since, ...keyOf(id), pattern);
  const lower = "UPDATE schedules SET settled_until = ? WHERE user = ? AND name = ? AND settled_until > ?";
  const wasAhead = (yield* tx.run(lower, since, ...keyOf(id), tx.now() + maxAheadMs)) > 0;
  return { ...((yield* readState(tx, id)) as ScheduleState), wasAhead };
}

/**
 * Marks the due times up to `dueAt` as settled, so that no process starts a run for them. Returns `false` if another
 * process has already settled them.
 */
export function* settleSchedule(
  tx: RunTransaction,
  id: ScheduleId,
  { dueAt, runId }: { readonly dueAt: number; readonly runId: string | null },
): Script<boolean> {
  const sql = "UPDATE schedules SET settled_until = ? WHERE user = ? AND name = ? AND settled_until < ?";
  const changed = yield* tx.run(sql, dueAt, ...keyOf(id), dueAt);
  if (changed > 0 && runId !== null) yield* recordScheduledRun(tx, id, runId);
  return changed > 0;
}

/** Records the schedule's last run. */
export function* recordScheduledRun(tx: RunTransaction, id: ScheduleId, runId: string): Script<void> {
  yield* insertState(tx, id, "", tx.now());
  const sql = "UPDATE schedules SET last_run = ?, last_at = ? WHERE user = ? AND name = ?";
  yield* tx.run(sql, runId, tx.now(), ...keyOf(id));
}

/** Pauses or resumes a schedule. Due times that pass while it is paused are skipped and do not count as missed. */
export function* pauseSchedule(tx: RunTransaction, id: ScheduleId, isPaused: boolean): Script<ScheduleState> {
  const now = tx.now();
  yield* insertState(tx, id, "", now);
  if (isPaused)
    yield* tx.run(
      "UPDATE schedules SET paused_at = ? WHERE user = ? AND name = ? AND paused_at IS NULL",
      now,
      ...keyOf(id),
    );
  else {
    yield* tx.run(
      "UPDATE schedules SET settled_until = ? WHERE user = ? AND name = ? AND paused_at IS NOT NULL AND settled_until < ?",
      now,
      ...keyOf(id),
      now,
    );
    yield* tx.run("UPDATE schedules SET paused_at = NULL WHERE user = ? AND name = ?", ...keyOf(id));
  }
  return (yield* readState(tx, id)) as ScheduleState;
}

function keyOf({ userId, name }: ScheduleId): [string, string] {
  return [userId ?? "", name];
}

/** Does nothing if the row already exists. */
function insertState(tx: RunTransaction, id: ScheduleId, pattern: string, since: number): Script<number> {
  const sql =
    "INSERT INTO schedules (user, name, pattern, settled_until) VALUES (?, ?, ?, ?) ON CONFLICT (user, name) DO NOTHING";
  return tx.run(sql, ...keyOf(id), pattern, since);
}

function* readState(tx: RunTransaction, id: ScheduleId): Script<ScheduleState | null> {
  const row = yield* tx.get("SELECT * FROM schedules WHERE user = ? AND name = ?", ...keyOf(id));
  if (row === undefined) return null;
  return {
    settledUntil: Number(row.settled_until),
    pausedAt: numberOrNull(row.paused_at),
    lastRunId: textOrNull(row.last_run),
    lastRunAt: numberOrNull(row.last_at),
  };
}
