import { messageWithoutPaths } from "../../core/errors.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { AccessAction } from "./policy.ts";

export type AccessCode =
  | "self_visibility_restricted"
  | "tree_visibility_restricted"
  | "cross_agent_visibility_restricted"
  | "agent_to_agent_disabled"
  | "agent_to_agent_not_allowed"
  | "sandbox_restricted"
  | "not_found"
  | "ambiguous"
  | "lookup_failed";

/** A refusal as the tools answer it: `error` for people and models, `code` for programs. */
export interface Refusal {
  readonly allowed: false;
  readonly status: "forbidden" | "error";
  readonly code: AccessCode;
  readonly error: string;
  /** The same question may be answered otherwise a moment later. */
  readonly retryable: boolean;
}

export type Decision = { readonly allowed: true } | Refusal;

interface Wording {
  readonly subject: string;
  readonly between: string;
  /** What turning agent-to-agent on would allow. */
  readonly allows: string;
}

const wordings: { readonly [Action in AccessAction]: Wording } = {
  history: { subject: "Session history", between: "history", allows: "access" },
  send: { subject: "Session send", between: "messaging", allows: "sends" },
  status: { subject: "Session status", between: "status", allows: "access" },
  list: { subject: "Session list", between: "listing", allows: "visibility" },
};

export type Denial = Exclude<AccessCode, "not_found" | "ambiguous" | "lookup_failed">;

export function denied(code: Denial, action: AccessAction): Refusal {
  const error = denialText(code, wordings[action]);
  return { allowed: false, status: "forbidden", code, error, retryable: false };
}

/** `reference`: what the asker wrote. */
export function notFound(reference: string): Refusal {
  const error = `Session not found: ${shown(reference)} (use the full sessionKey from sessions_list)`;
  return { allowed: false, status: "error", code: "not_found", error, retryable: false };
}

const mostCandidates = 5;

/** `candidates`: keys of sessions that the asker may see, and of no others. */
export function ambiguous(reference: string, candidates: readonly string[]): Refusal {
  const more = candidates.length - mostCandidates;
  const named = candidates.slice(0, mostCandidates).map(shown).join(", ");
  const all = more > 0 ? `${named} and ${more} more` : named;
  const error = `Session reference is ambiguous: ${shown(reference)} means ${all} (use the full sessionKey of one of them)`;
  return { allowed: false, status: "error", code: "ambiguous", error, retryable: false };
}

/** Nobody knows whether it is allowed, so this is no denial. */
export function lookupFailed(cause: unknown): Refusal {
  const error = `Session lookup failed: ${shown(messageWithoutPaths(cause))} (nothing was decided; try again)`;
  return { allowed: false, status: "error", code: "lookup_failed", error, retryable: true };
}

function denialText(code: Denial, { subject, between, allows }: Wording): string {
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

/** Text from outside inside a message. */
function shown(text: string): string {
  return escapeToLine(text.length > 300 ? `${cutText(text, 300)}…` : text);
}
