import { present } from "../core/present.ts";
import type { MaintenanceDecisionPayload, MaintenanceReportPayload } from "../protocol/upkeep.ts";
import type { MaintenanceDecision } from "./maintenance.ts";

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
