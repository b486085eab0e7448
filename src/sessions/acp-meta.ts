import { isRecord } from "../core/shape.ts";
import type { SessionMeta } from "../store/contract.ts";

/** What is kept of somebody else's agent with a session that stands for one of its own. */
export interface AcpMeta {
  readonly agentSessionId: string | null;
  readonly resumeSessionId: string | null;
  readonly model: string | null;
  readonly thinking: string | null;
  /** The mark of its last process. */
  readonly processMark: string | null;
}

/** `null`: the session was not spawned as such a one. After a reset the agent begins anew too. */
export function acpMetaOf({ acp }: SessionMeta, sessionId: string): AcpMeta | null {
  if (!isRecord(acp)) return null;
  const word = (name: string) => (typeof acp[name] === "string" ? (acp[name] as string) : null);
  const isBefore = acp.linkedFrom !== undefined && acp.linkedFrom !== sessionId;
  return {
    agentSessionId: isBefore ? null : word("agentSessionId"),
    resumeSessionId: isBefore ? null : word("resumeSessionId"),
    model: word("model"),
    thinking: word("thinking"),
    processMark: word("processMark"),
  };
}
