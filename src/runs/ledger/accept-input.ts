import { SkeinError } from "../../core/errors.ts";
import { hashedId, inputEntryId } from "../../core/hashed-id.ts";
import { present } from "../../core/present.ts";
import type { Script } from "../../core/script.ts";
import type { Accepted, AcceptRequest, InputKind, QueueMode, RootRef } from "../contract.ts";
import { laneByKind, ranks } from "../lanes.ts";
import { checkRepeatedInput } from "../same-request.ts";
import { isResumable } from "../states.ts";
import { budgetExceeded, countPair, figuresOrNone, pairCount, reserveRun, writeFigures } from "./budgets.ts";
import { checkChildLimit, emitChildState, registerChild } from "./children.ts";
import type { RunRequirements } from "./claim-eligibility.ts";
import { batchEnd, rememberSessionApp, resolveRequirements } from "./claim-eligibility.ts";
import { endRun, markArrived } from "./end-run.ts";
import { refreshQueue } from "./ready-queue.ts";
import type { RunLedger, RunRow, RunTransaction } from "./run-ledger.ts";
import { publicRun, runIdOf } from "./run-ledger.ts";
import { awaitReply, findSleeper } from "./start-sequel.ts";

/**
 * Accepts input whose session was looked up before this transaction. If the session has been reset since then, the
 * session that now has its key receives the input, as it receives input that was queued before the reset.
 */
function* acceptAtKey(tx: RunTransaction, request: AcceptRequest): Script<Accepted> {
  if (request.isDelayed !== true) return yield* acceptInput(tx, request);
  const { userId, key } = request.session;
  const session = (yield* tx.sessionAt(userId, { key })) ?? request.session;
  return yield* acceptInput(tx, { ...request, session });
}

/** Accepts input within the current transaction. */
export function* acceptInput(tx: RunTransaction, request: AcceptRequest): Script<Accepted> {
  const known = yield* findKnownRun(tx, request);
  if (known !== null) {
    const run = publicRun(known);
    if (request.idempotencyKey !== undefined) checkRepeatedInput(run, request, request.session.key);
    return { run, isNew: false };
  }
  const { session, kind, idempotencyKey, child, awaitedBy } = request;
  if (child !== undefined) yield* checkChildLimit(tx, session, child);
  const runId =
    request.runId ??
    (idempotencyKey === undefined ? tx.options.newId() : runIdOf(session.userId, idempotencyKey));
  const root = request.root ?? { rootId: runId, hops: 0 };
  const isSilent = kind === "note" || !(yield* reserveBudget(tx, request, root));
  const keptFor =
    request.arrivalOf === undefined ? null : yield* findSleeper(tx, request.arrivalOf, session.uid);
  const queueMode = request.queueMode ?? defaultQueueMode(tx, kind);
  const requirements = yield* resolveRequirements(tx, request, isSilent);
  yield* insertRun(tx, request, { runId, root, isSilent, keptFor, queueMode, requirements });
  if (!isSilent) yield* rememberSessionApp(tx, session, requirements);
  if (child !== undefined) yield* registerChild(tx, runId, session, child);
  if (awaitedBy !== undefined) yield* awaitReply(tx, runId, awaitedBy);
  if (queueMode === "interrupt") yield* interruptSession(tx, session.uid);
  const made = yield* tx.row(runId);
  if (made === null)
    throw new SkeinError("internal", { problem: `run ${runId} is missing after being inserted` });
  tx.addEvent("run.queued", session, runId, {
    lane: made.lane,
    kind,
    ...present({ startedBy: made.startedBy }),
  });
  if (kind === "spawn") yield* emitChildState(tx, made, "queued");
  yield* refreshQueue(session.uid);
  if (request.arrivalOf !== undefined) yield* markArrived(tx, request.arrivalOf, "announced");
  return { run: publicRun(made), isNew: true };
}

function* findKnownRun(
  tx: RunTransaction,
  { session, runId, idempotencyKey }: AcceptRequest,
): Script<RunRow | null> {
  const user = session.userId ?? "";
  const byKey =
    idempotencyKey === undefined ? [] : yield* tx.rows("user = ? AND idem = ?", user, idempotencyKey);
  // Redaction erases the idempotency key but keeps the run ID derived from it.
  const id = runId ?? (idempotencyKey === undefined ? null : runIdOf(session.userId, idempotencyKey));
  const known = byKey[0] ?? (id === null ? null : yield* tx.row(id));
  if (known === null || known.user === user) return known;
  const problem = `The run ID ${id} is already taken`;
  throw new SkeinError("conflict", { problem, advice: "Omit it to get a new one" });
}

/**
 * Returns `false` for a delivery that exceeds the budget. Such a delivery is not charged because it has no model turn.
 */
function* reserveBudget(tx: RunTransaction, request: AcceptRequest, root: RootRef): Script<boolean> {
  const { pair } = request;
  const asked = {
    hops: root.hops,
    pairCount: pair === undefined ? null : yield* pairCount(tx, root.rootId, pair),
  };
  const reserved = reserveRun(yield* figuresOrNone(tx, root.rootId), asked, tx.options.limits);
  if ("refusal" in reserved) {
    if (request.isDelivery === true) return false;
    throw budgetExceeded(root.rootId, reserved.refusal);
  }
  yield* writeFigures(tx, root.rootId, reserved.figures);
  if (pair !== undefined) yield* countPair(tx, root.rootId, pair);
  return true;
}

function defaultQueueMode({ options }: RunTransaction, kind: InputKind): QueueMode {
  return kind === "user" || kind === "channel" ? options.queueMode : "followup";
}

function* insertRun(
  tx: RunTransaction,
  request: AcceptRequest,
  made: {
    readonly runId: string;
    readonly root: RootRef;
    readonly isSilent: boolean;
    readonly keptFor: string | null;
    readonly queueMode: QueueMode;
    readonly requirements: RunRequirements;
  },
): Script<void> {
  const { session, kind, idempotencyKey, options = {}, provenance, arrivalOf, startedBy } = request;
  const { runId, root, isSilent, keptFor, queueMode, requirements } = made;
  const notBefore = isSilent || keptFor !== null ? null : yield* batchEnd(tx, request);
  const isFollowed = options.sequel !== undefined || request.awaitedBy !== undefined;
  const rank = isSilent ? ranks.silent : queueMode === "interrupt" ? ranks.interrupt : ranks.other;
  yield* tx.run(
    `INSERT INTO runs (run_id, user, idem, uid, agent, key, session_id, kind, lane, mode, rank, entry_id, root, hops,
       state, created_at, kept_for, arrival_of, started_by, silent, not_before, followed, retry_of, app, tools,
       source)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    runId,
    session.userId ?? "",
    idempotencyKey ?? null,
    session.uid,
    session.agentId,
    session.key,
    session.sessionId,
    kind,
    laneByKind[kind],
    queueMode,
    rank,
    request.entryId ?? inputEntryId(runId),
    root.rootId,
    root.hops,
    tx.now(),
    keptFor,
    arrivalOf ?? null,
    startedBy ?? null,
    isSilent ? 1 : 0,
    notBefore,
    isFollowed ? 1 : 0,
    request.retryOf ?? null,
    requirements.app,
    requirements.tools,
    provenance?.sourceSessionKey ?? null,
  );
  yield* tx.run(
    "INSERT INTO run_inputs (seq, message, options, provenance) SELECT seq, ?, ?, ? FROM runs WHERE run_id = ?",
    JSON.stringify(request.message),
    JSON.stringify(options),
    provenance === undefined ? null : JSON.stringify(provenance),
    runId,
  );
}

/**
 * Requeues the input of an unsuccessful run within the current transaction. The retry of a lost run belongs to the
 * same request and budget. The retry of a failed top-level run starts a new request.
 */
export function* retryRun(tx: RunTransaction, runId: string): Script<Accepted | null> {
  const asked = yield* tx.row(runId);
  if (asked === null) return null;
  const failed = asked.mergedInto === null ? asked : ((yield* tx.row(asked.mergedInto)) ?? asked);
  checkRetryable(asked, failed);
  const known = failed.retriedAs === null ? null : yield* tx.row(failed.retriedAs);
  if (known !== null) return { run: publicRun(known), isNew: false };
  const { session, kind, message, entryId, options, provenance, root, startedBy } = failed;
  const target = yield* tx.sessionAt(session.userId, { key: session.key });
  if (target === null) {
    const advice = "Restore the session first with skein sessions restore";
    throw new SkeinError("not_found", { what: "Session", name: session.key, advice });
  }
  const isNewRequest = !isResumable(failed) && root.rootId === failed.runId;
  const accepted = yield* acceptInput(tx, {
    session: target,
    kind,
    message,
    runId: hashedId("retry", failed.runId),
    entryId,
    queueMode: "followup",
    options,
    retryOf: failed.runId,
    ...present({ provenance, startedBy, root: isNewRequest ? null : root }),
  });
  yield* tx.run("UPDATE runs SET retried_as = ? WHERE run_id = ?", accepted.run.runId, failed.runId);
  const isWritten = failed.isWritten && target.uid === session.uid;
  if (isWritten) yield* tx.run("UPDATE runs SET written = 1 WHERE run_id = ?", accepted.run.runId);
  return accepted;
}

function checkRetryable(asked: RunRow, { outcome, isSilent }: RunRow): void {
  if (outcome !== null && outcome.state !== "ok" && !isSilent) return;
  const problem = `The run ${asked.runId} is ${asked.outcome?.state ?? asked.state} and cannot be retried`;
  throw new SkeinError("conflict", {
    problem,
    advice:
      "Only runs that ended with an error, a timeout or an abort can be retried. Send the message again",
  });
}

/** Asks the session's active run to stop. A turn that has started but has no owner ends immediately. */
function* interruptSession(tx: RunTransaction, uid: string): Script<void> {
  const error = "The run was interrupted by new input.";
  const sql = "UPDATE runs SET abort = 1, abort_reason = ? WHERE uid = ? AND state IN ('running', 'waiting')";
  yield* tx.run(sql, error, uid);
  const begun =
    "uid = ? AND state = 'queued' AND started_at IS NOT NULL AND written = 1 AND woken = 0 AND silent = 0";
  for (const row of yield* tx.rows(begun, uid))
    yield* endRun(tx, row, { state: "aborted", code: "aborted", error });
}

/** The maximum number of inputs per transaction, because a transaction blocks the process. */
const maxBatch = 500;

interface PendingRequest {
  readonly request: AcceptRequest;
  resolve(accepted: Accepted): void;
  reject(error: unknown): void;
}

/** Batches concurrent input into one transaction with one sync. */
export class Inbox {
  readonly #ledger: RunLedger;
  #waiting: PendingRequest[] = [];

  constructor(ledger: RunLedger) {
    this.#ledger = ledger;
  }

  /** Accepts input and resolves once it is on disk. */
  accept(request: AcceptRequest): Promise<Accepted> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ request, resolve, reject }) === 1) setImmediate(() => this.#acceptSome());
    });
  }

  #acceptSome(): void {
    const some = this.#waiting.splice(0, maxBatch);
    if (this.#waiting.length > 0) setImmediate(() => this.#acceptSome());
    const requests = some.map(({ request }) => request);
    this.#ledger.changeEach(requests, acceptAtKey).then(
      (settled) => {
        for (const [index, each] of settled.entries())
          if (each.status === "fulfilled") some[index]?.resolve(each.value);
          else some[index]?.reject(each.reason);
      },
      (error: unknown) => {
        for (const { reject } of some) reject(error);
      },
    );
  }
}
