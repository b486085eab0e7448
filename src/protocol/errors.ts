import type { ErrorCode } from "../core/errors.ts";
import { isOutOfDescriptors, SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";

/** The error codes that clients receive, with their HTTP status codes. */
export const wireErrors = {
  invalid_request: { status: 400 },
  unauthorized: { status: 401 },
  forbidden: { status: 403 },
  not_found: { status: 404 },
  ambiguous: { status: 409 },
  conflict: { status: 409 },
  idempotency_conflict: { status: 409 },
  too_large: { status: 413 },
  budget_exceeded: { status: 429 },
  rate_limited: { status: 429 },
  internal: { status: 500 },
  lookup_failed: { status: 503 },
  unavailable: { status: 503 },
} as const satisfies Record<string, { readonly status: number }>;

export type WireErrorCode = keyof typeof wireErrors;

export const wireErrorCodes = Object.keys(wireErrors) as WireErrorCode[];

/** The path of an invalid field in the params, such as `files[0].name`. Empty for the params as a whole. */
export const FieldProblemSchema = s.closed({ path: s.string(), problem: s.string() });
export type FieldProblem = s.Static<typeof FieldProblemSchema>;

export const WireErrorSchema = s.closed({
  code: s.choice(wireErrorCodes),
  message: s.string(),
  /** The last part of the message, which says what to do next. */
  remedy: s.optional(s.string()),
  details: s.optional(
    s.closed({
      /** For `invalid_request`: each invalid field. */
      problems: s.optional(s.array(FieldProblemSchema)),
      /** The more specific code from `docs/errors.md`, if there is one. */
      reason: s.optional(s.string()),
      /** For `internal`: the error's ID in the log. */
      errorId: s.optional(s.string()),
    }),
  ),
  /** Whether a retry might succeed. */
  retryable: s.optional(s.boolean()),
  retryAfterMs: s.optional(s.integer({ minimum: 0 })),
});
export type WireError = s.Static<typeof WireErrorSchema>;

interface Wired {
  readonly code: WireErrorCode;
  readonly isRetryable?: true;
  /** The message can name files and settings on the gateway's machine, so only admins see it. */
  readonly isPrivate?: true;
}

/**
 * How each error in the catalog is sent over the wire. The type is exhaustive, so adding a code without a row is a
 * compile error.
 */
export const wiredErrors: Readonly<Record<ErrorCode, Wired>> = {
  invalid_key: { code: "invalid_request" },
  invalid_agent_id: { code: "invalid_request" },
  invalid_session_id: { code: "invalid_request" },
  invalid_user_id: { code: "invalid_request" },
  invalid_path_segment: { code: "internal" },
  invalid_entry: { code: "invalid_request" },
  invalid_config: { code: "unavailable", isPrivate: true },
  invalid_arguments: { code: "invalid_request" },
  unauthorized: { code: "unauthorized" },
  forbidden: { code: "forbidden" },
  not_found: { code: "not_found" },
  ambiguous: { code: "ambiguous" },
  conflict: { code: "conflict" },
  idempotency_conflict: { code: "idempotency_conflict" },
  fenced: { code: "conflict" },
  locked: { code: "unavailable", isRetryable: true, isPrivate: true },
  write_failed: { code: "unavailable", isRetryable: true, isPrivate: true },
  store_damaged: { code: "unavailable", isPrivate: true },
  read_only: { code: "conflict" },
  not_a_session: { code: "invalid_request", isPrivate: true },
  unreadable_file: { code: "lookup_failed", isRetryable: true, isPrivate: true },
  too_large: { code: "too_large" },
  body_too_large: { code: "too_large" },
  message_too_large: { code: "too_large" },
  context_overflow: { code: "too_large" },
  budget_exceeded: { code: "budget_exceeded" },
  children_exceeded: { code: "budget_exceeded" },
  step_limit: { code: "budget_exceeded" },
  repeated_call: { code: "budget_exceeded" },
  model_failed: { code: "unavailable", isRetryable: true },
  model_auth: { code: "unavailable", isPrivate: true },
  model_not_found: { code: "not_found" },
  invalid_output: { code: "unavailable", isRetryable: true },
  delivery_failed: { code: "unavailable", isRetryable: true },
  unavailable: { code: "unavailable", isRetryable: true },
  store_unknown: { code: "unavailable", isPrivate: true },
  database_unavailable: { code: "unavailable", isRetryable: true, isPrivate: true },
  blobs_unavailable: { code: "unavailable", isRetryable: true, isPrivate: true },
  database_full: { code: "unavailable", isRetryable: true, isPrivate: true },
  database_read_only: { code: "unavailable", isRetryable: true, isPrivate: true },
  database_too_old: { code: "unavailable", isPrivate: true },
  database_behind: { code: "unavailable", isPrivate: true },
  database_ahead: { code: "unavailable", isPrivate: true },
  acp_unavailable: { code: "unavailable", isPrivate: true },
  acp_failed: { code: "unavailable", isPrivate: true },
  acp_unsupported: { code: "invalid_request" },
  acp_busy: { code: "unavailable", isRetryable: true },
  internal: { code: "internal" },
};

const withheld =
  "The request failed because of a problem on the gateway's machine. Only admins can see the details.";

/**
 * Converts a thrown value to the error that a client is allowed to see. An unexpected error becomes `internal` with
 * only an ID from `newErrorId`. The caller logs the error under that ID.
 */
export function wireErrorOf(
  error: unknown,
  reader: { readonly isAdmin: boolean; newErrorId(): string },
): WireError {
  if (isOutOfDescriptors(error)) return outOfDescriptors;
  const known = error instanceof SkeinError ? (error as SkeinError) : null;
  const wired = known === null ? null : wiredErrors[known.code];
  if (known === null || wired === null || wired.code === "internal") {
    const errorId = reader.newErrorId();
    const message = `An internal error occurred in the gateway. Look for ${errorId} in its log for details.`;
    return { code: "internal", message, details: { errorId } };
  }
  const { code, isRetryable, isPrivate } = wired;
  const isWithheld = isPrivate === true && !reader.isAdmin;
  return present({
    code,
    message: isWithheld ? withheld : known.message,
    remedy: isWithheld ? undefined : known.remedy,
    details: known.code === code ? undefined : { reason: known.code },
    retryable: isRetryable,
  });
}

const outOfDescriptors: WireError = {
  code: "unavailable",
  message: "The gateway has run out of file descriptors. Try again later.",
  retryable: true,
  retryAfterMs: 1000,
};

/** The error for invalid params. */
export function invalidRequest(problems: readonly FieldProblem[]): WireError {
  const [first] = problems;
  const more = problems.length > 1 ? `, and ${problems.length - 1} more` : "";
  const what =
    first === undefined ? "" : `: ${first.path === "" ? "" : `${first.path} `}${first.problem}${more}`;
  return {
    code: "invalid_request",
    message: `The params are invalid${what}. See details.problems for all invalid fields.`,
    details: { problems: [...problems] },
  };
}
