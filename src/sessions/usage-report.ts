import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { Slices } from "../core/slices.ts";
import type { UsageReportPayload } from "../protocol/session-details.ts";
import type { EntryPage, ListedSession, SessionPage, SessionQuery, SessionStore } from "../store/contract.ts";
import type { Spent, UsageGroup } from "./usage-figures.ts";
import { quarterMs, spentIn, UsageSums } from "./usage-figures.ts";

interface UsageQuery {
  readonly since?: number;
  readonly until?: number;
  readonly by: readonly UsageGroup[];
  readonly timeZone?: string;
  /** If set, reports only this session. */
  readonly session?: ListedSession;
}

/** Lists the sessions of one user or of all users. */
type ListPage = (query: SessionQuery) => Promise<SessionPage>;

interface UsageLimits {
  /** The maximum number of sessions that one report reads. The first session is read even if it exceeds `bytes`. */
  readonly sessions: number;
  readonly bytes: number;
  /** The maximum number of cached rows. A session has one row per model and quarter-hour. */
  readonly remembered: number;
}

const dayMs = 86_400_000;
const daysByDefault = 30;
const pageSize = 1000;
const pageBytes = 4 * 1024 * 1024;
/** The cost of looking up a session, in bytes read. */
const sessionBytes = 16 * 1024;
const defaultLimits: UsageLimits = { sessions: 1000, bytes: 64 * 1024 * 1024, remembered: 200_000 };

interface Remembered {
  /** Identifies the session state that the figures were computed from. */
  readonly mark: string;
  readonly spent: readonly Spent[];
}

/**
 * Reports usage. The index has a session's totals, but not by time and model, so entries must be read. Entries are read
 * only for sessions that were active in the range and only once until a session changes, up to a limit per report.
 * `indexing.behind` counts the sessions beyond that limit.
 */
export class UsageReports {
  readonly #sessions: SessionStore;
  readonly #limits: UsageLimits;
  readonly #known = new Map<string, Remembered>();
  #rows = 0;

  constructor(sessions: SessionStore, limits: Partial<UsageLimits> = {}) {
    this.#sessions = sessions;
    this.#limits = { ...defaultLimits, ...limits };
  }

  async report(
    list: ListPage,
    query: UsageQuery,
    now: number,
    signal?: AbortSignal,
  ): Promise<UsageReportPayload> {
    const { since, until } = rangeOf(query, now);
    const sums = new UsageSums(query.by, query.timeZone);
    const left = { sessions: this.#limits.sessions, bytes: this.#limits.bytes };
    const slices = new Slices(signal);
    let behind = 0;
    for await (const page of this.#pages(list, query, since)) {
      behind = Math.max(behind, page.behind);
      for (const session of page.sessions) {
        const turn = slices.did(sessionBytes);
        if (turn !== null) await turn;
        if (session.createdAt >= until) continue;
        const spent = this.#remembered(session) ?? (await this.#readWithin(session, left));
        if (spent === null) behind += 1;
        const within = (spent ?? []).filter(({ quarter }) => quarter >= since && quarter < until);
        await slices.run(sums.adding(within, session));
      }
    }
    return present({
      since,
      until,
      rows: sums.rows(),
      total: { ...sums.total },
      indexing: behind === 0 ? null : { behind },
    });
  }

  /**
   * Yields pages of sessions, most recently active first, so that the sessions omitted at the limit are the least
   * recently active.
   */
  async *#pages(
    list: ListPage,
    { session }: UsageQuery,
    since: number,
  ): AsyncGenerator<Pick<SessionPage, "sessions" | "behind">> {
    if (session !== undefined) {
      yield { sessions: [session], behind: 0 };
      return;
    }
    for (const archived of [false, true]) {
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page: SessionPage = await list({
          activeSince: since,
          archived,
          includeGlobal: true,
          includeUnknown: true,
          limit: pageSize,
          ...(cursor === "" ? {} : { cursor }),
        });
        yield page;
        cursor = page.nextCursor;
      }
    }
  }

  #remembered(session: ListedSession): readonly Spent[] | null {
    const known = this.#known.get(session.uid);
    return known?.mark === markOf(session) ? known.spent : null;
  }

  /** Returns `null` once the limit is exhausted. */
  async #readWithin(
    session: ListedSession,
    left: { sessions: number; bytes: number },
  ): Promise<readonly Spent[] | null> {
    const { bytes } = session.digest;
    const isFirst = left.sessions === this.#limits.sessions;
    if (left.sessions < 1 || (bytes > left.bytes && !isFirst)) return null;
    left.sessions -= 1;
    left.bytes -= bytes;
    const spent = await this.#read(session);
    this.#remember(session, spent);
    return spent;
  }

  async #read({ userId, sessionId, createdAt }: ListedSession): Promise<Spent[]> {
    const scope = present({ userId });
    const spent: Spent[] = [];
    for (let before: string | undefined, hasEarlier = true; hasEarlier; ) {
      const range = { along: "all", limit: pageSize, bytes: pageBytes, ...present({ before }) } as const;
      const page: EntryPage | null = await this.#sessions.page(scope, sessionId, range);
      // The session has since been removed.
      if (page === null) return spent;
      spent.push(...spentIn(page.entries, createdAt));
      before = page.entries[0]?.id;
      hasEarlier = page.hasEarlier && before !== undefined;
    }
    return spent;
  }

  #remember(session: ListedSession, spent: readonly Spent[]): void {
    this.#forget(session.uid);
    this.#known.set(session.uid, { mark: markOf(session), spent });
    this.#rows += spent.length + 1;
    for (const uid of this.#known.keys()) {
      if (this.#rows <= this.#limits.remembered) return;
      this.#forget(uid);
    }
  }

  #forget(uid: string): void {
    const known = this.#known.get(uid);
    if (known === undefined) return;
    this.#known.delete(uid);
    this.#rows -= known.spent.length + 1;
  }
}

/** Combines the entry count and the size. Both grow with every entry, and a redaction changes the size. */
function markOf({ digest }: ListedSession): string {
  return `${digest.entries} ${digest.bytes}`;
}

/** Rounds the range outward to quarter-hours. */
function rangeOf({ since, until }: UsageQuery, now: number): { since: number; until: number } {
  const to = Math.ceil((until ?? now + 1) / quarterMs) * quarterMs;
  const from = Math.floor((since ?? Math.max(0, to - daysByDefault * dayMs)) / quarterMs) * quarterMs;
  if (from <= to) return { since: from, until: to };
  throw new SkeinError("invalid_arguments", {
    problem: "The range ends before it starts",
    advice: "Set `since` to a time before `until`",
  });
}
