import { messageWithoutPaths } from "../../core/errors.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { AccessAction } from "./access-policy.ts";

type AccessCode =
  | "self_visibility_restricted"
  | "tree_visibility_restricted"
  | "cross_agent_visibility_restricted"
  | "agent_to_agent_disabled"
  | "agent_to_agent_not_allowed"
  | "sandbox_restricted"
  | "not_found"
  | "ambiguous"
  | "lookup_failed";

/** `error` is for people and models, `code` for programs. */
export interface Refusal {
  readonly allowed: false;
  readonly status: "forbidden" | "error";
  readonly code: AccessCode;
  readonly error: string;
  /** A retry may give another result. */
  readonly retryable: boolean;
}

export type Decision = { readonly allowed: true } | Refusal;

export type Denial = Exclude<AccessCode, "not_found" | "ambiguous" | "lookup_failed">;

/** What each action is called in error messages. `allows`: what enabling agent-to-agent access would allow. */
const actionNames: Readonly<Record<AccessAction, { subject: string; between: string; allows: string }>> = {
  history: { subject: "Session history", between: "history", allows: "access" },
  send: { subject: "Session send", between: "messaging", allows: "sends" },
  status: { subject: "Session status", between: "status", allows: "access" },
  list: { subject: "Session list", between: "listing", allows: "visibility" },
};

export function refuseAccess(code: Denial, action: AccessAction): Refusal {
  return { allowed: false, status: "forbidden", code, error: denialText(code, action), retryable: false };
}

/** `reference`: as the asker wrote it. */
export function refuseMissing(reference: string): Refusal {
  const error = `Session not found: ${toSafeLine(reference)} (use the full sessionKey from sessions_list)`;
  return { allowed: false, status: "error", code: "not_found", error, retryable: false };
}

const maxCandidates = 5;

/** `candidates`: keys of sessions that the asker may see, and no others. */
export function refuseAmbiguous(reference: string, candidates: readonly string[]): Refusal {
  const more = candidates.length - maxCandidates;
  const named = candidates.slice(0, maxCandidates).map(toSafeLine).join(", ");
  const all = more > 0 ? `${named} and ${more} more` : named;
  const error = `Session reference is ambiguous: ${toSafeLine(reference)} means ${all} (use the full sessionKey of one of them)`;
  return { allowed: false, status: "error", code: "ambiguous", error, retryable: false };
}

/** Whether access is allowed is unknown, so this is not a denial. */
export function refuseFailedLookup(cause: unknown): Refusal {
  const error = `Session lookup failed: ${toSafeLine(messageWithoutPaths(cause))} (nothing was decided; try again)`;
  return { allowed: false, status: "error", code: "lookup_failed", error, retryable: true };
}

function denialText(code: Denial, action: AccessAction): string {
  const { subject, between, allows } = actionNames[action];
  switch (code) {
    case "self_visibility_restricted":
      return `${subject} visibility is restricted to the current session (tools.sessions.visibility=self).`;
    case "tree_visibility_restricted":
      return `${subject} visibility is restricted to the current session tree (tools.sessions.visibility=tree).`;
    case "cross_agent_visibility_restricted":
      return `${subject} visibility is restricted. Set tools.sessions.visibility=all to allow cross-agent access.`;
    case "agent_to_agent_disabled":
      return `Agent-to-agent ${between} is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent ${allows}.`;
    case "agent_to_agent_not_allowed":
      return `Agent-to-agent ${between} denied by tools.agentToAgent.allow.`;
    case "sandbox_restricted":
      return "Session not visible from this sandboxed agent session.";
  }
}

/** Makes text from outside safe to print in a message. */
function toSafeLine(text: string): string {
  return escapeToLine(text.length > 300 ? `${cutText(text, 300)}…` : text);
}
