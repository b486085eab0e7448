import type { ErrorCode } from "../../core/errors.ts";
import { SkeinError } from "../../core/errors.ts";
import type { FieldProblem } from "./read-inbound.ts";

/** Codes whose messages say nothing but what the sender sent or may know. */
const tellable: ReadonlySet<ErrorCode> = new Set([
  "unauthorized",
  "body_too_large",
  "message_too_large",
  "invalid_arguments",
  "invalid_agent_id",
  "invalid_user_id",
  "invalid_key",
  "forbidden",
  "not_found",
  "conflict",
  "idempotency_conflict",
]);

export function jsonResponse(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...headers },
  });
}

/** An error as the sender may see it: its code and status, and its message where that gives nothing away. */
export function errorResponse(error: unknown, problems?: readonly FieldProblem[]): Response {
  const known = error instanceof SkeinError ? error : null;
  const [code, status] = [known?.code ?? "internal", known?.status ?? 500];
  const isTellable = known !== null && tellable.has(known.code);
  const text = isTellable ? known.message : "The message was not taken. Send it again under the same id.";
  return jsonResponse(status, { code, error: text, ...(problems === undefined ? {} : { problems }) });
}

/** A refusal that HTTP has a status of its own for. */
export function refusal(status: 405 | 415, problem: string, advice: string): Response {
  const { code, message } = new SkeinError("invalid_arguments", { problem, advice });
  return jsonResponse(status, { code, error: message }, status === 405 ? { allow: "POST" } : {});
}
