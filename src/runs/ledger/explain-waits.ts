import type { Script } from "../../core/script.ts";
import type { Lane, LaneCount, OpenWork, RunState, RunWaits, RunWhy } from "../contract.ts";
import { lanes } from "../lanes.ts";
import { readWaits } from "./query-runs.ts";
import { slotOf, takenSlots } from "./ready-queue.ts";
import type { RunTransaction } from "./run-ledger.ts";
import { numberOrNull } from "./run-ledger.ts";

/**
 * Explains what each run is waiting for, in one sentence. The number of queries is constant, regardless of the number
 * of runs.
 */
export function* explainWaits(tx: RunTransaction, runIds: readonly string[]): Script<Map<string, RunWaits>> {
  const waits = yield* readWaits(tx, runIds);
  const rows = yield* tx.all(openRuns, tx.now(), JSON.stringify(runIds));
  if (rows.length === 0) return waits;
  const facts = { asked: yield* askedBy(tx, runIds), taken: yield* takenSlots("and resuming") };
  for (const row of rows) {
    const runId = String(row.run_id);
    const known = waits.get(runId);
    if (known === undefined) continue;
    const why = explainOne(tx, row, known, facts);
    if (why !== null) waits.set(runId, { ...known, why });
  }
  return waits;
}

export function* explainWait(tx: RunTransaction, runId: string): Script<RunWaits | null> {
  return (yield* explainWaits(tx, [runId])).get(runId) ?? null;
}

type Row = Readonly<Record<string, unknown>>;

/** Limits the count so that one long queue does not slow down every row of a page. */
const mostAhead = 1000;

/**
 * `ahead` is the number of runs ahead of this one in its session. It is 0 for a run that is waiting only for a free
 * slot.
 */
const openRuns = `SELECT run_id, uid, user, agent, key, state, lane, silent, kept_for, not_before, resuming, abort,
    (SELECT owner FROM loop_turns WHERE loop_turns.uid = runs.uid AND loop_turns.lease_until > ?) AS loop_owner,
    CASE WHEN state <> 'queued' OR EXISTS (SELECT 1 FROM ready WHERE ready.uid = runs.uid AND ready.seq = runs.seq) THEN 0
    ELSE (SELECT count(*) FROM runs AS busy WHERE busy.uid = runs.uid AND busy.state IN ('running', 'waiting'))
      + (SELECT count(*) FROM (SELECT 1 FROM runs AS early WHERE early.uid = runs.uid AND early.state = 'queued'
           AND early.kept_for IS NULL AND (early.rank, early.seq) < (runs.rank, runs.seq) LIMIT ${mostAhead}) AS first) END AS ahead
  FROM runs WHERE run_id IN (SELECT value FROM json_each(?)) AND ended_at IS NULL`;

interface Facts {
  /** Pending approvals by run. */
  readonly asked: ReadonlyMap<string, readonly Row[]>;
  readonly taken: Readonly<Record<Lane, number>>;
}

function* askedBy(
  tx: RunTransaction,
  runIds: readonly string[],
): Script<ReadonlyMap<string, readonly Row[]>> {
  const sql = `SELECT run_id, approval_id, tool_name FROM approvals
    WHERE run_id IN (SELECT value FROM json_each(?)) AND answer IS NULL ORDER BY requested_at`;
  return Map.groupBy(yield* tx.all(sql, JSON.stringify(runIds)), ({ run_id }) => String(run_id));
}

function explainOne(tx: RunTransaction, row: Row, waits: RunWaits, facts: Facts): RunWhy | null {
  const state = row.state as RunState;
  if (Number(row.abort) === 1)
    return {
      kind: "stopping",
      text: "It has been asked to stop, and will end as soon as its process responds.",
    };
  if (waits.isOwnerGone === true)
    return {
      kind: "owner",
      text: "Its process has died. The next process that has its agent will continue it.",
    };
  switch (state) {
    case "queued":
      return explainQueued(tx, row, waits, facts);
    case "waiting":
      return explainWaiting(tx, row, waits, facts);
    case "sleeping": {
      const { runIds, wakeAt } = waits;
      const text = `Sleeping until ${countRuns(runIds.length)} ended.`;
      return { kind: "runs", text, runIds, ...(wakeAt === null ? {} : { retryAt: wakeAt }) };
    }
    case "merged":
      return { kind: "runs", text: "Another run's turn is answering it.", runIds: waits.runIds };
    default:
      return null;
  }
}

function explainWaiting(tx: RunTransaction, row: Row, { runIds }: RunWaits, facts: Facts): RunWhy {
  const [first, ...others] = facts.asked.get(String(row.run_id)) ?? [];
  if (first !== undefined) {
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    const text = `Waiting for a person to approve ${String(first.tool_name)}${more}.`;
    return { kind: "approval", text, approvalId: String(first.approval_id) };
  }
  if (Number(row.resuming) === 1 || runIds.length === 0) return waitsForLane(tx, row.lane as Lane);
  return { kind: "runs", text: `Waiting until ${countRuns(runIds.length)} ended.`, runIds };
}

function explainQueued(tx: RunTransaction, row: Row, waits: RunWaits, facts: Facts): RunWhy {
  const { runIds } = waits;
  if (row.kept_for !== null)
    return { kind: "runs", text: "Another run's turn is reading it.", runIds: [String(row.kept_for)] };
  if (!tx.options.hasWorkers())
    return { kind: "worker", text: "No worker is running. It will start as soon as one does." };
  const process = processFor(tx, row, waits);
  if (process !== null) return { kind: "app", text: `Waiting for a process ${process}.` };
  if (row.loop_owner !== null && !tx.options.isGone(String(row.loop_owner)))
    return { kind: "owner", text: "Waiting for the application's own loop to end its turn." };
  const ahead = Number(row.ahead);
  if (ahead > 0) {
    const count = ahead >= mostAhead ? `${mostAhead} or more runs` : ahead === 1 ? "1 run" : `${ahead} runs`;
    return { kind: "ahead", text: `Waiting for ${count} ahead of it in this session.`, ahead, runIds };
  }
  const notBefore = numberOrNull(row.not_before);
  if (notBefore !== null)
    return { kind: "runs", text: "Waiting for announcements that can share its turn.", retryAt: notBefore };
  const slot = slotOf(Number(row.silent) === 1, row.lane as Lane);
  if (slot !== "none" && facts.taken[slot] >= tx.options.lanes[slot]) return waitsForLane(tx, slot);
  return { kind: "owner", text: "It will start as soon as a process claims it." };
}

/** Describes the process that the run needs, or returns `null` if this process can execute it. */
function processFor(tx: RunTransaction, row: Row, { app, missingTools }: RunWaits): string | null {
  if (app !== null) {
    const tools = missingTools.length === 0 ? "" : ` that offers ${missingTools.join(", ")}`;
    return `of the app ${app}${tools}`;
  }
  const { hasStore, agentHere } = tx.options;
  const agentId = String(row.agent);
  if (!hasStore(row.user === "" ? null : String(row.user))) return "that has its user's store";
  return agentHere(agentId, String(row.key)) === null ? `that has the agent ${agentId}` : null;
}

function waitsForLane(tx: RunTransaction, lane: Lane): RunWhy {
  const text = `Waiting for a free slot in the lane ${lane}, which runs at most ${tx.options.lanes[lane]} at a time.`;
  return { kind: "lane", text, lane };
}

function countRuns(count: number): string {
  return count === 1 ? "1 run has" : `${count} runs have`;
}

/** Counts the runs in each lane. `queued` counts the sessions whose next run is waiting only for a free slot. */
export function* countLanes(tx: RunTransaction, userId?: string | null): Script<readonly LaneCount[]> {
  const [whose, values]: [string, string[]] =
    userId === undefined ? ["true", []] : ["user = ?", [userId ?? ""]];
  const running = yield* tx.all(
    `SELECT lane, count(*) AS count FROM runs INDEXED BY runs_active
     WHERE state IN ('running', 'waiting') AND state = 'running' AND silent = 0 AND ${whose} GROUP BY lane`,
    ...values,
  );
  const queued = yield* tx.all(
    `SELECT slot AS lane, sum(count) AS count FROM ready_users WHERE count > 0 AND ${whose} GROUP BY slot`,
    ...values,
  );
  const countIn = (rows: readonly Row[], lane: Lane) =>
    Number(rows.find((row) => row.lane === lane)?.count ?? 0);
  return lanes.map((lane) => ({
    lane,
    limit: tx.options.lanes[lane],
    running: countIn(running, lane),
    queued: countIn(queued, lane),
  }));
}

/** Counts the runs that each owner executes. A run that waits for an answer or for other runs does not count. */
export function* countByOwner(tx: RunTransaction): Script<ReadonlyMap<string, number>> {
  const rows = yield* tx.all(
    `SELECT owner, count(*) AS count FROM runs INDEXED BY runs_active
     WHERE state IN ('running', 'waiting') AND state = 'running' AND owner IS NOT NULL GROUP BY owner`,
  );
  return new Map(rows.map(({ owner, count }) => [String(owner), Number(count)]));
}

export function* countOpenWork(tx: RunTransaction): Script<OpenWork> {
  const states = yield* tx.all(
    "SELECT state, count(*) AS count FROM runs WHERE ended_at IS NULL GROUP BY state",
  );
  const [waiting] = yield* tx.all("SELECT count(*) AS count FROM outbox WHERE state = 'queued'");
  return {
    runs: new Map(states.map(({ state, count }) => [state as RunState, Number(count)])),
    outbox: Number(waiting?.count ?? 0),
  };
}
