import type {
  ApprovalPayload,
  OutboxRowPayload,
  RunRowPayload,
  SentPayload,
} from "../../../protocol/runs.ts";
import type { Approval, OutboxRow, Run, RunWaits } from "../../../runs/contract.ts";
import { approvalRow, outboxRowPayload, runRow, sentPayload } from "../../../sessions/skein/run-views.ts";
import type { Call, SkeinDeps } from "../../calls/contract.ts";
import { pathless } from "../../masking/pathless.ts";

/** Payloads for one reader: whoever is no admin gets every text that somebody said or wrote without its secrets. */
export interface Shown {
  run(run: Run, waits: RunWaits | null): RunRowPayload;
  sent(run: Run): SentPayload;
  approval(approval: Approval): ApprovalPayload;
  outbox(row: OutboxRow): OutboxRowPayload;
  /** Any value of others. */
  value<T>(value: T): T;
}

/** Ids and keys are not touched: a client has to find with them what they name. */
const textsOfRun = ["preview", "reply", "output", "error"];
const textsOfApproval = ["arguments"];
const textsOfOutbox = ["text", "lastError", "receipt"];

export function shownTo(
  { redactor }: Pick<SkeinDeps, "redactor">,
  { isAdmin }: Pick<Call, "isAdmin">,
): Shown {
  const safe = pathless(redactor);
  const value = <T>(given: T): T => (isAdmin ? given : (safe.redactJson(given).value as T));
  const fields = <T extends object>(payload: T, names: readonly string[]): T => {
    if (isAdmin) return payload;
    const texts = Object.entries(payload).filter(([name]) => names.includes(name));
    return { ...payload, ...value(Object.fromEntries(texts)) };
  };
  return {
    run: (run, waits) => fields(runRow(run, waits, value), textsOfRun),
    sent: (run) => fields(sentPayload(run), textsOfRun),
    approval: (approval) => fields(approvalRow(approval), textsOfApproval),
    outbox: (row) => fields(outboxRowPayload(row), textsOfOutbox),
    value,
  };
}
