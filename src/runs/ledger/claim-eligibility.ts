import { SkeinError } from "../../core/errors.ts";
import type { Script } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { AcceptRequest, Run, RunOptions } from "../contract.ts";
import { refreshQueue } from "./ready-queue.ts";
import type { RunLedger, RunRow, RunTransaction } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";

/**
 * Determines which processes can claim a run. If its agent is defined in code, the run belongs to an app and can be
 * claimed only by a process of that app that offers the run's tools. All other runs belong to no app and can be claimed
 * by any process that has the agent.
 */

/** The requirements as column values: the app, or an empty string if there is none, and the tool names as JSON. */
export interface RunRequirements {
  readonly app: string;
  readonly tools: string;
}

const noRequirements: RunRequirements = { app: "", tools: "[]" };

/**
 * Returns the claim requirements of new input. They come from the run that it retries or from an earlier run in the
 * same request and session, if there is one. Otherwise, the input requires this process's app if that app defines the
 * agent in code, or else the app that last ran the session.
 */
export function* resolveRequirements(
  tx: RunTransaction,
  request: AcceptRequest,
  isSilent: boolean,
): Script<RunRequirements> {
  if (isSilent) return noRequirements;
  const { session, root, options, retryOf } = request;
  const { userId, uid, key, agentId } = session;
  const before =
    retryOf === undefined
      ? root && (yield* requirementsOfRun(tx, "root = ? AND uid = ? AND silent = 0", root.rootId, uid))
      : yield* requirementsOfRun(tx, "run_id = ?", retryOf);
  if (before !== undefined) return before;
  const here = tx.options.agentHere(agentId, key, options?.tools);
  const own = here?.app ?? null;
  if (here !== null && own !== null) return { app: own, tools: JSON.stringify(here.tools) };
  const sql = "SELECT app, tools FROM session_apps WHERE user = ? AND key = ?";
  return readRequirements(yield* tx.get(sql, userId ?? "", key)) ?? noRequirements;
}

function* requirementsOfRun(
  tx: RunTransaction,
  where: string,
  ...values: string[]
): Script<RunRequirements | undefined> {
  const sql = `SELECT app, tools FROM runs WHERE ${where} ORDER BY seq DESC LIMIT 1`;
  return readRequirements(yield* tx.get(sql, ...values));
}

function readRequirements(row: Record<string, unknown> | undefined): RunRequirements | undefined {
  return row === undefined ? undefined : { app: String(row.app), tools: String(row.tools) };
}

/**
 * Records the app of the session's last run. Later input that arrives in a process without the agent requires the same
 * app.
 */
export function* rememberSessionApp(
  tx: RunTransaction,
  session: SessionRef,
  { app, tools }: RunRequirements,
): Script<void> {
  const at = [session.userId ?? "", session.key] as const;
  const known = yield* tx.get("SELECT app, tools FROM session_apps WHERE user = ? AND key = ?", ...at);
  if ((known?.app ?? "") === app && (known?.tools ?? "[]") === tools) return;
  if (app === "") yield* tx.run("DELETE FROM session_apps WHERE user = ? AND key = ?", ...at);
  else {
    const sql = `INSERT INTO session_apps (user, key, app, tools) VALUES (?, ?, ?, ?)
      ON CONFLICT (user, key) DO UPDATE SET app = excluded.app, tools = excluded.tools`;
    yield* tx.run(sql, ...at, app, tools);
  }
}

interface MissingRequirements {
  readonly app: string | null;
  /** The required tools that this process does not offer. Set only if it has the app and the agent. */
  readonly tools: readonly string[];
}

/** Returns the claim requirements that this process does not meet, or `null` if it meets all of them. */
export function findMissingHere(
  tx: RunTransaction,
  { session, app, requiredTools, options }: Pick<Run, "session" | "app" | "requiredTools" | "options">,
): MissingRequirements | null {
  const here = tx.options.agentHere(session.agentId, session.key, options.tools);
  if (app === null) return here === null ? { app, tools: [] } : null;
  if (here === null || here.app !== app) return { app, tools: [] };
  const tools = requiredTools.filter((name) => !here.tools.includes(name));
  return tools.length === 0 ? null : { app, tools };
}

/** Lets any process that has the agent claim this run and later runs in its session. */
export function* releaseFromApp(tx: RunTransaction, runId: string): Script<Run | null> {
  const row = yield* tx.row(runId);
  if (row === null) return null;
  if (row.app === null) return publicRun(row);
  if (row.owner !== null || row.endedAt !== null) {
    const problem = `The run ${runId} is ${row.outcome?.state ?? row.state} and is not waiting for an app`;
    throw new SkeinError("conflict", { problem, advice: "List the waiting runs with skein runs ls" });
  }
  const { app, tools } = noRequirements;
  yield* tx.run("UPDATE runs SET app = ?, tools = ? WHERE run_id = ?", app, tools, runId);
  yield* rememberSessionApp(tx, row.session, noRequirements);
  yield* refreshQueue(row.session.uid);
  if (row.state === "queued") tx.addQueued(row);
  return publicRun({ ...row, app: null, requiredTools: [] });
}

/** How long a loop turn stays open without a new message. A single model step with its tools takes less time. */
const loopTurnMs = 10 * 60_000;

/**
 * Opens or extends a turn in an application's own agent loop. No process claims a run in the session until the turn
 * ends, its process dies, or nothing has been appended for ten minutes. Returns `true` if the turn is new. Throws
 * `conflict` if another process has a turn open.
 */
export function* openLoopTurn(
  tx: RunTransaction,
  { uid, sessionId }: Pick<SessionRef, "uid" | "sessionId">,
  owner: string,
): Script<boolean> {
  const current = yield* loopTurnOwner(tx, uid);
  if (current !== null && current !== owner) throw answeredElsewhere(sessionId);
  const sql = `INSERT INTO loop_turns (uid, owner, lease_until) VALUES (?, ?, ?)
    ON CONFLICT (uid) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until`;
  yield* tx.run(sql, uid, owner, tx.now() + loopTurnMs);
  return current === null;
}

/** Throws `conflict` if another process has a loop turn open. */
export function* checkLoopTurn(
  tx: RunTransaction,
  { uid, sessionId }: Pick<SessionRef, "uid" | "sessionId">,
): Script<void> {
  const owner = yield* loopTurnOwner(tx, uid);
  if (owner !== null && owner !== tx.options.owner) throw answeredElsewhere(sessionId);
}

function answeredElsewhere(sessionId: string): SkeinError {
  const problem = `Another process's agent loop is answering in session ${sessionId}`;
  return new SkeinError("conflict", { problem, advice: "Try again after that turn has ended" });
}

export async function endLoopTurns(ledger: RunLedger, uid: string | null, owner: string): Promise<boolean> {
  const sql = "DELETE FROM loop_turns WHERE owner = ? AND uid = coalesce(?, uid)";
  return (await ledger.change("unsynced", null, (tx) => tx.run(sql, owner, uid))) > 0;
}

/** Returns the process that has a loop turn open in the session, or `null` if there is none. */
export function* loopTurnOwner(tx: RunTransaction, uid: string): Script<string | null> {
  const row = yield* tx.get("SELECT owner, lease_until FROM loop_turns WHERE uid = ?", uid);
  if (row === undefined || Number(row.lease_until) <= tx.now()) return null;
  return tx.options.isGone(String(row.owner)) ? null : String(row.owner);
}

/** Announcements that arrive within this window share one turn. */
const batchMs = 1000;

/**
 * Returns the time until which an announcement is held, or `null` if no sibling run is open and it need not be held.
 */
export function* batchEnd(tx: RunTransaction, { kind, arrivalOf }: AcceptRequest): Script<number | null> {
  if (kind !== "announce" || arrivalOf === undefined) return null;
  const starter = (yield* tx.get("SELECT started_by FROM runs WHERE run_id = ?", arrivalOf))?.started_by;
  if (starter === null || starter === undefined) return null;
  return (yield* hasOpenSiblings(tx, String(starter), arrivalOf)) ? tx.now() + batchMs : null;
}

function* hasOpenSiblings(tx: RunTransaction, starter: string, except: string): Script<boolean> {
  const sql = "SELECT 1 FROM runs WHERE started_by = ? AND run_id <> ? AND ended_at IS NULL LIMIT 1";
  return (yield* tx.get(sql, starter, except)) !== undefined;
}

/** Releases a batch of announcements once the last sibling run has ended. */
export function* releaseCompleteBatch(tx: RunTransaction, { startedBy, runId }: RunRow): Script<void> {
  if (startedBy === null || (yield* hasOpenSiblings(tx, startedBy, runId))) return;
  const held = yield* tx.all(
    `SELECT run_id, uid FROM runs WHERE arrival_of IN (SELECT run_id FROM runs WHERE started_by = ?)
     AND state = 'queued' AND not_before IS NOT NULL`,
    startedBy,
  );
  yield* releaseBatch(tx, held);
}

export function* isBatchDue(tx: RunTransaction): Script<boolean> {
  const at = yield* nextBatchAt(tx);
  return at !== null && at <= tx.now();
}

export function* nextBatchAt(tx: RunTransaction): Script<number | null> {
  const sql = "SELECT min(not_before) AS at FROM runs INDEXED BY runs_held_back WHERE not_before IS NOT NULL";
  const at = (yield* tx.get(sql))?.at;
  return at === null || at === undefined ? null : Number(at);
}

export async function releaseDueBatches(ledger: RunLedger): Promise<void> {
  if (!(await ledger.read(isBatchDue))) return;
  const due = "SELECT DISTINCT user FROM runs WHERE not_before IS NOT NULL AND not_before <= ?";
  for (const { user } of await ledger.read((tx) => tx.all(due, ledger.now()))) {
    const whose = { userId: user === "" ? null : String(user) };
    await ledger.change("unsynced", whose, (tx) => releaseDue(tx, String(user)));
  }
}

function* releaseDue(tx: RunTransaction, user: string): Script<void> {
  const sql = "SELECT run_id, uid FROM runs WHERE user = ? AND not_before IS NOT NULL AND not_before <= ?";
  yield* releaseBatch(tx, yield* tx.all(sql, user, tx.now()));
}

function* releaseBatch(tx: RunTransaction, held: readonly Record<string, unknown>[]): Script<void> {
  for (const { run_id } of held)
    yield* tx.run("UPDATE runs SET not_before = NULL WHERE run_id = ?", String(run_id));
  for (const uid of new Set(held.map((each) => String(each.uid)))) yield* refreshQueue(uid);
}

/**
 * Adds the session's other announcements to the turn of a claimed announcement, unless their delivery target or options
 * differ.
 */
export function* joinAnnouncements(tx: RunTransaction, claimed: RunRow): Script<void> {
  const { kind, arrivalOf, isSilent, startedAt, session, seq, runId } = claimed;
  if (kind !== "announce" || arrivalOf === null || isSilent || startedAt !== null) return;
  const others = yield* tx.rows(
    `uid = ? AND state = 'queued' AND kind = 'announce' AND arrival_of IS NOT NULL AND silent = 0
     AND kept_for IS NULL AND started_at IS NULL AND seq <> ? ORDER BY seq`,
    session.uid,
    seq,
  );
  const terms = answerTermsOf(claimed.options);
  const isOfThisTurn = (row: RunRow) =>
    answerTermsOf(row.options) === terms && findMissingHere(tx, row) === null;
  for (const each of others.filter(isOfThisTurn))
    yield* tx.run("UPDATE runs SET kept_for = ?, not_before = NULL WHERE run_id = ?", runId, each.runId);
}

/** Returns a key that is the same for all runs that one answer can serve. */
function answerTermsOf({ sequel: _, deliverTo, ...options }: RunOptions): string {
  const { channel, to, accountId, threadId } = deliverTo ?? {};
  const rest = Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([[channel, to, accountId, threadId], rest]);
}
