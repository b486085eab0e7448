import { hashedId } from "../../core/hashed-id.ts";
import type { Approval, ApprovalRequest, Held } from "../contract.ts";
import type { Books } from "./books.ts";
import { numberOrNull, textOrNull } from "./rows.ts";

/** Questions to people about a tool call. Each is called in a transaction. */

/** The same call of the same run is the same question, also after its owner was lost. */
export function askFor(books: Books, held: Held, request: ApprovalRequest): Approval | null {
  const row = books.held(held);
  const approvalId = hashedId("approval", row.runId, request.toolCallId);
  const known = approvalOf(books, approvalId);
  if (known !== null) return known;
  const { toolCallId, toolName, expiresAt } = request;
  books.run(
    `INSERT INTO approvals (approval_id, run_id, user, tool_call_id, tool_name, arguments, requested_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    approvalId,
    row.runId,
    row.user,
    toolCallId,
    toolName,
    JSON.stringify(request.arguments),
    books.now(),
    expiresAt,
  );
  const asked = { approvalId, toolCallId, toolName, arguments: request.arguments, expiresAt };
  books.note("approval.requested", row.session, row.runId, asked);
  return approvalOf(books, approvalId);
}

/** The first answer stands. */
export function answer(
  books: Books,
  approvalId: string,
  given: "approved" | "denied" | "expired",
  by: string | null,
): Approval | null {
  const sql =
    "UPDATE approvals SET answer = ?, resolved_at = ?, by = ? WHERE approval_id = ? AND answer IS NULL";
  const isFirst = books.run(sql, given, books.now(), by, approvalId) === 1;
  const approval = approvalOf(books, approvalId);
  if (approval !== null && isFirst) {
    books.note("approval.resolved", approval.session, approval.runId, { approvalId, answer: given, by });
  }
  return approval;
}

export function approvalOf(books: Books, approvalId: string): Approval | null {
  return found(books, "approval_id = ?", approvalId)[0] ?? null;
}

/** Oldest first. */
export function approvalsOf(
  books: Books,
  query: { readonly runId?: string; readonly open?: boolean },
  userId: string | null | undefined,
): Approval[] {
  const parts: [string, string][] = [];
  if (query.runId !== undefined) parts.push(["run_id = ?", query.runId]);
  if (userId !== undefined) parts.push(["user = ?", userId ?? ""]);
  const open = query.open === undefined ? [] : [`answer IS ${query.open ? "" : "NOT "}NULL`];
  const where = [...parts.map(([text]) => text), ...open, "true"].join(" AND ");
  return found(books, `${where} ORDER BY requested_at, approval_id`, ...parts.map(([, value]) => value));
}

export function expired(books: Books): string[] {
  const sql = "SELECT approval_id FROM approvals WHERE answer IS NULL AND expires_at <= ?";
  return books.all(sql, books.now()).map((row) => String(row.approval_id));
}

function found(books: Books, where: string, ...values: string[]): Approval[] {
  return books.all(`SELECT * FROM approvals WHERE ${where}`, ...values).flatMap((row) => {
    const run = books.row(String(row.run_id));
    if (run === null) return [];
    return {
      approvalId: String(row.approval_id),
      runId: run.runId,
      session: run.session,
      toolCallId: String(row.tool_call_id),
      toolName: String(row.tool_name),
      arguments: JSON.parse(String(row.arguments)) as Record<string, unknown>,
      expiresAt: Number(row.expires_at),
      requestedAt: Number(row.requested_at),
      answer: textOrNull(row.answer) as Approval["answer"],
      resolvedAt: numberOrNull(row.resolved_at),
      by: textOrNull(row.by),
    };
  });
}
