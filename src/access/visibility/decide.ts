import { readAgentId } from "../../core/names.ts";
import { pairVerdict } from "./a2a.ts";
import type { Decision, Denial, Refusal } from "./decision.ts";
import { denied, lookupFailed, notFound } from "./decision.ts";
import type { AccessTarget, InTree } from "./lineage.ts";
import type { AccessAction, AccessPolicy, Visibility } from "./policy.ts";

/** Who asks. Without a key it speaks from no session: then nothing is itself, and nothing is in its tree. */
export interface AccessAsker {
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string | null;
}

/** Looking the session up went wrong; whether it is there is not known. */
export interface FailedLookup {
  readonly failed: unknown;
}

export interface AccessPorts {
  /** What the asker wrote to name the session. */
  readonly reference: string;
  readonly isInTree: InTree;
}

/** The rules, in the order in which they are asked. */
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

/** A rule that was asked, and what it said. */
export interface AccessStep {
  readonly rule: AccessRule;
  /** `pass`: it leaves the decision to the next. */
  readonly outcome: "allow" | "refuse" | "pass";
  readonly reason: string;
}

/** Whether an asker may do something with a session, and why. */
export interface AccessExplanation {
  readonly decision: Decision;
  /** Every rule that was asked; the last one decided. */
  readonly steps: readonly AccessStep[];
}

/** Whether an asker may do this with a session. `null`: there is none of that name. */
export async function decideAccess(
  asker: AccessAsker,
  target: AccessTarget | FailedLookup | null,
  action: AccessAction,
  policy: AccessPolicy,
  ports: AccessPorts,
): Promise<Decision> {
  return (await explainAccess(asker, target, action, policy, ports)).decision;
}

/**
 * The same with every rule on the way. The explanation tells no more than the decision: that of another user's session
 * is that of none, and that of a sandboxed asker is the same for all that is not in its tree.
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
  // The last rule decides whatever comes; were it taken away, this must not become an allowance.
  return { decision: denied("agent_to_agent_not_allowed", action), steps };
}

interface Case {
  readonly asker: AccessAsker;
  /** A session of the asker's user. */
  readonly target: AccessTarget | null;
  readonly failure: FailedLookup | null;
  readonly action: AccessAction;
  readonly visibility: Visibility;
  readonly policy: AccessPolicy;
  readonly ports: AccessPorts;
}

/** A text: the rule has nothing to say here, and why. */
type Verdict = string | Refusal | { readonly because: string };

type Rule = (asked: Case) => Verdict | Promise<Verdict>;

const rules: readonly (readonly [AccessRule, Rule])[] = [
  ["lookup", ({ failure }) => (failure === null ? "The lookup was answered." : lookupFailed(failure.failed))],
  [
    "itself",
    ({ asker, target }) =>
      target !== null && target.key === asker.key
        ? { because: "It is the asker's own session." }
        : "It is not the asker's own session.",
  ],
  ["self_visibility", (asked) => refuseIf(asked, "self_visibility_restricted", asked.visibility === "self")],
  ["in_tree", inTree],
  [
    "sandboxed",
    ({ policy, action }) =>
      policy.sandboxed ? denied("sandbox_restricted", action) : "The asker is not sandboxed.",
  ],
  ["exists", ({ target, ports }) => (target === null ? notFound(ports.reference) : "The session is there.")],
  [
    "tree_visibility",
    (asked) =>
      // Whatever is neither of the wider words is the narrow one.
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
        ? { because: "It is a session of the asker's agent." }
        : "It is a session of another agent.",
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
        : denied("agent_to_agent_disabled", action),
  ],
  ["agent_to_agent_allowed", agentToAgentAllowed],
];

function refuseIf({ action, visibility }: Case, code: Denial, isRefused: boolean): Verdict {
  return isRefused ? denied(code, action) : `Visibility for ${action} is ${visibility}.`;
}

async function inTree({ asker, target, ports }: Case): Promise<Verdict> {
  const outside = "It is not in the asker's tree.";
  if (target === null || asker.key === null) return outside;
  try {
    const isInside = await ports.isInTree(asker.key, target);
    return isInside ? { because: "The asker spawned it, or one that it comes from." } : outside;
  } catch (error) {
    return lookupFailed(error);
  }
}

function agentToAgentAllowed({ asker, target, policy, action }: Case): Verdict {
  const verdict = pairVerdict(policy.agentToAgent, asker.agentId, target?.agentId ?? "");
  if (!verdict.allowed) return denied("agent_to_agent_not_allowed", action);
  return { because: `Agent ${asker.agentId} may reach ${target?.agentId}: ${verdict.by}.` };
}

function canonical(agentId: string): string {
  return readAgentId(agentId) ?? agentId;
}
