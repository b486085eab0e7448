import type { SessionRecord } from "../../store/contract.ts";

/** A session is sandboxed where it says so itself, or its agent is. */
export function sandboxedBy(
  isAgentSandboxed: (agentId: string) => boolean,
): (session: Pick<SessionRecord, "agentId" | "meta">) => boolean {
  return ({ agentId, meta }) => meta.sandboxed === true || isAgentSandboxed(agentId);
}
