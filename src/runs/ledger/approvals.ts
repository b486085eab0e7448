import { hashedId } from "../../core/hashed-id.ts";
import { canonicalJson } from "../../core/json.ts";
import type { Script, SqlValue } from "../../core/script.ts";
import type { Approval, ApprovalIdentity, ApprovalQuery, ApprovalRequest, HeldRun } from "../contract.ts";
import type { RunTransaction } from "./run-ledger.ts";
import { numberOrNull, sessionOf, textOrNull } from "./run-ledger.ts";

/**
 * Returns the approval for a tool call. A repeated call in the same run gets the same approval, even if the run has
 * lost its owner since.
 */
export function* requestApproval(
  tx: RunTransaction,
  held: HeldRun,
  request: ApprovalRequest & ApprovalIdentity,
): Script<Approval> {
  const row = yield* tx.held(held);
  const approvalId = approvalIdOf(row.runId, request);
  const known = (yield* findApproval(tx, approvalId)) ?? (yield* findEarlier(tx, row.runId, request));
  if (known !== null) return known;
  const { toolCallId, toolName, expiresAt } = request;
  const requestedAt = tx.now();
  yield* tx.run(
    `INSERT INTO approvals (approval_id, run_id, user, tool_call_id, tool_name, arguments, requested_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    approvalId,
    row.runId,
    row.user,
    toolCallId,
    toolName,
    JSON.stringify(request.arguments),
    requestedAt,
    expiresAt,
  );
  const asked = { approvalId, toolCallId, toolName, arguments: request.arguments, expiresAt };
  tx.addEvent("approval.requested", row.session, row.runId, asked);
  const { runId, session } = row;
  return { ...asked, runId, session, requestedAt, answer: null, resolvedAt: null, by: null, note: null };
}

function approvalIdOf(runId: string, { toolCallId, callDigest }: ApprovalRequest & ApprovalIdentity): string {
  return hashedId("approval", runId, toolCallId, ...(callDigest === undefined ? [] : [callDigest]));
}

/** Earlier builds stored approvals without digests. Such an approval applies only to the call it was requested for. */
function* findEarlier(
  tx: RunTransaction,
  runId: string,
  { callDigest: _, ...request }: ApprovalRequest & ApprovalIdentity,
): Script<Approval | null> {
  if (request.isReplay !== true) return null;
  const stored = yield* findApproval(tx, approvalIdOf(runId, request));
  if (stored === null || stored.toolName !== request.toolName) return null;
  return canonicalJson(stored.arguments) === canonicalJson(request.arguments) ? stored : null;
}

/** Records an answer. The first answer is final. An answer after the deadline is recorded as `expired`. */
export function* resolveApproval(
  tx: RunTransaction,
  approvalId: string,
  given: "approved" | "denied" | "expired",
  givenBy: string | null,
  givenNote: string | null = null,
): Script<Approval | null> {
  const asked = yield* findApproval(tx, approvalId);
  if (asked === null || asked.answer !== null) return asked;
  const resolvedAt = tx.now();
  const isLate = given === "expired" || asked.expiresAt <= resolvedAt;
  const [answer, by] = isLate ? (["expired", null] as const) : [given, givenBy];
  const note = answer === "denied" ? givenNote : null;
  const sql = "UPDATE approvals SET answer = ?, resolved_at = ?, by = ?, note = ? WHERE approval_id = ?";
  yield* tx.run(sql, answer, resolvedAt, by, note, approvalId);
  tx.addEvent("approval.resolved", asked.session, asked.runId, { approvalId, answer, by });
  return { ...asked, answer, resolvedAt, by, note };
}

export function* findApproval(tx: RunTransaction, approvalId: string): Script<Approval | null> {
  return (yield* queryApprovals(tx, "approval_id = ?", approvalId))[0] ?? null;
}

/** More than can be pending at once. */
const mostApprovals = 1_000_000;

/** Lists approvals, oldest first. `limit` returns only the newest ones. */
export function* listApprovals(
  tx: RunTransaction,
  { runId, sessionUid, open, limit = mostApprovals }: ApprovalQuery,
  userId?: string | null,
): Script<Approval[]> {
  const parts: [string, string][] = [];
  if (runId !== undefined) parts.push(["approvals.run_id = ?", runId]);
  if (sessionUid !== undefined) parts.push(["uid = ?", sessionUid]);
  if (userId !== undefined) parts.push(["approvals.user = ?", userId ?? ""]);
  const state = open === undefined ? [] : [`answer IS ${open ? "" : "NOT "}NULL`];
  const where = [...parts.map(([text]) => text), ...state, "true"].join(" AND ");
  const sql = `${where} ORDER BY requested_at DESC, approval_id DESC LIMIT ?`;
  return (yield* queryApprovals(tx, sql, ...parts.map(([, value]) => value), limit)).reverse();
}

export function* listExpiredApprovals(tx: RunTransaction): Script<string[]> {
  const sql = "SELECT approval_id FROM approvals WHERE answer IS NULL AND expires_at <= ?";
  return (yield* tx.all(sql, tx.now())).map((row) => String(row.approval_id));
}

function* queryApprovals(tx: RunTransaction, where: string, ...values: SqlValue[]): Script<Approval[]> {
  const sql = `SELECT approvals.*, uid, agent, key, session_id FROM approvals JOIN runs USING (run_id) WHERE ${where}`;
  return (yield* tx.all(sql, ...values)).map((row) => ({
    approvalId: String(row.approval_id),
    runId: String(row.run_id),
    session: sessionOf(row),
    toolCallId: String(row.tool_call_id),
    toolName: String(row.tool_name),
    arguments: JSON.parse(String(row.arguments)) as Record<string, unknown>,
    expiresAt: Number(row.expires_at),
    requestedAt: Number(row.requested_at),
    answer: textOrNull(row.answer) as Approval["answer"],
    resolvedAt: numberOrNull(row.resolved_at),
    by: textOrNull(row.by),
    note: textOrNull(row.note),
  }));
}
