import { createTreeCheck } from "../../access/visibility/decide-access.ts";
import type { Timing } from "../../client/retry.ts";
import { present } from "../../core/present.ts";
import type { Calls, EventStream, ReceivedEvent } from "../../protocol/calls.ts";
import type { Result } from "../../protocol/method-table.ts";
import type { ServerContext } from "./context.ts";
import type { Approval, PermissionRequests } from "./permission-requests.ts";

/** The maximum page size of `approvals.list`. */
const maxApprovals = 500;

const streams = new WeakMap<ServerContext["calls"], SharedStream>();

/** Opens one stream for all sessions on a connection because the number of streams is limited. */
function approvalStream({ calls, scope }: ServerContext): EventStream {
  const events = ["approval.*", "run.resumed", "run.ended"];
  const stream =
    streams.get(calls) ??
    new SharedStream(() => calls.events({ events, ...present({ userId: scope.userId }) }));
  streams.set(calls, stream);
  return stream.subscribe();
}

export interface ApprovalSources {
  /** Retries a call while a gateway is temporarily unavailable. */
  readonly reader: Calls<"sessions.get" | "approvals.list">;
  readonly permissions: PermissionRequests;
  readonly timing: Timing;
}

/**
 * Finds the pending approvals of a session that is open in an editor. Includes the approvals of all its descendants,
 * because the editor would not show them otherwise. No event reports an answer that another process wrote to the
 * folder, so the list of approvals is polled while a request is pending.
 */
export class PendingApprovals {
  readonly #key: string;
  readonly #context: ServerContext;
  readonly #sources: ApprovalSources;
  readonly #stream: EventStream;
  #cancelTimer: (() => void) | null = null;
  #isClosed = false;

  constructor(key: string, context: ServerContext, sources: ApprovalSources) {
    this.#key = key;
    this.#context = context;
    this.#sources = sources;
    this.#stream = approvalStream(context);
  }

  get ready(): Promise<void> {
    return this.#stream.ready;
  }

  /**
   * Opens requests for the session's own approvals and withdraws those that have been answered. Must be called in event
   * order.
   */
  async syncOwn(): Promise<void> {
    const { permissions } = this.#sources;
    const approvals = await this.#list({ sessionKey: this.#key });
    if (approvals.length < maxApprovals) permissions.withdrawOthers(idsOf(approvals), "own");
    for (const approval of approvals) permissions.open(approval);
  }

  /** Call this when a run resumes or ends, because its approvals might have been answered. */
  checkRun(runId: string): void {
    if (this.#sources.permissions.hasOpenFor(runId)) void this.#try(() => this.#withdrawAnswered());
  }

  /** Polls until no request is pending. */
  poll(): void {
    const { timing, permissions } = this.#sources;
    const { pollMs } = this.#context;
    if (pollMs === undefined || this.#isClosed || this.#cancelTimer !== null) return;
    this.#cancelTimer = timing.setTimer(pollMs, () => {
      void this.#try(() => this.#withdrawAnswered()).then(() => {
        this.#cancelTimer = null;
        if (permissions.openIds.length > 0) this.poll();
      });
    });
  }

  /** Opens and withdraws requests for spawned sessions until the stream ends. Errors do not end the stream. */
  async listenToSpawned(): Promise<void> {
    await this.#try(() => this.#syncSpawned());
    for await (const received of this.#stream) {
      if (this.#isClosed) return;
      await this.#try(() => this.#takeEvent(received));
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#stream.close();
  }

  get #user(): { readonly userId?: string } {
    return present({ userId: this.#context.scope.userId });
  }

  /**
   * Considers only requests that were pending before the list was read, because later ones might be missing from the
   * list.
   */
  async #withdrawAnswered(): Promise<void> {
    const { permissions } = this.#sources;
    const openIds = permissions.openIds;
    if (openIds.length === 0) return;
    const approvals = await this.#list({});
    if (approvals.length >= maxApprovals) return;
    const pending = new Set(idsOf(approvals));
    for (const id of openIds) if (!pending.has(id)) permissions.withdraw(id);
  }

  async #takeEvent(received: ReceivedEvent): Promise<void> {
    const { permissions } = this.#sources;
    switch (received.event) {
      case "gap":
        return this.#syncSpawned();
      case "approval.requested": {
        // The list covers one user. Events can cover all users, in which case each event identifies its user.
        const { userId } = this.#context.scope;
        if ((received.payload.userId ?? userId) === userId) await this.#openSpawned(received.payload);
        return;
      }
      case "approval.resolved":
        return permissions.withdraw(received.payload.approvalId, received.payload.answer);
      case "run.resumed":
      case "run.ended":
        return permissions.hasOpenFor(received.payload.runId) ? this.#syncSpawned() : undefined;
      default:
        return;
    }
  }

  async #syncSpawned(): Promise<void> {
    const approvals = await this.#list({});
    if (approvals.length < maxApprovals)
      this.#sources.permissions.withdrawOthers(idsOf(approvals), "spawned");
    for (const approval of approvals) await this.#try(() => this.#openSpawned(approval));
  }

  async #openSpawned(approval: Approval & { readonly sessionKey: string }): Promise<void> {
    if (approval.sessionKey === this.#key) return;
    const session = await this.#read(approval.sessionKey);
    if (session === null || !(await this.#isSpawnedHere(session))) return;
    const { key, label } = session;
    this.#sources.permissions.open({ ...approval, spawned: { key, ...present({ label }) } });
  }

  #isSpawnedHere({ key, agentId, spawnedBy }: Result<"sessions.get">): boolean | Promise<boolean> {
    const isInTree = createTreeCheck(async (above) => (await this.#read(above))?.spawnedBy ?? null);
    const userId = this.#context.scope.userId ?? null;
    return isInTree(this.#key, { userId, agentId, key, spawnedBy: spawnedBy ?? null });
  }

  /** Returns `null` if the session no longer exists or this user is not allowed to see it. */
  async #read(key: string): Promise<Result<"sessions.get"> | null> {
    try {
      const found = await this.#sources.reader.call("sessions.get", { key, ...this.#user });
      return found.key === key ? found : null;
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code === "not_found") return null;
      throw error;
    }
  }

  async #list(filter: { readonly sessionKey?: string }) {
    const params = { ...filter, limit: maxApprovals, ...this.#user };
    return (await this.#sources.reader.call("approvals.list", params)).approvals;
  }

  async #try(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!this.#isClosed) this.#context.report(error);
    }
  }
}

function idsOf(approvals: readonly { readonly approvalId: string }[]): string[] {
  return approvals.map(({ approvalId }) => approvalId);
}

/** A reader with more unread events than this receives a gap event in their place. */
const maxUnread = 1000;

/** Shares the events from one stream among many readers. The stream is open as long as there is at least one reader. */
export class SharedStream {
  readonly #open: () => EventStream;
  readonly #readers = new Set<Reader>();
  #source: EventStream | null = null;

  constructor(open: () => EventStream) {
    this.#open = open;
  }

  subscribe(): EventStream {
    const source = this.#source ?? this.#openSource();
    const reader = new Reader(source.ready, () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0 || this.#source !== source) return;
      source.close();
      this.#source = null;
    });
    this.#readers.add(reader);
    return reader;
  }

  #openSource(): EventStream {
    const source = this.#open();
    this.#source = source;
    void this.#forward(source);
    return source;
  }

  async #forward(source: EventStream): Promise<void> {
    let end: StreamEnd = {};
    try {
      for await (const received of source) for (const reader of this.#readers) reader.push(received);
    } catch (error) {
      end = { error };
    }
    if (this.#source !== source) return;
    this.#source = null;
    for (const reader of [...this.#readers]) reader.end(end);
  }
}

/** `error` is set if the stream failed. */
interface StreamEnd {
  readonly error?: unknown;
}

class Reader implements EventStream {
  readonly ready: Promise<void>;
  readonly #onClose: () => void;
  #unread: ReceivedEvent[] = [];
  #end: StreamEnd | null = null;
  #wake: () => void = () => undefined;

  constructor(ready: Promise<void>, onClose: () => void) {
    this.ready = ready;
    this.#onClose = onClose;
  }

  push(received: ReceivedEvent): void {
    this.#unread.push(received);
    if (this.#unread.length > maxUnread) this.#unread = [gapBefore(received.seq)];
    this.#wake();
  }

  end(end: StreamEnd): void {
    this.#end ??= end;
    this.#wake();
  }

  close(): void {
    this.#unread = [];
    this.end({});
    this.#onClose();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ReceivedEvent> {
    for (;;) {
      const next = this.#unread.shift();
      if (next !== undefined) yield next;
      else if (this.#end === null) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else if ("error" in this.#end) throw this.#end.error;
      else return;
    }
  }
}

function gapBefore(seq: number): ReceivedEvent {
  return { event: "gap", payload: { after: seq, upTo: seq, reason: "slow" }, seq };
}
