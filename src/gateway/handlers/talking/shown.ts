import type {
  ApprovalPayload,
  OutboxRowPayload,
  RunRowPayload,
  SentPayload,
} from "../../../protocol/runs.ts";
import type { Approval, OutboxRow, Run, RunWaits } from "../../../runs/contract.ts";
import { approvalRow, outboxRowPayload, runRow, sentPayload } from "../../../sessions/run-views.ts";
import type { Call, SkeinDeps } from "../../calls/contract.ts";
import { maskFor } from "../../masking/mask.ts";

/** Payloads for one reader: whoever is no admin gets every text that somebody said or wrote without its secrets. */
export interface Shown {
  run(run: Run, waits: RunWaits | null): RunRowPayload;
  sent(run: Run, waits: RunWaits | null): SentPayload;
  approval(approval: Approval): ApprovalPayload;
  outbox(row: OutboxRow): OutboxRowPayload;
  /** Any value of others. */
  value<T>(value: T): T;
}

/** Ids and keys are not touched: a client has to find with them what they name. */
const textsOfRun = ["preview", "reply", "output", "error"];
const textsOfApproval = ["arguments"];
const textsOfOutbox = ["text", "lastError", "receipt"];

export function shownTo(deps: Pick<SkeinDeps, "redactor">, call: Pick<Call, "isAdmin">): Shown {
  const mask = maskFor(deps, call);
  const fields = <T extends object>(payload: T, names: readonly string[]): T => {
    if (mask.isOff) return payload;
    const texts = Object.entries(payload).filter(([name]) => names.includes(name));
    return { ...payload, ...mask.plain(Object.fromEntries(texts)) };
  };
  return {
    run: (run, waits) =>
      fields(
        runRow(run, waits, (text) => mask.text(text)),
        textsOfRun,
      ),
    sent: (run, waits) => fields(sentPayload(run, waits), textsOfRun),
    approval: (approval) => fields(approvalRow(approval), textsOfApproval),
    outbox: (row) => fields(outboxRowPayload(row), textsOfOutbox),
    value: (value) => mask.plain(value),
  };
}
