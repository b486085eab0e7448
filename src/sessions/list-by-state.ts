import type { SessionState } from "../protocol/session-list.ts";
import type { RunStore, SessionWork } from "../runs/contract.ts";
import type { ListedSession, SessionPage, SessionQuery } from "../store/contract.ts";
import { sessionLimit } from "../store/list-query.ts";

/** Derives a session's state from its work. A pending approval takes precedence over everything else. */
export function stateOf({ status, approvals }: Pick<SessionWork, "status" | "approvals">): SessionState {
  if (approvals > 0) return "needs_you";
  if (status === "queued" || status === "running" || status === "waiting") return "working";
  return status === "error" || status === "timeout" ? "failed" : "done";
}

/** Lists the sessions of one user or of all users. */
export interface ListSource {
  list(query: SessionQuery): Promise<SessionPage>;
  count(query: SessionQuery): Promise<number>;
}

/** Merges archived and unarchived sessions into one list. */
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
 * Restricts a source to sessions in the given states. `unsettled` contains the few sessions that are not done. Unless
 * `done` is requested, the store lists only sessions from `unsettled`. Otherwise, it lists all sessions except those in
 * `unsettled` whose state was not requested.
 */
export function listByState(
  source: ListSource,
  states: readonly SessionState[],
  unsettled: Awaited<ReturnType<RunStore["unsettledWork"]>>,
): ListSource {
  const split = (query: SessionQuery) => splitByState(query, states, unsettled);
  if (!states.includes("done")) {
    const only = (query: SessionQuery) => ({ ...query, uids: split(query).matching });
    return { list: (query) => source.list(only(query)), count: (query) => source.count(only(query)) };
  }
  return {
    list: (query) => listExcept(source, query, new Set(split(query).other)),
    count: async (query) =>
      (await source.count(query)) - (await source.count({ ...query, uids: split(query).other })),
  };
}

/**
 * Splits the sessions that are not done into those in one of the states and all others. Omits sessions that the query
 * cannot return.
 */
function splitByState(
  query: SessionQuery,
  states: readonly SessionState[],
  unsettled: Awaited<ReturnType<RunStore["unsettledWork"]>>,
): { readonly matching: readonly string[]; readonly other: readonly string[] } {
  const [matching, other]: [string[], string[]] = [[], []];
  const within = query.uids === undefined ? null : new Set(query.uids);
  for (const [uid, work] of unsettled) {
    if (within?.has(uid) === false) continue;
    (states.includes(stateOf(work)) ? matching : other).push(uid);
  }
  return { matching, other };
}

/**
 * Requests only as many sessions as are still needed, so the last page's cursor is also the cursor of the result.
 */
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
