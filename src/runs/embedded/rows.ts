import { hashedId } from "../../core/hashed-id.ts";
import type { Provenance } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { noUsage } from "../budget.ts";
import type {
  InputKind,
  Lane,
  Outcome,
  QueueMode,
  Run,
  RunOptions,
  RunState,
  RunUsage,
} from "../contract.ts";

/** A run with what only this store needs to know of it. */
export interface RunRow extends Run {
  readonly user: string;
  readonly arrivalOf: string | null;
  readonly abortReason: string | null;
  readonly isWritten: boolean;
  /** It slept, and has not yet written what it woke for. */
  readonly isWoken: boolean;
  readonly sleptAt: number | null;
  /** It has a sequel, or somebody awaits its reply. */
  readonly isFollowed: boolean;
}

export const selectRun = "SELECT * FROM runs JOIN run_inputs USING (seq)";

export function runOf(row: Record<string, unknown>): RunRow {
  return {
    runId: String(row.run_id),
    idempotencyKey: textOrNull(row.idem),
    session: sessionOf(row),
    seq: Number(row.seq),
    kind: row.kind as InputKind,
    lane: row.lane as Lane,
    queueMode: row.mode as QueueMode,
    message: JSON.parse(String(row.message)) as MessageDraft,
    entryId: String(row.entry_id),
    options: JSON.parse(String(row.options)) as RunOptions,
    provenance: jsonOrNull<Provenance>(row.provenance),
    root: { rootId: String(row.root), hops: Number(row.hops) },
    state: row.state as RunState,
    fence: Number(row.fence),
    owner: textOrNull(row.owner),
    leaseUntil: numberOrNull(row.lease_until),
    lost: Number(row.lost),
    createdAt: Number(row.created_at),
    startedAt: numberOrNull(row.started_at),
    endedAt: numberOrNull(row.ended_at),
    deadline: numberOrNull(row.deadline),
    outcome: jsonOrNull<Outcome>(row.outcome),
    usage: jsonOrNull<RunUsage>(row.usage) ?? noUsage,
    mergedInto: textOrNull(row.merged_into),
    keptFor: textOrNull(row.kept_for),
    startedBy: textOrNull(row.started_by),
    retryOf: textOrNull(row.retry_of),
    retriedAs: textOrNull(row.retried_as),
    app: row.app === "" ? null : String(row.app),
    requiredTools: JSON.parse(String(row.tools)) as string[],
    isSilent: Number(row.silent) === 1,
    abortRequested: Number(row.abort) === 1,
    user: String(row.user),
    arrivalOf: textOrNull(row.arrival_of),
    abortReason: textOrNull(row.abort_reason),
    isWritten: Number(row.written) === 1,
    isWoken: Number(row.woken) === 1,
    sleptAt: numberOrNull(row.slept_at),
    isFollowed: Number(row.followed) === 1,
  };
}

/** What others see of it. */
export function publicRun(row: RunRow): Run {
  const { user: _u, arrivalOf: _a, abortReason: _r, isWritten: _w, isWoken: _k, ...more } = row;
  const { sleptAt: _s, isFollowed: _f, ...run } = more;
  return run;
}

export function sessionOf(row: Record<string, unknown>): SessionRef {
  return {
    uid: String(row.uid),
    userId: row.user === "" ? null : String(row.user),
    agentId: String(row.agent),
    key: String(row.key),
    sessionId: String(row.session_id),
  };
}

/** A run that a client names by its own key has one id, whoever asks and whenever. */
export function runIdOf(userId: string | null, idempotencyKey: string): string {
  return hashedId("run", userId ?? "", idempotencyKey);
}

export function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

export function jsonOrNull<T>(value: unknown): T | null {
  return value === null || value === undefined ? null : (JSON.parse(String(value)) as T);
}
