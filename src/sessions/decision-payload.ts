import { present } from "../core/present.ts";
import type { MaintenanceDecisionPayload } from "../protocol/upkeep.ts";
import type { MaintenanceDecision } from "./maintenance.ts";

/** What maintenance decided about a session, as it is told. */
export function decisionPayload(decision: MaintenanceDecision): MaintenanceDecisionPayload {
  const { userId, key, sessionId, action, rule, why } = decision;
  return present({ userId, key, sessionId, action, rule, why });
}
