import { SkeinError } from "../../core/errors.ts";
import { formatKey } from "../../core/keys.ts";
import { readAgentId } from "../../core/names.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { Principal } from "../auth/principal.ts";
import { scopeFor } from "../auth/principal.ts";
import type { McpAsker } from "./contract.ts";

/** Who asks, by the token and the agent that is spoken for. Nobody but the token says whose sessions these are. */
export function askerOf(principal: Principal, agent: string): McpAsker {
  const agentId = readAgentId(agent);
  if (agentId === null) {
    const problem = `"${escapeToLine(cutText(agent, 100))}" is no id of an agent`;
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Leave it out, or name a configured agent",
    });
  }
  const scope = scopeFor(principal);
  if (!scope.allowed) {
    const { problem, advice } = scope;
    throw new SkeinError("forbidden", { problem, advice });
  }
  const { tokenId, scopes } = principal;
  const sessionKey = formatKey({ form: "node", agentId, id: `mcp-${tokenId}` });
  return { userId: scope.userId, agentId, sessionKey, scopes };
}
