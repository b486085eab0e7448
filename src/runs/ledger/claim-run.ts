import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Script } from "../../core/script.ts";
import { lockFor } from "../../core/script.ts";
import type { Claim } from "../contract.ts";
import type { LaneCaps, Ready } from "../lanes.ts";
import { chooseNext } from "../lanes.ts";
import { isResumable, nextState } from "../states.ts";
import { emitChildState } from "./children.ts";
import { findMissingHere, joinAnnouncements, loopTurnOwner } from "./claim-eligibility.ts";
import { arrivalMarks } from "./end-run.ts";
import { readyHeads, recordTurn, refreshQueue, slotOf, takenSlots } from "./ready-queue.ts";
import type { LockedSessions } from "./recover-runs.ts";
import { claimLockMs, endUnclaimed, isAnyOverdue, leaveLocked, settleOverdue } from "./recover-runs.ts";
import type { RunLedger, RunRow, RunTransaction } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";

/** Attempts per call in case other processes win the race for a run. */
const mostTries = 64;

/** A run to claim. Other processes might claim it first. */
interface Candidate {
  readonly ready: Ready;
  readonly row: RunRow;
}

/** The state of one `claimNext` call. `leftOut` contains all sessions in which nothing can be claimed now. */
interface Search extends LockedSessions {
  readonly owner: string;
  /** Users whose runs another machine was changing. */
  readonly busyUsers: Set<string>;
}

/**
 * Claims the next run. A session that cannot be locked does not block the others. The lock error is thrown only if
 * nothing else can be claimed.
 */
export async function claimNext(
  ledger: RunLedger,
  owner: string,
  except: ReadonlySet<string> = new Set(),
  onLocked: (uid: string) => void = () => undefined,
): Promise<Claim | null> {
  const search: Search = { owner, leftOut: new Set(except), onLocked, busyUsers: new Set() };
  const problems: unknown[] = [];
  for (let tries = 0; tries < mostTries; tries++) {
    const next = await ledger.read((tx) => nextCandidate(tx, search, tries === 0));
    if (next === null) break;
    if (next === "overdue") {
      problems.push(...(await settleOverdue(ledger, owner, search)));
      continue;
    }
    try {
      const claimed = await claimCandidate(ledger, next, search);
      if (claimed === null) continue;
      // Adopts the run's request. Otherwise, no process would claim the other runs that belong to it.
      if (ledger.options.ownRequestsOnly) ledger.ownRoots.add(claimed.run.root.rootId);
      return claimed;
    } catch (error) {
      search.leftOut.add(next.ready.uid);
      problems.push(error);
    }
  }
  if (problems.length > 0) throw problems[0];
  return null;
}

/**
 * Returns the next run that this process can claim. Other runs wait for a process with their agent, app and tools.
 * Returns `overdue` if recovery must come first.
 */
function* nextCandidate(
  tx: RunTransaction,
  { owner, leftOut }: Search,
  isFirst: boolean,
): Script<Candidate | "overdue" | null> {
  if (isFirst && (yield* isAnyOverdue(tx, owner, leftOut))) return "overdue";
  const caps = (yield* isAtLimit(tx, owner)) ? noCaps : tx.options.lanes;
  for (;;) {
    const next = yield* nextReady(tx, leftOut, caps);
    if (next === null) return null;
    const hasStore = tx.options.hasStore(next.user === "" ? null : next.user);
    const isFree = hasStore && (yield* loopTurnOwner(tx, next.uid)) === null;
    const served = isFree ? yield* firstClaimableIn(tx, next, caps) : null;
    if (served !== null) return served;
    leftOut.add(next.uid);
  }
}

/** Returns the session's first ready run that this process can claim and whose lane has a free slot. */
function* firstClaimableIn(tx: RunTransaction, next: Ready, caps: LaneCaps): Script<Candidate | null> {
  const taken = yield* takenSlots("and resuming");
  const rows = yield* tx.rows(
    "seq IN (SELECT seq FROM ready WHERE uid = ? AND app IN ('', ?)) ORDER BY rank, seq",
    next.uid,
    tx.options.app,
  );
  for (const row of rows) {
    const slot = slotOf(row.isSilent, row.lane);
    if (slot !== "none" && taken[slot] >= caps[slot]) continue;
    if (findMissingHere(tx, row) === null) return { ready: { ...next, slot, seq: row.seq }, row };
  }
  return null;
}

function* nextReady(tx: RunTransaction, leftOut: ReadonlySet<string>, caps: LaneCaps): Script<Ready | null> {
  const heads = tx.options.ownRequestsOnly ? yield* ownHeads(tx, leftOut) : yield* readyHeads(tx, leftOut);
  if (heads.length === 0) return null;
  return chooseNext(heads, yield* takenSlots("and resuming"), caps);
}

/** Limits under which only runs that need no slot can be claimed. */
const noCaps: LaneCaps = { main: 0, subagent: 0, cron: 0, nested: 0 };

/** Whether this process is executing its maximum number of runs. */
function* isAtLimit(tx: RunTransaction, owner: string): Script<boolean> {
  const { perProcess } = tx.options;
  if (perProcess === null) return false;
  const sql = `SELECT count(*) AS count FROM runs INDEXED BY runs_active
    WHERE state IN ('running', 'waiting') AND state = 'running' AND silent = 0 AND owner = ?`;
  return Number((yield* tx.get(sql, owner))?.count) >= perProcess;
}

/**
 * Returns the next runs in the sessions of this process's own requests and in the sessions that those requests are
 * waiting for. Includes runs that an earlier process left in these sessions, because they come first.
 */
function* ownHeads(tx: RunTransaction, leftOut: ReadonlySet<string>): Script<Ready[]> {
  const rows = yield* tx.all(
    `WITH own AS (SELECT run_id, uid FROM runs WHERE root IN (SELECT value FROM json_each(?)) AND ended_at IS NULL)
     SELECT uid, slot, user, turn, seq FROM ready WHERE app IN ('', ?) AND uid IN (SELECT uid FROM own UNION
       SELECT runs.uid FROM own JOIN run_waits ON from_run = own.run_id JOIN runs ON runs.run_id = to_run)`,
    JSON.stringify([...tx.ownRoots]),
    tx.options.app,
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

async function claimCandidate(
  ledger: RunLedger,
  { ready, row }: Candidate,
  search: Search,
): Promise<Claim | null> {
  const { owner, busyUsers } = search;
  if (row.deadline !== null && row.startedAt !== null && row.deadline <= ledger.now()) {
    await endUnclaimed(ledger, row, "deadline");
    return null;
  }
  try {
    let claim: Omit<Claim, "leafId"> | null = null;
    const take = function* (tx: RunTransaction): Script<boolean> {
      const taken = yield* takeRun(tx, ready, owner);
      if (taken === null) return false;
      claim = yield* claimOf(tx, taken);
      return yield* fitsLane(tx, ready.slot);
    };
    // While another machine is changing this user's runs, other users' runs are claimed first.
    const skipsLocked = !busyUsers.has(ready.user);
    const { leafId } = await ledger.changeUnderLock(row.session, "unsynced", take, {
      skipsLocked,
      lockTimeoutMs: claimLockMs,
    });
    return claim === null ? null : { ...(claim as Omit<Claim, "leafId">), leafId };
  } catch (error) {
    const code = error instanceof SkeinError ? error.code : null;
    if (code === "fenced") return null; // Another process claimed it first.
    if (code === "not_found") await endUnclaimed(ledger, row, "not_found");
    else if (code === "unreadable_file") await endUnclaimed(ledger, row, error as SkeinError);
    else if (code !== "locked") throw error;
    else {
      leaveLocked(ledger, search, ready.uid);
      busyUsers.add(ready.user);
    }
    return null;
  }
}

/** A run's rows before and after its claim. */
interface TakenRun {
  readonly before: RunRow;
  readonly row: RunRow;
}

/** Called under the session's lock. Returns the claimed run, or `null` if it is no longer the next run. */
function* takeRun(
  tx: RunTransaction,
  { uid, seq, slot, user }: Ready,
  owner: string,
): Script<TakenRun | null> {
  const still = "seq = ? AND EXISTS (SELECT 1 FROM ready WHERE uid = ? AND ready.seq = ? AND slot = ?)";
  // Another process might have executed the run since the candidate was read.
  const row = (yield* tx.rows(still, seq, uid, seq, slot))[0];
  if (row === undefined || (yield* loopTurnOwner(tx, uid)) !== null) return null;
  const now = tx.now();
  yield* tx.run(
    `UPDATE runs SET state = ?, fence = fence + ?, owner = ?, lease_until = ?, started_at = coalesce(started_at, ?),
         deadline = coalesce(deadline, ?) WHERE seq = ?`,
    nextState(row, "claim"),
    tx.options.engine.fenceStep(),
    owner,
    now + tx.options.leaseMs,
    now,
    deadlineOf(tx, row, now),
    seq,
  );
  yield* joinAnnouncements(tx, row);
  yield* refreshQueue(uid);
  yield* recordTurn(tx, { slot, user, uid });
  const attempt = row.lost + 1;
  // The process that continues the run emits `run.recovered`.
  const { startedBy, options, lane } = row;
  const queuedMs = row.startedAt === null ? Math.max(0, now - row.createdAt) : null;
  const started = { attempt, model: options.model ?? null, lane, ...present({ queuedMs, startedBy }) };
  tx.addEvent("run.started", row.session, row.runId, started);
  yield* emitChildState(tx, row, "running");
  const taken = yield* tx.row(row.runId);
  return taken === null ? null : { before: row, row: taken };
}

/** Whether the lane has room for the run that was just claimed. */
function* fitsLane(tx: RunTransaction, slot: Ready["slot"]): Script<boolean> {
  if (slot === "none") return true;
  yield* lockFor("slots");
  return (yield* takenSlots("and resuming"))[slot] <= tx.options.lanes[slot];
}

function deadlineOf(tx: RunTransaction, row: RunRow, now: number): number | null {
  const { runTimeoutSeconds } = row.options;
  const ms =
    runTimeoutSeconds === undefined ? tx.options.runTimeoutMs(row.session.agentId) : runTimeoutSeconds * 1000;
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
function* retriedRuns(tx: RunTransaction, { retryOf }: RunRow): Script<RunRow[]> {
  const retried = retryOf === null ? null : yield* tx.row(retryOf);
  if (retried === null) return [];
  return [retried, ...(isResumable(retried) ? (yield* retriedRuns(tx, retried)).filter(isResumable) : [])];
}

/** Whether the retried run cannot be resumed, or other input to the session has had a turn since that run ended. */
function* isOvertaken(
  tx: RunTransaction,
  row: RunRow,
  [last, ...earlier]: readonly RunRow[],
): Script<boolean> {
  const { uid } = row.session;
  if (last === undefined || last.session.uid !== uid) return false;
  if (!isResumable(last)) return true;
  const own = new Set([row, last, ...earlier].map(({ runId }) => runId));
  const sql = "SELECT run_id FROM runs WHERE uid = ? AND silent = 0 AND started_at >= ?";
  return (yield* tx.all(sql, uid, last.endedAt)).some(({ run_id }) => !own.has(String(run_id)));
}

function* claimOf(tx: RunTransaction, { before, row }: TakenRun): Script<Omit<Claim, "leafId">> {
  const kept = "kept_for = ? AND arrival_of IS NOT NULL AND state = 'queued' ORDER BY seq";
  const arrivals = (yield* tx.rows(kept, row.runId)).map(publicRun);
  const awaited = yield* tx.all("SELECT to_run, arrived FROM run_waits WHERE from_run = ?", row.runId);
  const awaitedWith = (mark: number) =>
    awaited.filter(({ arrived }) => Number(arrived) === mark).map(({ to_run }) => String(to_run));
  const chain = yield* retriedRuns(tx, row);
  const overtaken = yield* isOvertaken(tx, row, chain);
  const lost = overtaken ? null : (chain.at(-1) ?? null);
  return {
    run: publicRun(row),
    held: { runId: row.runId, fence: row.fence },
    how: claimKindOf(before, lost),
    begunAt: lost?.startedAt ?? row.startedAt,
    isOvertaken: overtaken,
    arrivals,
    stillOpen: awaitedWith(arrivalMarks.open),
    endedSilent: awaitedWith(arrivalMarks.ended),
  };
}
