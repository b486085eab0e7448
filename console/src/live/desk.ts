import type { Params, ReceivedEvent, Result, SkeinClient } from "skein/client";
import type { Feed } from "../connect/feed.ts";
import { errorText } from "../connect/gateway.tsx";
import { oneLine } from "../ui/plain-text.ts";

export type SessionRow = Result<"sessions.list">["sessions"][number];
export type Approval = Result<"approvals.list">["approvals"][number];

export interface DeskState {
  readonly status: "loading" | "ready" | "failed";
  readonly error: string | null;
  /** Most recently active first. */
  readonly rows: readonly SessionRow[];
  readonly total: number;
  readonly hasMore: boolean;
  readonly approvals: readonly Approval[];
}

/** Which sessions a desk holds; absent fields do not filter. */
export type DeskFilter = Pick<
  Params<"sessions.list">,
  "kinds" | "agentId" | "channels" | "states" | "search" | "archived" | "userId" | "sort"
>;

/** In which part of the desk a session belongs. */
export type DeskPart = "needs-you" | "working" | "done";

const pageSize = 500;
const mostKeys = 100;

/** The sessions that the token may see, kept up to date by events. An event names a session; its row is read again, many at once. */
export class Desk {
  readonly #client: SkeinClient;
  readonly #filter: DeskFilter;
  readonly #rows = new Map<string, SessionRow>();
  readonly #approvals = new Map<string, Approval>();
  readonly #changed = new Map<string, { readonly key: string; readonly userId?: string }>();
  readonly #listeners = new Set<() => void>();
  readonly #stop: () => void;
  readonly #queued = new Set<string>();
  #reads = Promise.resolve();
  #cursor: string | undefined;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #state: DeskState = { status: "loading", error: null, rows: [], total: 0, hasMore: false, approvals: [] };

  constructor(client: SkeinClient, feed: Feed, filter: DeskFilter = {}) {
    this.#client = client;
    this.#filter = filter;
    this.#stop = feed.listen((event) => this.#take(event));
    void this.reload();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
  readonly state = (): DeskState => this.#state;

  rowOf(place: { readonly key: string; readonly userId?: string }): SessionRow | null {
    return this.#rows.get(idOf(place)) ?? null;
  }

  close(): void {
    this.#stop();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  reload(): Promise<void> {
    return this.#queueRead("all", () => this.#readAll());
  }

  /** Reads run one after the other, so that no result is older than the one before it. One of each kind waits at most. */
  #queueRead(kind: string, read: () => Promise<void>): Promise<void> {
    if (this.#queued.has(kind)) return this.#reads;
    this.#queued.add(kind);
    this.#reads = this.#reads.then(() => {
      this.#queued.delete(kind);
      return read();
    });
    return this.#reads;
  }

  async #readAll(): Promise<void> {
    try {
      const [page, open] = await Promise.all([
        this.#client.call("sessions.list", { ...this.#filter, limit: pageSize, ...this.#everyUser() }),
        this.#client.call("approvals.list", { limit: 500, ...this.#everyUser() }),
      ]);
      this.#rows.clear();
      this.#approvals.clear();
      for (const approval of open.approvals) this.#approvals.set(approval.approvalId, approval);
      this.#takePage(page);
    } catch (error) {
      this.#set({ status: this.#state.status === "ready" ? "ready" : "failed", error: errorText(error) });
    }
  }

  loadMore(): Promise<void> {
    return this.#queueRead("more", () => this.#readMore());
  }

  async #readMore(): Promise<void> {
    const cursor = this.#cursor;
    if (cursor === undefined) return;
    this.#cursor = undefined;
    try {
      this.#takePage(
        await this.#client.call("sessions.list", {
          ...this.#filter,
          limit: pageSize,
          cursor,
          ...this.#everyUser(),
        }),
      );
    } catch (error) {
      this.#cursor = cursor;
      this.#set({ error: errorText(error) });
    }
  }

  #everyUser(): { allUsers?: true } {
    return this.#client.hello.allUsers && this.#filter.userId === undefined ? { allUsers: true } : {};
  }

  #takePage(page: Result<"sessions.list">): void {
    for (const row of page.sessions) if (!this.#rows.has(idOf(row))) this.#rows.set(idOf(row), row);
    this.#cursor = page.nextCursor;
    this.#publish({
      status: "ready",
      error: null,
      total: page.total,
      hasMore: page.nextCursor !== undefined,
    });
  }

  #take({ event, payload }: ReceivedEvent): void {
    if (event === "gap") return void this.reload();
    if (event === "approval.resolved") {
      this.#approvals.delete(payload.approvalId);
      this.#publish({});
    }
    if (event === "approval.requested" || event === "approval.resolved")
      void this.#queueRead("approvals", () => this.#readApprovals());
    if (event === "session.deleted") {
      this.#rows.delete(
        idOf({
          key: payload.sessionKey,
          ...(payload.userId === undefined ? {} : { userId: payload.userId }),
        }),
      );
      return this.#publish({});
    }
    if (payload.sessionKey === undefined) return;
    const place = {
      key: payload.sessionKey,
      ...(payload.userId === undefined ? {} : { userId: payload.userId }),
    };
    this.#changed.set(idOf(place), place);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#queueRead("rows", () => this.#readChanged());
    }, 150);
  }

  /** An approval comes with its path from the root, which the event does not have. */
  async #readApprovals(): Promise<void> {
    try {
      const open = await this.#client.call("approvals.list", { limit: 500, ...this.#everyUser() });
      this.#approvals.clear();
      for (const approval of open.approvals) this.#approvals.set(approval.approvalId, approval);
      this.#publish({});
    } catch {
      // The next event or a reload reads them again.
    }
  }

  async #readChanged(): Promise<void> {
    const byUser = Map.groupBy(this.#changed.values(), ({ userId }) => userId);
    this.#changed.clear();
    for (const [userId, places] of byUser) {
      for (let from = 0; from < places.length; from += mostKeys) {
        const keys = places.slice(from, from + mostKeys).map(({ key }) => key);
        try {
          const user = userId === undefined ? {} : { userId };
          const { sessions } = await this.#client.call("sessions.list", {
            archived: false,
            ...this.#filter,
            keys,
            ...user,
          });
          // A session that the filter no longer admits, or that was archived, is not among them.
          for (const key of keys) this.#rows.delete(idOf({ key, ...user }));
          for (const row of sessions) this.#rows.set(idOf(row), row);
        } catch {
          // The next event of the session tries again.
        }
      }
    }
    this.#publish({});
  }

  #publish(change: Partial<DeskState>): void {
    const rows = [...this.#rows.values()].sort(orders[this.#filter.sort ?? "updated"]);
    this.#set({ ...change, rows, approvals: [...this.#approvals.values()] });
  }

  #set(change: Partial<DeskState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of [...this.#listeners]) listener();
  }
}

type Order = (a: SessionRow, b: SessionRow) => number;

/** The orders of `sessions.list`, for rows that events bring between two pages. */
const orders: Record<NonNullable<DeskFilter["sort"]>, Order> = {
  updated: (a, b) => b.updatedAt - a.updatedAt,
  created: (a, b) => (b.sessionId < a.sessionId ? -1 : 1),
  tokens: (a, b) => (b.totalTokens ?? 0) - (a.totalTokens ?? 0),
  cost: (a, b) => (b.estimatedCostUsd ?? 0) - (a.estimatedCostUsd ?? 0),
  name: (a, b) => rowName(a).localeCompare(rowName(b)),
};

/** What people call it: the name or label, otherwise the key without `agent:`. */
export function rowName({
  displayName,
  label,
  key,
}: Pick<SessionRow, "displayName" | "label" | "key">): string {
  return oneLine(displayName ?? label ?? shortKey(key), 100);
}

/** Generated IDs are cut to their last six digits, which tell sessions of the same time apart. */
function shortKey(key: string): string {
  return key
    .replace(/^agent:/, "")
    .replace(/:main$/, "")
    .replace(/(subagent:)[0-9a-f-]{36}:/, "$1")
    .replace(/(session:|subagent:)[0-9a-f-]{10,30}([0-9a-f]{6})$/, "$1$2");
}

/** Keys are unique per user. */
export function idOf({ key, userId }: { readonly key: string; readonly userId?: string }): string {
  return `${userId ?? ""}\n${key}`;
}

export function partOf(row: SessionRow, waiting: ReadonlySet<string>): DeskPart {
  // Approvals arrive by events, before the row is read again.
  if (waiting.has(idOf(row)) || row.state === "needs_you") return "needs-you";
  return row.state === "working" ? "working" : "done";
}
