import { SkeinError } from "../../core/errors.ts";
import { hashedId, inputEntryId } from "../../core/hashed-id.ts";
import { present } from "../../core/present.ts";
import { budgetExceeded, reserveRun } from "../budget.ts";
import type { Accepted, AcceptRequest, InputKind, QueueMode } from "../contract.ts";
import { laneOf, ranks } from "../lanes.ts";
import { checkRepeatedInput } from "../same-request.ts";
import { retryableCodes } from "../states.ts";
import type { Books } from "./books.ts";
import { tellStarter } from "./child-events.ts";
import { checkRoom, registerChild } from "./children.ts";
import type { Claimants } from "./claimants.ts";
import { claimantsOf, rememberApp } from "./claimants.ts";
import { heldBackUntil } from "./company.ts";
import { arrived, endRun } from "./ending.ts";
import { sleeperFor } from "./following.ts";
import { refreshQueue } from "./queue.ts";
import { awaitReply } from "./replies.ts";
import { countPair, pairCount, rootFigures, writeFigures } from "./roots.ts";
import type { RunRow } from "./rows.ts";
import { publicRun, runIdOf } from "./rows.ts";

/** Takes input in, in the transaction that it is called in. */
export function acceptInput(books: Books, request: AcceptRequest): Accepted {
  const known = knownRun(books, request);
  if (known !== null) {
    const run = publicRun(known);
    if (request.idempotencyKey !== undefined) checkRepeatedInput(run, request, request.session.key);
    return { run, isNew: false };
  }
  const { session, kind, idempotencyKey, child, awaitedBy } = request;
  if (child !== undefined) checkRoom(books, session, child);
  const runId =
    request.runId ??
    (idempotencyKey === undefined ? books.options.newId() : runIdOf(session.userId, idempotencyKey));
  const root = request.root ?? { rootId: runId, hops: 0 };
  const isSilent = kind === "note" || !reserve(books, request, root);
  const keeper = request.arrivalOf === undefined ? null : sleeperFor(books, request.arrivalOf, session.uid);
  const queueMode = request.queueMode ?? defaultMode(books, kind);
  const claimants = claimantsOf(books, request, isSilent);
  insert(books, request, { runId, root, isSilent, keeper, queueMode, claimants });
  if (!isSilent) rememberApp(books, session, claimants);
  if (child !== undefined) registerChild(books, runId, session, child);
  if (awaitedBy !== undefined) awaitReply(books, runId, awaitedBy);
  if (queueMode === "interrupt") interrupt(books, session.uid);
  const made = books.row(runId);
  if (made === null) throw new SkeinError("internal", { problem: `run ${runId} is not where it was put` });
  books.note("run.queued", session, runId, {
    lane: made.lane,
    kind,
    ...present({ startedBy: made.startedBy }),
  });
  tellStarter(books, made, "queued");
  refreshQueue(books, session.uid);
  if (request.arrivalOf !== undefined) arrived(books, request.arrivalOf, "announced");
  return { run: publicRun(made), isNew: true };
}

function knownRun(books: Books, { session, runId, idempotencyKey }: AcceptRequest): RunRow | null {
  const user = session.userId ?? "";
  const byKey = idempotencyKey === undefined ? [] : books.rows("user = ? AND idem = ?", user, idempotencyKey);
  // A run whose input was redacted has lost the key that its client gave, and is known by the id that follows from the key.
  const id = runId ?? (idempotencyKey === undefined ? null : runIdOf(session.userId, idempotencyKey));
  const known = byKey[0] ?? (id === null ? null : books.row(id));
  if (known === null || known.user === user) return known;
  const problem = `The run id ${id} is taken`;
  throw new SkeinError("conflict", { problem, advice: "Leave it out, and a new one is made" });
}

/** `false`: over the budget, and a delivery. Nothing is charged for it: no model is asked. */
function reserve(books: Books, request: AcceptRequest, root: { rootId: string; hops: number }): boolean {
  const { pair } = request;
  const asked = {
    hops: root.hops,
    pairCount: pair === undefined ? null : pairCount(books, root.rootId, pair),
  };
  const reserved = reserveRun(rootFigures(books, root.rootId), asked, books.options.limits);
  if ("refusal" in reserved) {
    if (request.isDelivery === true) return false;
    throw budgetExceeded(root.rootId, reserved.refusal);
  }
  writeFigures(books, root.rootId, reserved.figures);
  if (pair !== undefined) countPair(books, root.rootId, pair);
  return true;
}

function defaultMode({ options }: Books, kind: InputKind): QueueMode {
  return kind === "user" || kind === "channel" ? options.queueMode : "followup";
}

function insert(
  books: Books,
  request: AcceptRequest,
  made: {
    readonly runId: string;
    readonly root: { readonly rootId: string; readonly hops: number };
    readonly isSilent: boolean;
    readonly keeper: string | null;
    readonly queueMode: QueueMode;
    readonly claimants: Claimants;
  },
): void {
  const { session, kind, idempotencyKey, options = {}, provenance, arrivalOf, startedBy } = request;
  const { runId, root, isSilent, keeper, queueMode, claimants } = made;
  const notBefore = isSilent || keeper !== null ? null : heldBackUntil(books, request);
  const isFollowed = options.sequel !== undefined || request.awaitedBy !== undefined;
  const rank = isSilent ? ranks.silent : queueMode === "interrupt" ? ranks.interrupt : ranks.other;
  books.run(
    `INSERT INTO runs (run_id, user, idem, uid, agent, key, session_id, kind, lane, mode, rank, entry_id, root, hops,
       state, created_at, kept_for, arrival_of, started_by, silent, not_before, followed, retry_of, app, tools)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    runId,
    session.userId ?? "",
    idempotencyKey ?? null,
    session.uid,
    session.agentId,
    session.key,
    session.sessionId,
    kind,
    laneOf(kind),
    queueMode,
    rank,
    request.entryId ?? inputEntryId(runId),
    root.rootId,
    root.hops,
    books.now(),
    keeper,
    arrivalOf ?? null,
    startedBy ?? null,
    isSilent ? 1 : 0,
    notBefore,
    isFollowed ? 1 : 0,
    request.retryOf ?? null,
    claimants.app,
    claimants.tools,
  );
  books.run(
    "INSERT INTO run_inputs (seq, message, options, provenance) SELECT seq, ?, ?, ? FROM runs WHERE run_id = ?",
    JSON.stringify(request.message),
    JSON.stringify(options),
    provenance === undefined ? null : JSON.stringify(provenance),
    runId,
  );
}

/** Queues the input again of a run that was lost or stopped by a disk fault, in the transaction that it is called in. */
export function retryLost(books: Books, runId: string): Accepted | null {
  const asked = books.row(runId);
  if (asked === null) return null;
  const lost = asked.mergedInto === null ? asked : (books.row(asked.mergedInto) ?? asked);
  if (!retryableCodes.includes(lost.outcome?.code ?? "")) {
    const problem = `The run ${runId} is ${asked.outcome?.state ?? asked.state}, and was not lost`;
    throw new SkeinError("conflict", {
      problem,
      advice:
        "Only runs that lost their process or failed because of the disk are retried; send the message again",
    });
  }
  const known = lost.retriedAs === null ? null : books.row(lost.retriedAs);
  if (known !== null) return { run: publicRun(known), isNew: false };
  const { session, kind, message, entryId, options, provenance, root, startedBy } = lost;
  const target = books.sessionAt(session.userId, { key: session.key });
  if (target === null) {
    const advice = "Restore the session first: skein sessions restore";
    throw new SkeinError("not_found", { what: "Session", name: session.key, advice });
  }
  const accepted = acceptInput(books, {
    session: target,
    kind,
    message,
    runId: hashedId("retry", lost.runId),
    entryId,
    queueMode: "followup",
    options,
    root,
    retryOf: lost.runId,
    ...present({ provenance, startedBy }),
  });
  books.run("UPDATE runs SET retried_as = ? WHERE run_id = ?", accepted.run.runId, lost.runId);
  // What stands in the session does not wait to be written.
  const isThere = lost.isWritten && target.uid === session.uid;
  if (isThere) books.run("UPDATE runs SET written = 1 WHERE run_id = ?", accepted.run.runId);
  return accepted;
}

/** Whoever is at it stops, so that this comes next. A turn that was begun and has lost its owner ends at once. */
function interrupt(books: Books, uid: string): void {
  const error = "New input took its place.";
  const sql = "UPDATE runs SET abort = 1, abort_reason = ? WHERE uid = ? AND state IN ('running', 'waiting')";
  books.run(sql, error, uid);
  const begun =
    "uid = ? AND state = 'queued' AND started_at IS NOT NULL AND written = 1 AND woken = 0 AND silent = 0";
  for (const row of books.rows(begun, uid)) endRun(books, row, { state: "aborted", code: "aborted", error });
}
