import type { Params, ReceivedEvent, Result, SkeinClient } from "skein/client";
import type { Feed } from "../connect/feed.ts";
import { errorText } from "../connect/gateway.tsx";
import { SingleFlight } from "../connect/single-flight.ts";
import type { SessionPlace } from "../paths.ts";
import { ownerOf, placeOf, userParam, usersParam } from "../paths.ts";
import { assignThreads } from "../ui/theme.ts";
import type { SessionRow } from "./session-row.ts";
import { idOf, rowName } from "./session-row.ts";

export type Approval = Result<"approvals.list">["approvals"][number];

export interface DeskState {
  readonly status: "loading" | "ready" | "failed";
  /** Why the last read failed. The rows then come from the previous read. */
  readonly error: string | null;
  /** In order of activity, most recent first. */
  readonly rows: readonly SessionRow[];
  readonly total: number;
  readonly hasMore: boolean;
  /** Oldest first, so that a new one does not replace the one that the user is reading. */
  readonly approvals: readonly Approval[];
}

export const unreadDesk: DeskState = {
  status: "loading",
  error: null,
  rows: [],
  total: 0,
  hasMore: false,
  approvals: [],
};

/** Which sessions a desk contains. Absent fields do not filter. An empty `userId` is the unnamed user. */
export type DeskFilter = Pick<
  Params<"sessions.list">,
  "kinds" | "agentId" | "channels" | "states" | "search" | "archived" | "userId" | "sort"
>;

/** The group on the desk that a session belongs to. */
export type DeskPart = "needs-you" | "working" | "done";

const pageSize = 500;
const maxPageSize = 1000;
const maxKeys = 100;
/** The largest page of approvals that the gateway returns. */
export const maxApprovals = 500;

/**
 * The sessions that the token is allowed to see, kept up to date by events. The rows of the sessions that events name
 * are read again in batches.
 */
export class Desk {
  readonly #client: SkeinClient;
  readonly #filter: DeskFilter;
  /** Keyed by `idOf`. */
  #rows = new Map<string, SessionRow>();
  #approvals: readonly Approval[] = [];
  readonly #changed = new Map<string, SessionPlace>();
  readonly #listeners = new Set<() => void>();
  readonly #stop: () => void;
  /** One at a time, so that no result is older than the previous one. */
  readonly #reads = new SingleFlight(() => this.#read());
  #wanted = { all: true, approvals: false, more: false };
  #cursor: string | undefined;
  #state = unreadDesk;

  constructor(client: SkeinClient, feed: Feed, filter: DeskFilter = {}) {
    this.#client = client;
    this.#filter = filter;
    this.#stop = feed.listen((event) => this.#onEvent(event));
    void this.#reads.request();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
  readonly state = (): DeskState => this.#state;

  rowOf(place: { readonly key: string; readonly userId?: string | undefined }): SessionRow | null {
    return this.#rows.get(this.#idOf(place)) ?? null;
  }

  close(): void {
    this.#stop();
    this.#reads.close();
  }

  /** Reads as many rows again as are currently loaded. */
  reload(): Promise<void> {
    this.#wanted.all = true;
    return this.#reads.request();
  }

  /** Reads these sessions now, without waiting for their events. */
  refresh(places: readonly SessionPlace[]): Promise<void> {
    for (const place of places) this.#changed.set(this.#idOf(place), place);
    return this.#reads.request();
  }

  loadMore(): Promise<void> {
    this.#wanted.more = true;
    return this.#reads.request();
  }

  async #read(): Promise<void> {
    const { all, approvals, more } = this.#wanted;
    this.#wanted = { all: false, approvals: false, more: false };
    let changed: ReadonlyMap<string, SessionPlace> = new Map();
    try {
      const publishAll = all ? await this.#readAll() : null;
      if (!all && approvals) await this.#readApprovals();
      // Events that arrived in the meantime are newer than the pages, so the pages are shown only with the changed
      // rows.
      changed = new Map(this.#changed);
      this.#changed.clear();
      if (changed.size > 0) await this.#readRows(changed.values());
      publishAll?.();
      if (more) await this.#readMore();
      if (this.#state.error !== null) this.#set({ error: null });
    } catch (error) {
      this.#wanted = {
        all: all || this.#wanted.all,
        approvals: approvals || this.#wanted.approvals,
        more: more || this.#wanted.more,
      };
      for (const [id, place] of changed) this.#changed.set(id, place);
      this.#set({ status: this.#state.status === "ready" ? "ready" : "failed", error: errorText(error) });
      throw error;
    }
  }

  /** Returns a function that shows what was read. */
  async #readAll(): Promise<() => void> {
    const rows = new Map<string, SessionRow>();
    const wanted = Math.max(pageSize, this.#rows.size);
    const [first, approvals] = await Promise.all([
      this.#readPage(Math.min(wanted, maxPageSize)),
      this.#listApprovals(),
    ]);
    let page = first;
    addRows(rows, page.sessions);
    while (rows.size < wanted && page.nextCursor !== undefined) {
      page = await this.#readPage(maxPageSize, page.nextCursor);
      addRows(rows, page.sessions);
    }
    this.#approvals = approvals;
    this.#rows = rows;
    return () => {
      this.#setPage(page, first.total);
      this.#readMissing();
    };
  }

  async #readMore(): Promise<void> {
    if (this.#cursor === undefined) return;
    const page = await this.#readPage(pageSize, this.#cursor);
    addRows(this.#rows, page.sessions);
    this.#setPage(page);
  }

  #readPage(limit: number, cursor?: string): Promise<Result<"sessions.list">> {
    const { userId, ...filter } = this.#filter;
    return this.#client.call("sessions.list", {
      ...filter,
      includeGlobal: true,
      ...usersParam(this.#client, userId),
      limit,
      ...(cursor === undefined ? { total: true } : { cursor }),
    });
  }

  /** Only the first page has a total, because counting takes longer as the number of sessions grows. */
  #setPage({ nextCursor }: Result<"sessions.list">, total = this.#state.total): void {
    this.#cursor = nextCursor;
    this.#publish({ status: "ready", total, hasMore: nextCursor !== undefined });
  }

  #onEvent({ event, payload }: ReceivedEvent): void {
    if (event === "gap") return void this.reload();
    if (!("sessionKey" in payload)) return;
    const owner = ownerOf(this.#client, payload);
    if (this.#filter.userId !== undefined && this.#filter.userId !== owner) return;
    const place = placeOf(payload);
    if (event === "approval.requested" || event === "approval.resolved") {
      this.#wanted.approvals = true;
      void this.#reads.request();
    }
    if (event === "approval.resolved") {
      this.#approvals = this.#approvals.filter(({ approvalId }) => approvalId !== payload.approvalId);
      this.#publish();
    }
    if (event === "session.deleted") {
      this.#rows.delete(this.#idOf(place));
      this.#publish();
    }
    this.#readSoon(place);
  }

  #readSoon(place: SessionPlace): void {
    this.#changed.set(this.#idOf(place), place);
    this.#reads.requestSoon();
  }

  /** Reads the approvals, because the event for an approval lacks the approval's path from the root. */
  async #readApprovals(): Promise<void> {
    this.#approvals = await this.#listApprovals();
    this.#publish();
    this.#readMissing();
  }

  async #listApprovals(): Promise<readonly Approval[]> {
    const users = usersParam(this.#client, this.#filter.userId);
    const { approvals } = await this.#client.call("approvals.list", { limit: maxApprovals, ...users });
    return approvals.toSorted((a, b) => a.requestedAt - b.requestedAt);
  }

  /** A session that is waiting for approval belongs at the top, even if its page has not been loaded yet. */
  #readMissing(): void {
    for (const approval of this.#approvals) {
      const place = placeOf(approval);
      if (!this.#rows.has(this.#idOf(place))) this.#readSoon(place);
    }
  }

  async #readRows(changed: Iterable<SessionPlace>): Promise<void> {
    const waiting = new Set(this.#approvals.map((approval) => this.#idOf(placeOf(approval))));
    const isWaiting = (place: SessionPlace) => waiting.has(this.#idOf(place));
    const groups = Map.groupBy(changed, (place) => JSON.stringify([place.userId, isWaiting(place)]));
    const { userId: _, ...filter } = this.#filter;
    for (const places of groups.values()) {
      for (let from = 0; from < places.length; from += maxKeys) {
        const batch = places.slice(from, from + maxKeys);
        const [{ userId } = {}] = batch;
        const { sessions } = await this.#client.call("sessions.list", {
          // A session that is waiting for approval is shown even if it is archived.
          ...(batch.some(isWaiting) ? {} : { archived: false }),
          ...filter,
          keys: batch.map(({ key }) => key),
          ...userParam({ userId }),
        });
        // Sessions that no longer match the filter or were archived are not included.
        for (const place of batch) this.#rows.delete(this.#idOf(place));
        for (const row of sessions) this.#rows.set(idOf(row), row);
      }
    }
    this.#publish();
  }

  #idOf(place: { readonly key: string; readonly userId?: string | undefined }): string {
    return idOf({ key: place.key, userId: ownerOf(this.#client, place) });
  }

  #publish(change: Partial<DeskState> = {}): void {
    const rows = [...this.#rows.values()].sort(orders[this.#filter.sort ?? "updated"]);
    assignThreads(rows);
    const { hasMore, total } = { ...this.#state, ...change };
    this.#set({ ...change, total: hasMore ? total : rows.length, rows, approvals: this.#approvals });
  }

  #set(change: Partial<DeskState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Keeps rows that already exist. They are newer than the page, because they were read after an event. */
function addRows(rows: Map<string, SessionRow>, page: readonly SessionRow[]): void {
  for (const row of page) if (!rows.has(idOf(row))) rows.set(idOf(row), row);
}

type Order = (a: SessionRow, b: SessionRow) => number;

/** The same sort orders as `sessions.list`. They put rows that events add between page loads in the right place. */
const orders: Record<NonNullable<DeskFilter["sort"]>, Order> = {
  updated: (a, b) => b.updatedAt - a.updatedAt,
  created: (a, b) => (b.sessionId < a.sessionId ? -1 : 1),
  tokens: (a, b) => (b.totalTokens ?? 0) - (a.totalTokens ?? 0),
  cost: (a, b) => (b.estimatedCostUsd ?? 0) - (a.estimatedCostUsd ?? 0),
  name: (a, b) => rowName(a).localeCompare(rowName(b)),
};

export function partOf(row: SessionRow, waiting: ReadonlySet<string>): DeskPart {
  // Approvals arrive as events before the row is read again.
  if (waiting.has(idOf(row)) || row.state === "needs_you") return "needs-you";
  return row.state === "working" ? "working" : "done";
}

const none: ReadonlySet<string> = new Set();

/** Whether a session needs no attention. */
export function isFinished(row: SessionRow, waiting = none): boolean {
  return partOf(row, waiting) === "done" && row.state !== "failed";
}
