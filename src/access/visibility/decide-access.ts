import { messageWithoutPaths } from "../../core/errors.ts";
import { readAgentId } from "../../core/names.ts";
import { inLine } from "../../core/text.ts";
import type { AccessAction, AccessPolicy, Visibility } from "./access-policy.ts";
import { checkAgentPair } from "./access-policy.ts";

/** A caller without a key is not in a session, so no session is its own or in its tree. */
export interface AccessAsker {
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string | null;
}

/** The lookup failed, so it is unknown whether the session exists. */
export interface FailedLookup {
  readonly failed: unknown;
}

interface AccessPorts {
  /** The reference to the session as the caller wrote it. */
  readonly reference: string;
  readonly isInTree: TreeCheck;
}

/** In the order of evaluation. */
export type AccessRule =
  | "lookup"
  | "itself"
  | "self_visibility"
  | "in_tree"
  | "sandboxed"
  | "exists"
  | "tree_visibility"
  | "same_agent"
  | "agent_visibility"
  | "agent_to_agent_enabled"
  | "agent_to_agent_allowed";

/** One rule that was evaluated, and its outcome. */
export interface AccessStep {
  readonly rule: AccessRule;
  /** `pass` means that the next rule decides. */
  readonly outcome: "allow" | "refuse" | "pass";
  readonly reason: string;
}

/** Whether a caller is allowed to act on a session, and why. */
export interface AccessExplanation {
  readonly decision: Decision;
  /** Every rule that was evaluated. The last rule made the decision. */
  readonly steps: readonly AccessStep[];
}

/**
 * Decides access and lists every rule that was evaluated. The explanation reveals no more than the decision does.
 * Another user's session looks like a missing one, and a sandboxed caller receives the same answer for everything
 * outside its tree.
 */
export async function explainAccess(
  asker: AccessAsker,
  target: AccessTarget | FailedLookup | null,
  action: AccessAction,
  policy: AccessPolicy,
  ports: AccessPorts,
): Promise<AccessExplanation> {
  const visibility = policy.visibility[action];
  const failure = target !== null && "failed" in target ? target : null;
  const there = target === null || "failed" in target || target.userId !== asker.userId ? null : target;
  const asked: Case = { asker, target: there, failure, action, visibility, policy, ports };
  const steps: AccessStep[] = [];
  for (const [rule, ask] of rules) {
    const verdict = await ask(asked);
    if (typeof verdict === "string") {
      steps.push({ rule, outcome: "pass", reason: verdict });
      continue;
    }
    const reason = "error" in verdict ? verdict.error : verdict.because;
    steps.push({ rule, outcome: "error" in verdict ? "refuse" : "allow", reason });
    return { decision: "error" in verdict ? verdict : { allowed: true }, steps };
  }
  // The last rule always decides. This line would deny access if that rule were ever removed.
  return { decision: refuseAccess("agent_to_agent_not_allowed", action), steps };
}

interface Case {
  readonly asker: AccessAsker;
  /** Set only for sessions that belong to the caller's user. */
  readonly target: AccessTarget | null;
  readonly failure: FailedLookup | null;
  readonly action: AccessAction;
  readonly visibility: Visibility;
  readonly policy: AccessPolicy;
  readonly ports: AccessPorts;
}

/** A string is the reason why the rule made no decision. The next rule then decides. */
type Verdict = string | Refusal | { readonly because: string };

type Rule = (asked: Case) => Verdict | Promise<Verdict>;

const rules: readonly (readonly [AccessRule, Rule])[] = [
  [
    "lookup",
    ({ failure }) => (failure === null ? "The lookup succeeded." : refuseFailedLookup(failure.failed)),
  ],
  [
    "itself",
    ({ asker, target }) =>
      target !== null && target.key === asker.key
        ? { because: "It is the requester's own session." }
        : "It is not the requester's own session.",
  ],
  ["self_visibility", (asked) => refuseIf(asked, "self_visibility_restricted", asked.visibility === "self")],
  ["in_tree", inTree],
  [
    "sandboxed",
    ({ policy, action }) =>
      policy.sandboxed ? refuseAccess("sandbox_restricted", action) : "The requester is not sandboxed.",
  ],
  [
    "exists",
    ({ target, ports }) => (target === null ? refuseMissing(ports.reference) : "The session exists."),
  ],
  [
    "tree_visibility",
    (asked) =>
      // An unknown visibility is treated as the most restrictive one.
      refuseIf(
        asked,
        "tree_visibility_restricted",
        asked.visibility !== "agent" && asked.visibility !== "all",
      ),
  ],
  [
    "same_agent",
    ({ asker, target }) =>
      canonical(asker.agentId) === canonical(target?.agentId ?? "")
        ? { because: "It belongs to the requester's agent." }
        : "It belongs to another agent.",
  ],
  [
    "agent_visibility",
    (asked) => refuseIf(asked, "cross_agent_visibility_restricted", asked.visibility !== "all"),
  ],
  [
    "agent_to_agent_enabled",
    ({ policy, action }) =>
      policy.agentToAgent.enabled
        ? "tools.agentToAgent.enabled is true."
        : refuseAccess("agent_to_agent_disabled", action),
  ],
  ["agent_to_agent_allowed", agentToAgentAllowed],
];

function refuseIf({ action, visibility }: Case, code: Denial, isRefused: boolean): Verdict {
  return isRefused ? refuseAccess(code, action) : `Visibility for ${action} is ${visibility}.`;
}

async function inTree({ asker, target, ports }: Case): Promise<Verdict> {
  const outside = "It is not in the requester's tree.";
  if (target === null || asker.key === null) return outside;
  try {
    const isInside = await ports.isInTree(asker.key, target);
    return isInside ? { because: "The requester spawned it, directly or through other sessions." } : outside;
  } catch (error) {
    return refuseFailedLookup(error);
  }
}

function agentToAgentAllowed({ asker, target, policy, action }: Case): Verdict {
  const verdict = checkAgentPair(policy.agentToAgent, asker.agentId, target?.agentId ?? "");
  if (!verdict.allowed) return refuseAccess("agent_to_agent_not_allowed", action);
  return { because: `Agent ${asker.agentId} is allowed to reach ${target?.agentId}: ${verdict.by}.` };
}

function canonical(agentId: string): string {
  return readAgentId(agentId) ?? agentId;
}

/** The part of a stored session that the rules depend on. */
export interface AccessTarget {
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string;
  /** The key of the session that spawned it. Required so that a child is never mistaken for a root. */
  readonly spawnedBy: string | null;
}

/** Whether the session with this key spawned the target, at any depth. Can throw. */
type TreeCheck = (ancestorKey: string, target: AccessTarget) => boolean | Promise<boolean>;

/** Returns the `spawnedBy` of a session with the same user, or `null` if it has none or no longer exists. Can throw. */
type FindSpawner = (key: string) => string | null | Promise<string | null>;

/** Far deeper than agents can spawn. A session with a longer lineage is corrupt and belongs to no tree. */
const maxDepth = 100;

/** Follows `spawnedBy` upward, across agents. A cycle ends the search. */
export function createTreeCheck(spawnerOf: FindSpawner, most: number = maxDepth): TreeCheck {
  return async (ancestorKey, target) => {
    const seen = new Set([target.key]);
    let key = target.spawnedBy;
    while (key !== null && key !== ancestorKey) {
      if (seen.has(key) || seen.size >= most) return false;
      seen.add(key);
      key = await spawnerOf(key);
    }
    return key !== null;
  };
}

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

/** `error` is for people and models, and `code` is for programs. */
export interface Refusal {
  readonly allowed: false;
  readonly status: "forbidden" | "error";
  readonly code: AccessCode;
  readonly error: string;
  /** `true` if a retry might give a different result. */
  readonly retryable: boolean;
}

export type Decision = { readonly allowed: true } | Refusal;

type Denial = Exclude<AccessCode, "not_found" | "ambiguous" | "lookup_failed">;

/** The name of each action in error messages. `allows` describes the effect of enabling agent-to-agent access. */
const actionNames: Readonly<Record<AccessAction, { subject: string; between: string; allows: string }>> = {
  history: { subject: "Session history", between: "history", allows: "access" },
  send: { subject: "Session send", between: "messaging", allows: "sends" },
  status: { subject: "Session status", between: "status", allows: "access" },
  list: { subject: "Session list", between: "listing", allows: "visibility" },
};

export function refuseAccess(code: Denial, action: AccessAction): Refusal {
  return { allowed: false, status: "forbidden", code, error: denialText(code, action), retryable: false };
}

/** `reference` is shown as the caller wrote it. */
export function refuseMissing(reference: string): Refusal {
  const error = `Session not found: ${inLine(reference)} (use the full sessionKey from sessions_list)`;
  return { allowed: false, status: "error", code: "not_found", error, retryable: false };
}

const maxCandidates = 5;

/** `candidates` must contain only keys of sessions that the caller is allowed to see. */
export function refuseAmbiguous(reference: string, candidates: readonly string[]): Refusal {
  const more = candidates.length - maxCandidates;
  const named = candidates
    .slice(0, maxCandidates)
    .map((key) => inLine(key))
    .join(", ");
  const all = more > 0 ? `${named} and ${more} more` : named;
  const error = `Session reference is ambiguous: ${inLine(reference)} matches ${all} (use the full sessionKey of one of them)`;
  return { allowed: false, status: "error", code: "ambiguous", error, retryable: false };
}

/** It is unknown whether access is allowed, so this is not a denial. */
export function refuseFailedLookup(cause: unknown): Refusal {
  const error = `Session lookup failed: ${inLine(messageWithoutPaths(cause))} (nothing was decided; try again)`;
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
