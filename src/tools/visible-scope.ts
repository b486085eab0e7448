import type { AccessAction } from "../access/visibility/access-policy.ts";
import { parseAgentId } from "../core/names.ts";
import type { Asker, Denied, SessionAccess } from "../sessions/session-access.ts";
import type { Scope, SessionQuery, SessionReach, SessionStore } from "../store/contract.ts";

/** The asker's user, and one agent of theirs if it is named. */
export function scopeOf({ userId }: Pick<Asker, "userId">, agentId?: string): Scope {
  return {
    ...(userId === null ? {} : { userId }),
    ...(agentId === undefined ? {} : { agentId: parseAgentId(agentId) }),
  };
}

/** A refusal as a result. */
export function toRefusalResult({
  status,
  code,
  error,
  retryable,
}: Denied): Readonly<Record<string, unknown>> {
  return { status, code, error, ...(retryable ? { retryable } : {}) };
}

/** How far an index is behind. It counts all sessions, so one who may not know of all is not told. */
export function indexingField(asker: Pick<Asker, "sandboxed">, behind: number): { behind: number } | null {
  return behind === 0 || asker.sandboxed ? null : { behind };
}

const mostHidden = 1000;

/** What was asked about; without a reach, one session that the asker named. */
interface AskedSessions {
  readonly scope: Scope;
  readonly reach: SessionReach | undefined;
  readonly queries: readonly SessionQuery[];
}

/** What the policy left out of a result. A sandboxed asker is told no number: it may not know of other sessions. */
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
  const told = { visibility: { mode: visibility[action], sandboxed } };
  return asker.sandboxed ? told : { hidden: await countHidden(asked, app.store), ...told };
}

/**
 * How many sessions of the asker's own user the policy left out, on all pages. Names are not looked for in them: a number
 * that follows a guess at a name would spell it out.
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
    mostHidden,
    counts.reduce((sum, count) => sum + count, 0),
  );
}
