import { SkeinError } from "../core/errors.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import type { Scope } from "./contract.ts";

/** The canonical key and its agent; a key outside the scope's agent is refused. */
export function placeOfKey(scope: Scope, text: string): { key: string; agentId: string } {
  const parsed = parseKey(text);
  const agentId = parsed.form === "special" ? (scope.agentId ?? "main") : parsed.agentId;
  if (scope.agentId !== undefined && scope.agentId !== agentId) {
    const problem = `it belongs to agent ${agentId}, outside of the scope`;
    throw new SkeinError("invalid_key", { key: text, problem, expected: `a key of agent ${scope.agentId}` });
  }
  return { key: formatKey(parsed), agentId };
}
