import type { AccessAction, AccessPolicy } from "../../access/visibility/access-policy.ts";
import { checkAgentPair } from "../../access/visibility/access-policy.ts";
import { readAgentId } from "../../core/names.ts";
import type { SessionReach } from "../../store/contract.ts";

/** All that a policy lets an asker do this with: the same sessions that single questions allow, as a store filters by. */
export async function reachBy(
  policy: AccessPolicy,
  action: AccessAction,
  asker: { readonly agentId: string; readonly key: string | null },
  agentsOfUser: () => Promise<readonly string[]>,
): Promise<SessionReach> {
  const treeOf = asker.key;
  const own = readAgentId(asker.agentId) ?? asker.agentId;
  const visibility = policy.visibility[action];
  if (visibility === "self") return { treeOf, descendants: false, agentIds: [] };
  // Whatever is neither of the wider words is the narrow one.
  const isWide = visibility === "agent" || visibility === "all";
  if (policy.sandboxed || !isWide) return { treeOf, agentIds: [] };
  if (visibility === "agent" || !policy.agentToAgent.enabled) return { treeOf, agentIds: [own] };
  const others = (await agentsOfUser()).filter(
    (agentId) => agentId !== own && checkAgentPair(policy.agentToAgent, own, agentId).allowed,
  );
  return { treeOf, agentIds: [own, ...others] };
}
