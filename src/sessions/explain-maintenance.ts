import { present } from "../core/present.ts";
import type { MaintenanceDecisionPayload, MaintenanceReportPayload } from "../protocol/upkeep.ts";
import type { TrashedSession } from "../store/contract.ts";
import { bytesInWords, countInWords, timeInWords } from "./in-words.ts";
import type {
  MaintainedSession,
  MaintenanceDecision,
  MaintenanceInput,
  MaintenanceRule,
} from "./maintenance.ts";
import { diskUse, planMaintenance, protectionOf } from "./maintenance.ts";

/** What maintenance means for one session: a line for each rule, whether it applies, when, and if not, why not. */
export function explainMaintenance(
  session: MaintainedSession | TrashedSession,
  input: MaintenanceInput,
): string {
  const decision = planMaintenance(input).find(({ uid }) => uid === session.uid);
  const lines = {
    pruneAfter: pruning(session, input),
    maxSessions: counting(session, input),
    maxDiskBytes: weighing(session, input),
    trashAfter: isTrashed(session) ? emptying(session, input) : "it is not in the trash",
  } satisfies Record<MaintenanceRule, string>;
  const does = input.rules.mode === "enforce" ? "" : " (mode is warn: it is only said, not done)";
  const now =
    decision === undefined ? "nothing" : `${decision.action}${does}, by ${decision.rule}: ${decision.why}`;
  return [`now: ${now}`, ...Object.entries(lines).map(([rule, text]) => `${rule}: ${text}`)].join("\n");
}

function isTrashed(session: MaintainedSession | TrashedSession): session is TrashedSession {
  return "removedAt" in session;
}

function pruning(session: MaintainedSession | TrashedSession, input: MaintenanceInput): string {
  const { pruneAfter } = input.rules;
  if (pruneAfter === null) return "no limit is set";
  if (isTrashed(session)) return "it is in the trash already";
  const protection = protectionOf(session, input);
  if (protection !== null) return `does not apply: ${protection}`;
  const idle = input.now - session.activeAt;
  const left = pruneAfter - idle;
  const figures = `no activity for ${timeInWords(idle)} of ${timeInWords(pruneAfter)}`;
  return left <= 0
    ? `applies: ${figures}`
    : `would go to the trash in ${timeInWords(left, Math.ceil)} (${figures})`;
}

function counting(session: MaintainedSession | TrashedSession, input: MaintenanceInput): string {
  const { maxSessions } = input.rules;
  if (maxSessions === null) return "no limit is set";
  if (isTrashed(session)) return "it is in the trash, and does not count";
  if (session.archived) return "it is archived, and does not count";
  const ofUser = input.sessions.filter(({ userId, archived }) => userId === session.userId && !archived);
  const figures = `${countInWords(ofUser.length, "session")} of this user, ${maxSessions.toLocaleString("en-US")} at the most`;
  const protection = protectionOf(session, input);
  if (protection !== null) return `does not apply: ${protection} (${figures})`;
  const newer = ofUser.filter(({ activeAt }) => activeAt > session.activeAt).length;
  return `${ofUser.length > maxSessions ? "exceeded" : "not reached"}: ${figures}; ${countInWords(newer, "session")} newer than this one`;
}

function weighing(session: MaintainedSession | TrashedSession, input: MaintenanceInput): string {
  const use = diskUse(input);
  if (use === null) return "no limit is set";
  const figures = `${bytesInWords(use.bytes)} are used of ${bytesInWords(use.limit)}, ${bytesInWords(session.bytes)} by this one`;
  const protection = isTrashed(session) ? null : protectionOf(session, input);
  if (protection !== null) return `does not apply: ${protection} (${figures})`;
  if (use.bytes <= use.limit) return `not reached: ${figures}`;
  return `exceeded: ${figures}; room is made down to ${bytesInWords(use.target)}`;
}

function emptying({ removedAt }: TrashedSession, { rules: { trashAfter }, now }: MaintenanceInput): string {
  if (trashAfter === null) return "no limit is set";
  const left = trashAfter - (now - removedAt);
  const figures = `in the trash for ${timeInWords(now - removedAt)} of ${timeInWords(trashAfter)}`;
  return left <= 0
    ? `applies: ${figures}`
    : `would be purged in ${timeInWords(left, Math.ceil)} (${figures})`;
}

/** What maintenance decided about a session, as it is told. */
export function decisionPayload(decision: MaintenanceDecision): MaintenanceDecisionPayload {
  const { userId, key, sessionId, action, rule, why } = decision;
  return present({ userId, key, sessionId, action, rule, why });
}

/** What the rules mean for one session; empty where none was asked about. */
export function explainedPayload(
  session: { readonly key: string; readonly sessionId: string } | null,
  lines: readonly string[] | null,
): Pick<MaintenanceReportPayload, "explained"> {
  if (session === null || lines === null) return {};
  const { key, sessionId } = session;
  return { explained: { key, sessionId, lines: [...lines] } };
}
