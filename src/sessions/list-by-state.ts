import type { SessionState } from "../protocol/session-list.ts";
import type { RunStore, SessionWork } from "../runs/contract.ts";
import type { ListedSession, SessionPage, SessionQuery } from "../store/contract.ts";
import { sessionLimit } from "../store/list-query.ts";

/** What a session asks of people, from its work. */
export function stateOf({ status, approvals }: Pick<SessionWork, "status" | "approvals">): SessionState {
  if (approvals > 0) return "needs_you";
  if (status === "queued" || status === "running" || status === "waiting") return "working";
  return status === "error" || status === "timeout" ? "failed" : "done";
}

/** The sessions of one user or of all. */
export interface ListSource {
  list(query: SessionQuery): Promise<SessionPage>;
  count(query: SessionQuery): Promise<number>;
}

export type CountedPage = SessionPage & { readonly total: number };

/** A page with the number of sessions that match. */
export async function listCounted(source: ListSource, query: SessionQuery): Promise<CountedPage> {
  return { ...(await source.list(query)), total: await source.count(query) };
}

/** The same sessions, whether archived or not, as one page. */
export function listArchivedToo(source: ListSource): ListSource {
  const both = (query: SessionQuery) => [false, true].map((archived) => ({ ...query, archived }));
  return {
    list: async (query) => {
      const pages = await Promise.all(both(query).map((each) => source.list(each)));
      const behind = Math.max(...pages.map((page) => page.behind));
      return { sessions: pages.flatMap((page) => page.sessions), nextCursor: null, behind };
    },
    count: async (query) => {
      const [active = 0, archived = 0] = await Promise.all(both(query).map((each) => source.count(each)));
      return active + archived;
    },
  };
}

/**
 * A page of the sessions in some states. The ledger knows the sessions that are not done, which are few; the store lists
 * either exactly these, or all but these.
 */
export async function listByState(
  source: ListSource,
  query: SessionQuery,
  states: readonly SessionState[],
  unsettled: Awaited<ReturnType<RunStore["unsettledWork"]>>,
): Promise<CountedPage> {
  const [matching, other]: [string[], string[]] = [[], []];
  const within = query.uids === undefined ? null : new Set(query.uids);
  for (const [uid, work] of unsettled) {
    if (within?.has(uid) === false) continue;
    (states.includes(stateOf(work)) ? matching : other).push(uid);
  }
  if (!states.includes("done")) return listCounted(source, { ...query, uids: matching });
  const total = (await source.count(query)) - (await source.count({ ...query, uids: other }));
  return { ...(await listExcept(source, query, new Set(other))), total };
}

/** Asks for as many sessions as are missing, so that the cursor of the last page is that of the result. */
async function listExcept(
  source: ListSource,
  query: SessionQuery,
  excluded: ReadonlySet<string>,
): Promise<SessionPage> {
  const limit = sessionLimit(query.limit);
  const sessions: ListedSession[] = [];
  for (let next = query; ; ) {
    const page = await source.list({ ...next, limit: limit - sessions.length });
    sessions.push(...page.sessions.filter(({ uid }) => !excluded.has(uid)));
    if (page.nextCursor === null || sessions.length === limit) return { ...page, sessions };
    next = { ...query, cursor: page.nextCursor };
  }
}
