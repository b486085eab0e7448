import { SkeinError } from "../core/errors.ts";
import { formatKey, parseKey } from "../core/keys.ts";

/** The key that a reset leaves the old session with. */
export function resetKey(key: string, agentId: string, sessionId: string): string {
  if (parseKey(key).form === "reset") {
    throw new SkeinError("conflict", { problem: `Session ${sessionId} was reset before` });
  }
  return formatKey({ form: "reset", agentId, sessionId });
}
