import { messageWithoutPaths, SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Claim } from "../contract.ts";
import type { Ready } from "../lanes.ts";
import { chooseNext, ranks } from "../lanes.ts";
import { lostCode, nextState, retryHint, timeoutText } from "../states.ts";
import type { Books } from "./books.ts";
import { fenced } from "./books.ts";
import { tellStarter } from "./child-events.ts";
import { lackingHere } from "./claimants.ts";
import { letDueGo, takeCompany } from "./company.ts";
import { bury, isUnread } from "./dead-letter.ts";
import { arrivalMarks, endRun } from "./ending.ts";
import { endDurability, settleReturned } from "./following.ts";
import { loopTurnOwner } from "./loop-turns.ts";
import { readyHeads, refreshQueue, slotOf, takenSlots, tookTurn } from "./queue.ts";
import type { RunRow } from "./rows.ts";
import { publicRun } from "./rows.ts";

/** Claiming, and giving back: both raise the fence under the session's own lock. */

/** A claim is tried so often where others are quicker; the next call goes on. */
const mostTries = 64;

/** A session that cannot be written holds up no other: what is wrong is thrown where there is nothing else to claim. */
export async function claimNext(
  books: Books,
  owner: string,
  except: ReadonlySet<string>,
): Promise<Claim | null> {
  const problems = [...(await takeBackLost(books, owner)), ...(await settleReturned(books))];
  letDueGo(books);
  const leftOut = new Set(except);
  for (let tries = 0; tries < mostTries; tries++) {
    const next = nextServed(books, leftOut);
    if (next === null) break;
    try {
      const claimed = await claimReady(books, next, owner, leftOut);
      if (claimed === null) continue;
      // What an earlier turn set off belongs to it: it would wait for ever otherwise.
      if (books.options.ownRequestsOnly) books.ownRoots.add(claimed.run.root.rootId);
      return claimed;
    } catch (error) {
      leftOut.add(next.uid);
      problems.push(error);
    }
  }
  if (problems.length > 0) throw problems[0];
  return null;
}

/** The next run that this process can claim; the others wait for a process that has their agent, app and tools. */
function nextServed(books: Books, leftOut: Set<string>): Ready | null {
  for (;;) {
    const next = nextReady(books, leftOut);
    if (next === null) return null;
    const hasStore = books.options.hasStore(next.user === "" ? null : next.user);
    const isFree = hasStore && loopTurnOwner(books, next.uid) === null;
    const served = isFree ? firstServed(books, next) : null;
    if (served !== null) return served;
    leftOut.add(next.uid);
  }
}

/** Of the runs that could be next in the session, the first that this process can claim and whose lane has room. */
function firstServed(books: Books, next: Ready): Ready | null {
  const { app, lanes } = books.options;
  const taken = takenSlots(books, "and resuming");
  const rows = books.rows(
    "seq IN (SELECT seq FROM ready WHERE uid = ? AND app IN ('', ?)) ORDER BY rank, seq",
    next.uid,
    app,
  );
  for (const row of rows) {
    const slot = slotOf(row.isSilent, row.lane);
    if (slot !== "none" && taken[slot] >= lanes[slot]) continue;
    if (lackingHere(books, row) === null) return { ...next, slot, seq: row.seq };
  }
  return null;
}

function nextReady(books: Books, leftOut: ReadonlySet<string>): Ready | null {
  const heads = books.options.ownRequestsOnly ? ownHeads(books, leftOut) : readyHeads(books, leftOut);
  if (heads.length === 0) return null;
  return chooseNext(heads, takenSlots(books, "and resuming"), books.options.lanes);
}

/**
 * The next runs of the sessions in which a request of this process waits for its turn, or for another run. So a run that was
 * left in such a session runs first, and runs to its end.
 */
function ownHeads(books: Books, leftOut: ReadonlySet<string>): Ready[] {
  const rows = books.all(
    `WITH own AS (SELECT run_id, uid FROM runs WHERE root IN (SELECT value FROM json_each(?)) AND ended_at IS NULL)
     SELECT uid, slot, user, turn, seq FROM ready WHERE app IN ('', ?) AND uid IN (SELECT uid FROM own UNION
       SELECT runs.uid FROM own JOIN run_waits ON from_run = own.run_id JOIN runs ON runs.run_id = to_run)`,
    JSON.stringify([...books.ownRoots]),
    books.options.app,
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
  books: Books,
  ready: Ready,
  owner: string,
  leftOut: Set<string>,
): Promise<Claim | null> {
  const row = books.rows("seq = ?", ready.seq)[0];
  if (row === undefined) return null;
  if (isOverdue(books, row)) {
    endUnclaimed(books, row, "deadline");
    return null;
  }
  try {
    const { leafId } = await books.options.underLock(row.session, () => take(books, ready, owner));
    return claimOf(books, row, leafId);
  } catch (error) {
    const code = error instanceof SkeinError ? error.code : null;
    if (code === "fenced") return null; // somebody was quicker
    if (code === "not_found") {
      endUnclaimed(books, row, "not_found");
      return null;
    }
    if (code === "unreadable_file") {
      endUnclaimed(books, row, error as SkeinError);
      return null;
    }
    if (code !== "locked") throw error;
    leftOut.add(ready.uid);
    return null;
  }
}

function isOverdue(books: Books, row: RunRow): boolean {
  return row.deadline !== null && row.startedAt !== null && row.deadline <= books.now();
}

/** Ends a queued run that cannot go on. One transaction. */
export function endUnclaimed(books: Books, row: RunRow, why: "deadline" | "not_found" | SkeinError): void {
  books.change(endDurability(books, row.runId), () => endIfQueued(books, row, why));
}

function endIfQueued(books: Books, { runId }: RunRow, why: "deadline" | "not_found" | SkeinError): void {
  const row = books.row(runId);
  if (row?.state !== "queued") return;
  if (why === "deadline") {
    endRun(books, row, { state: "timeout", code: "timeout", error: timeoutText(row) });
    return;
  }
  if (why instanceof SkeinError) {
    const error = `${messageWithoutPaths(why)} ${retryHint(runId)}`;
    endRun(books, row, { state: "error", code: why.code, error });
    return;
  }
  if (isUnread(row)) bury(books, row);
  const error = `Session ${row.session.sessionId} is not there any more.`;
  endRun(books, row, { state: "error", code: "not_found", error });
}

/** Under the session's lock. `false`: it is not the next one any more. */
function take(books: Books, { uid, seq, slot, user }: Ready, owner: string): boolean {
  return books.change("unsynced", () => {
    const still = "SELECT 1 FROM ready WHERE uid = ? AND seq = ? AND slot = ?";
    if (books.get(still, uid, seq, slot) === undefined) return false;
    if (slot !== "none" && takenSlots(books, "and resuming")[slot] >= books.options.lanes[slot]) return false;
    const row = books.rows("seq = ?", seq)[0];
    if (row === undefined || loopTurnOwner(books, uid) !== null) return false;
    const now = books.now();
    books.run(
      `UPDATE runs SET state = ?, fence = fence + 1, owner = ?, lease_until = ?, started_at = coalesce(started_at, ?),
         deadline = coalesce(deadline, ?) WHERE seq = ?`,
      nextState(row, "claim"),
      owner,
      now + books.options.leaseMs,
      now,
      deadlineOf(books, row, now),
      seq,
    );
    takeCompany(books, row);
    refreshQueue(books, uid);
    tookTurn(books, { slot, user, uid });
    const attempt = row.lost + 1;
    // Whoever goes on tells how, with `run.recovered`.
    const { startedBy, options } = row;
    const started = { attempt, model: options.model ?? null, ...present({ startedBy }) };
    books.note("run.started", row.session, row.runId, started);
    tellStarter(books, row, "running");
    return true;
  });
}

function deadlineOf(books: Books, row: RunRow, now: number): number | null {
  const { runTimeoutSeconds } = row.options;
  const ms =
    runTimeoutSeconds === undefined
      ? books.options.runTimeoutMs(row.session.agentId)
      : runTimeoutSeconds * 1000;
  return ms <= 0 ? null : now + ms;
}

/** `lost`: the run whose turn it goes on with. */
function howOf(row: RunRow, lost: RunRow | null): Claim["how"] {
  if (row.startedAt === null && lost === null) return "new";
  return row.isWoken ? "woken" : "recovered";
}

/** The lost runs whose input a run takes up again, the last first. */
function lostBefore(books: Books, { retryOf }: RunRow): RunRow[] {
  const lost = retryOf === null ? null : books.row(retryOf);
  return lost === null ? [] : [lost, ...lostBefore(books, lost)];
}

/** Whether other input of the session had its turn since a run was lost. */
function isOvertaken(books: Books, row: RunRow, [last, ...earlier]: readonly RunRow[]): boolean {
  const { uid } = row.session;
  if (last === undefined || last.session.uid !== uid) return false;
  const own = new Set([row, last, ...earlier].map(({ runId }) => runId));
  const sql = "SELECT run_id FROM runs WHERE uid = ? AND silent = 0 AND started_at >= ?";
  return books.all(sql, uid, last.endedAt).some(({ run_id }) => !own.has(String(run_id)));
}

/** `before`: the row as it was when it was chosen. */
function claimOf(books: Books, before: RunRow, leafId: string | null): Claim | null {
  const row = books.row(before.runId);
  if (row === null) return null;
  const arrivals = books.rows("kept_for = ? AND state = 'queued' ORDER BY seq", row.runId).map(publicRun);
  const awaited = {
    stillOpen: awaitedBy(books, row.runId, arrivalMarks.open),
    endedSilent: awaitedBy(books, row.runId, arrivalMarks.ended),
  };
  const chain = lostBefore(books, row);
  const overtaken = isOvertaken(books, row, chain);
  const lost = overtaken ? null : (chain.at(-1) ?? null);
  return {
    run: publicRun(row),
    held: { runId: row.runId, fence: row.fence },
    leafId,
    how: howOf(before, lost),
    begunAt: lost?.startedAt ?? row.startedAt,
    isOvertaken: overtaken,
    arrivals,
    ...awaited,
  };
}

function awaitedBy(books: Books, runId: string, mark: number): string[] {
  const sql = "SELECT to_run FROM run_waits WHERE from_run = ? AND arrived = ?";
  return books.all(sql, runId, mark).map(({ to_run }) => String(to_run));
}

/** `lost`: counted, and once too often an error. `deferred`: it has all its time again, unless its input is written. */
export type RequeueReason = "lost" | "released" | "deferred";

/** Back into the queue, with the fence raised. */
export async function requeue(
  books: Books,
  row: RunRow,
  why: RequeueReason,
  isStill: (now: RunRow) => boolean,
): Promise<void> {
  const act = () =>
    books.change(endDurability(books, row.runId), () => {
      const now = books.row(row.runId);
      if (now === null || now.fence !== row.fence || now.owner !== row.owner || !isStill(now)) return false;
      giveBack(books, now, why);
      return true;
    });
  try {
    await books.options.underLock(row.session, act);
  } catch (error) {
    // The session is gone or its log cannot be read, so nobody can write into it: nothing is to be locked.
    if (!(error instanceof SkeinError) || !["not_found", "unreadable_file"].includes(error.code)) throw error;
    if (!act()) throw fenced(row);
  }
}

function giveBack(books: Books, row: RunRow, why: RequeueReason): void {
  const isLost = why === "lost";
  const next = nextState({ ...row, lost: isLost ? row.lost : 0 }, "lease_lost");
  books.run("DELETE FROM run_waits WHERE from_run = ? AND ? = 0", row.runId, row.isWoken ? 1 : 0);
  if (next === "error") {
    const lost = row.lost + 1;
    books.run("UPDATE runs SET lost = ? WHERE run_id = ?", lost, row.runId);
    const error = `Its process was lost ${lost} times. ${retryHint(row.runId)}`;
    endRun(books, { ...row, lost }, { state: "error", code: lostCode, error });
    return;
  }
  books.run(
    `UPDATE runs SET state = ?, rank = ?, fence = fence + 1, owner = NULL, lease_until = NULL, resuming = 0,
       lost = lost + ?, deadline = CASE WHEN ? AND written = 0 THEN NULL ELSE deadline END WHERE run_id = ?`,
    next,
    row.isWoken ? ranks.woken : ranks.recovered,
    isLost ? 1 : 0,
    // Input must not end by time before it is in the session.
    why === "deferred" ? 1 : 0,
    row.runId,
  );
  const queued = books.row(row.runId);
  if (queued === null) return;
  if (queued.abortRequested) {
    endRun(books, queued, { state: "aborted", code: "aborted", ...reasonOf(queued) });
    return;
  }
  books.note("run.queued", row.session, row.runId, { lane: row.lane, kind: row.kind });
  tellStarter(books, row, "queued");
  refreshQueue(books, row.session.uid);
}

export function reasonOf(row: RunRow): { error?: string } {
  return row.abortReason === null ? {} : { error: row.abortReason };
}

/** Runs whose owner is gone, or has said nothing for too long. */
export function lostRuns(books: Books, exceptOf: string | null): RunRow[] {
  const active = books.all(
    // Unforced, the planner reads every run there ever was, to have them in order.
    `SELECT run_id, owner, lease_until FROM runs INDEXED BY runs_active WHERE state IN ('running', 'waiting')
     AND owner IS NOT ? ORDER BY seq`,
    exceptOf,
  );
  const gone = new Map<string, boolean>();
  const isGone = (owner: string) => {
    const known = gone.get(owner) ?? books.options.isGone(owner);
    gone.set(owner, known);
    return known;
  };
  return active
    .filter(({ owner, lease_until }) => Number(lease_until) <= books.now() || isGone(String(owner)))
    .flatMap(({ run_id }) => books.row(String(run_id)) ?? [])
    .filter(({ session }) => books.options.hasStore(session.userId));
}

/**
 * Takes them from their owners. One whose session somebody holds, or that lives after all, is left for the next time.
 * Gives what went wrong with any of them.
 */
export async function takeBackLost(books: Books, exceptOf: string | null): Promise<unknown[]> {
  const problems: unknown[] = [];
  for (const row of lostRuns(books, exceptOf)) {
    const isStill = ({ leaseUntil, owner }: RunRow) =>
      owner !== null && ((leaseUntil ?? 0) <= books.now() || books.options.isGone(owner));
    await requeue(books, row, "lost", isStill).catch((error: unknown) => {
      if (!(error instanceof SkeinError) || !["fenced", "locked"].includes(error.code)) problems.push(error);
    });
  }
  return problems;
}
