import type { AccessAction } from "../access/visibility/access-policy.ts";
import { parseAgentId } from "../core/names.ts";
import type { Asker, Denied, SessionAccess } from "../sessions/session-access.ts";
import type { Scope, SessionQuery, SessionReach, SessionStore } from "../store/contract.ts";

/** Returns the scope of the requester's user, limited to one agent if one is given. */
export function scopeOf({ userId }: Pick<Asker, "userId">, agentId?: string): Scope {
  return {
    ...(userId === null ? {} : { userId }),
    ...(agentId === undefined ? {} : { agentId: parseAgentId(agentId) }),
  };
}

/** Converts an access denial to a tool result. */
export function toRefusalResult({
  status,
  code,
  error,
  retryable,
}: Denied): Readonly<Record<string, unknown>> {
  return { status, code, error, ...(retryable ? { retryable } : {}) };
}

/** Returns how many sessions the index is behind. Hidden from sandboxed requesters because it counts all sessions. */
export function indexingField(asker: Pick<Asker, "sandboxed">, behind: number): { behind: number } | null {
  return behind === 0 || asker.sandboxed ? null : { behind };
}

const maxHidden = 1000;

/** The sessions that a request covers. If `reach` is absent, the request names one session. */
interface AskedSessions {
  readonly scope: Scope;
  readonly reach: SessionReach | undefined;
  readonly queries: readonly SessionQuery[];
}

/**
 * Returns the visibility and how many sessions it hides. The number is hidden from sandboxed requesters, which must not
 * learn about other sessions.
 */
export async function readVisibilityFields(
  asker: Asker,
  action: AccessAction,
  asked: AskedSessions,
  app: {
    readonly access: SessionAccess;
    readonly store: { readonly sessions: Pick<SessionStore, "count"> };
  },
): Promise<{ readonly hidden?: number; readonly visibility: { mode: string; sandboxed: boolean } }> {
  const { visibility, sandboxed } = app.access.policyFor(asker);
  const fields = { visibility: { mode: visibility[action], sandboxed } };
  return asker.sandboxed ? fields : { hidden: await countHidden(asked, app.store), ...fields };
}

/**
 * Returns how many of the user's sessions the policy hides, across all pages. Ignores text filters, because a count
 * that depends on a guessed name would confirm the guess.
 */
async function countHidden(
  { scope, reach, queries }: AskedSessions,
  { sessions }: { readonly sessions: Pick<SessionStore, "count"> },
): Promise<number> {
  if (reach === undefined || reach.agentIds === "all") return 0;
  const hidden = queries.map(async ({ text: _text, label: _label, ...query }) => {
    const all = await sessions.count(scope, query);
    return Math.max(0, all - (await sessions.count(scope, { ...query, reach })));
  });
  const counts = await Promise.all(hidden);
  return Math.min(
    maxHidden,
    counts.reduce((sum, count) => sum + count, 0),
  );
}
