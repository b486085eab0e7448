import { parseAgentId } from "../../core/names.ts";
import type { Asker, Denied } from "../../sessions/access/contract.ts";
import type { Scope } from "../../store/contract.ts";

/** The asker's user, and one agent of theirs if it is named. */
export function scopeOf({ userId }: Pick<Asker, "userId">, agentId?: string): Scope {
  return {
    ...(userId === null ? {} : { userId }),
    ...(agentId === undefined ? {} : { agentId: parseAgentId(agentId) }),
  };
}

/** A refusal as a result. */
export function refusalResult({ status, code, error, retryable }: Denied): Readonly<Record<string, unknown>> {
  return { status, code, error, ...(retryable ? { retryable } : {}) };
}

/** How far an index is behind. It counts all sessions, so one who may not know of all is not told. */
export function indexingFor(asker: Pick<Asker, "sandboxed">, behind: number): { behind: number } | null {
  return behind === 0 || asker.sandboxed ? null : { behind };
}
