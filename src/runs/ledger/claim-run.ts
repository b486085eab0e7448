import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Claim } from "../contract.ts";
import type { Ready } from "../lanes.ts";
import { chooseNext } from "../lanes.ts";
import { isLostRun, nextState } from "../states.ts";
import { emitChildState } from "./children.ts";
import { findMissingHere, joinAnnouncements, loopTurnOwner, releaseDueBatches } from "./claim-eligibility.ts";
import { arrivalMarks } from "./end-run.ts";
import { readyHeads, recordTurn, refreshQueue, slotOf, takenSlots } from "./ready-queue.ts";
import { endUnclaimed, requeueLostRuns } from "./recover-runs.ts";
import type { RunLedger, RunRow } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";
import { settleReturnedReplies } from "./start-sequel.ts";

/** Attempts per call in case other processes win the race for a run. */
const mostTries = 64;

/**
 * Claims the next run. A session that cannot be locked does not block the others. The lock error is thrown only if
 * nothing else can be claimed.
 */
export async function claimNext(
  ledger: RunLedger,
  owner: string,
  except: ReadonlySet<string> = new Set(),
): Promise<Claim | null> {
  const problems = [...(await requeueLostRuns(ledger, owner)), ...(await settleReturnedReplies(ledger))];
  releaseDueBatches(ledger);
  const leftOut = new Set(except);
  for (let tries = 0; tries < mostTries; tries++) {
    const next = nextClaimable(ledger, leftOut);
    if (next === null) break;
    try {
      const claimed = await claimReady(ledger, next, owner, leftOut);
      if (claimed === null) continue;
      // Runs started by an earlier turn belong to that turn's request. No other process would claim them here.
      if (ledger.options.ownRequestsOnly) ledger.ownRoots.add(claimed.run.root.rootId);
      return claimed;
    } catch (error) {
      leftOut.add(next.uid);
      problems.push(error);
    }
  }
  if (problems.length > 0) throw problems[0];
  return null;
}

/** Returns the next run that this process can claim. Other runs wait for a process with their agent, app and tools. */
function nextClaimable(ledger: RunLedger, leftOut: Set<string>): Ready | null {
  for (;;) {
    const next = nextReady(ledger, leftOut);
    if (next === null) return null;
    const hasStore = ledger.options.hasStore(next.user === "" ? null : next.user);
    const isFree = hasStore && loopTurnOwner(ledger, next.uid) === null;
    const served = isFree ? firstClaimableIn(ledger, next) : null;
    if (served !== null) return served;
    leftOut.add(next.uid);
  }
}

/** Returns the session's first ready run that this process can claim and whose lane has a free slot. */
function firstClaimableIn(ledger: RunLedger, next: Ready): Ready | null {
  const { app, lanes } = ledger.options;
  const taken = takenSlots(ledger, "and resuming");
  const rows = ledger.rows(
    "seq IN (SELECT seq FROM ready WHERE uid = ? AND app IN ('', ?)) ORDER BY rank, seq",
    next.uid,
    app,
  );
  for (const row of rows) {
    const slot = slotOf(row.isSilent, row.lane);
    if (slot !== "none" && taken[slot] >= lanes[slot]) continue;
    if (findMissingHere(ledger, row) === null) return { ...next, slot, seq: row.seq };
  }
  return null;
}

function nextReady(ledger: RunLedger, leftOut: ReadonlySet<string>): Ready | null {
  const heads = ledger.options.ownRequestsOnly ? ownHeads(ledger, leftOut) : readyHeads(ledger, leftOut);
  if (heads.length === 0) return null;
  return chooseNext(heads, takenSlots(ledger, "and resuming"), ledger.options.lanes);
}

/**
 * Returns the next runs in sessions where a request of this process is waiting for its turn or for another run. A run
 * that an earlier process left behind in one of them therefore goes first.
 */
function ownHeads(ledger: RunLedger, leftOut: ReadonlySet<string>): Ready[] {
  const rows = ledger.all(
    `WITH own AS (SELECT run_id, uid FROM runs WHERE root IN (SELECT value FROM json_each(?)) AND ended_at IS NULL)
     SELECT uid, slot, user, turn, seq FROM ready WHERE app IN ('', ?) AND uid IN (SELECT uid FROM own UNION
       SELECT runs.uid FROM own JOIN run_waits ON from_run = own.run_id JOIN runs ON runs.run_id = to_run)`,
    JSON.stringify([...ledger.ownRoots]),
    ledger.options.app,
  );
  return rows
    .filter(({ uid }) => !leftOut.has(String(uid)))
    .map(({ uid, slot, user, turn, seq }) => ({
      uid: String(uid),
      user: String(user),
      slot: slot as Ready["slot"],
      seq: Number(seq),
      userTurn: 0,
      sessionTurn: Number(turn),
    }));
}

async function claimReady(
  ledger: RunLedger,
  ready: Ready,
  owner: string,
  leftOut: Set<string>,
): Promise<Claim | null> {
  const row = ledger.rows("seq = ?", ready.seq)[0];
  if (row === undefined) return null;
  if (isOverdue(ledger, row)) {
    endUnclaimed(ledger, row, "deadline");
    return null;
  }
  try {
    const { leafId } = await ledger.options.underLock(row.session, () => takeRun(ledger, ready, owner));
    return claimOf(ledger, row, leafId);
  } catch (error) {
    const code = error instanceof SkeinError ? error.code : null;
    if (code === "fenced") return null; // Another process claimed it first.
    if (code === "not_found") endUnclaimed(ledger, row, "not_found");
    else if (code === "unreadable_file") endUnclaimed(ledger, row, error as SkeinError);
    else if (code === "locked") leftOut.add(ready.uid);
    else throw error;
    return null;
  }
}

function isOverdue(ledger: RunLedger, row: RunRow): boolean {
  return row.deadline !== null && row.startedAt !== null && row.deadline <= ledger.now();
}

/** Called under the session's lock. Returns `false` if it is no longer the next run. */
function takeRun(ledger: RunLedger, { uid, seq, slot, user }: Ready, owner: string): boolean {
  return ledger.change("unsynced", () => {
    const still = "SELECT 1 FROM ready WHERE uid = ? AND seq = ? AND slot = ?";
    if (ledger.get(still, uid, seq, slot) === undefined) return false;
    if (slot !== "none" && takenSlots(ledger, "and resuming")[slot] >= ledger.options.lanes[slot])
      return false;
    const row = ledger.rows("seq = ?", seq)[0];
    if (row === undefined || loopTurnOwner(ledger, uid) !== null) return false;
    const now = ledger.now();
    ledger.run(
      `UPDATE runs SET state = ?, fence = fence + 1, owner = ?, lease_until = ?, started_at = coalesce(started_at, ?),
         deadline = coalesce(deadline, ?) WHERE seq = ?`,
      nextState(row, "claim"),
      owner,
      now + ledger.options.leaseMs,
      now,
      deadlineOf(ledger, row, now),
      seq,
    );
    joinAnnouncements(ledger, row);
    refreshQueue(ledger, uid);
    recordTurn(ledger, { slot, user, uid });
    const attempt = row.lost + 1;
    // The process that continues the run emits `run.recovered`.
    const { startedBy, options } = row;
    const started = { attempt, model: options.model ?? null, ...present({ startedBy }) };
    ledger.addEvent("run.started", row.session, row.runId, started);
    emitChildState(ledger, row, "running");
    return true;
  });
}

function deadlineOf(ledger: RunLedger, row: RunRow, now: number): number | null {
  const { runTimeoutSeconds } = row.options;
  const ms =
    runTimeoutSeconds === undefined
      ? ledger.options.runTimeoutMs(row.session.agentId)
      : runTimeoutSeconds * 1000;
  return ms <= 0 ? null : now + ms;
}

/** `lost` is the lost run whose turn this run continues. */
function claimKindOf(row: RunRow, lost: RunRow | null): Claim["how"] {
  if (row.startedAt === null && lost === null) return "new";
  return row.isWoken ? "woken" : "recovered";
}

/**
 * Returns the run that this run retries. If that run was lost, also returns the lost runs that it retried in turn,
 * latest first.
 */
function retriedRuns(ledger: RunLedger, { retryOf }: RunRow): RunRow[] {
  const retried = retryOf === null ? null : ledger.row(retryOf);
  if (retried === null) return [];
  return [retried, ...(isLostRun(retried) ? retriedRuns(ledger, retried).filter(isLostRun) : [])];
}

/** Whether the retried run failed on its own, or other input to the session has had a turn since the run was lost. */
function isOvertaken(ledger: RunLedger, row: RunRow, [last, ...earlier]: readonly RunRow[]): boolean {
  const { uid } = row.session;
  if (last === undefined || last.session.uid !== uid) return false;
  if (!isLostRun(last)) return true;
  const own = new Set([row, last, ...earlier].map(({ runId }) => runId));
  const sql = "SELECT run_id FROM runs WHERE uid = ? AND silent = 0 AND started_at >= ?";
  return ledger.all(sql, uid, last.endedAt).some(({ run_id }) => !own.has(String(run_id)));
}

/** `before` is the row as it was before the claim. */
function claimOf(ledger: RunLedger, before: RunRow, leafId: string | null): Claim | null {
  const row = ledger.row(before.runId);
  if (row === null) return null;
  const arrivals = ledger
    .rows("kept_for = ? AND arrival_of IS NOT NULL AND state = 'queued' ORDER BY seq", row.runId)
    .map(publicRun);
  const awaited = {
    stillOpen: awaitedBy(ledger, row.runId, arrivalMarks.open),
    endedSilent: awaitedBy(ledger, row.runId, arrivalMarks.ended),
  };
  const chain = retriedRuns(ledger, row);
  const overtaken = isOvertaken(ledger, row, chain);
  const lost = overtaken ? null : (chain.at(-1) ?? null);
  return {
    run: publicRun(row),
    held: { runId: row.runId, fence: row.fence },
    leafId,
    how: claimKindOf(before, lost),
    begunAt: lost?.startedAt ?? row.startedAt,
    isOvertaken: overtaken,
    arrivals,
    ...awaited,
  };
}

function awaitedBy(ledger: RunLedger, runId: string, mark: number): string[] {
  const sql = "SELECT to_run FROM run_waits WHERE from_run = ? AND arrived = ?";
  return ledger.all(sql, runId, mark).map(({ to_run }) => String(to_run));
}
