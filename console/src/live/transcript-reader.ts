import type { ReceivedEvent, SkeinClient } from "skein/client";
import { CallError } from "skein/client";
import { errorText } from "../connect/gateway.tsx";
import { SingleFlight } from "../connect/single-flight.ts";
import { userParam } from "../paths.ts";
import type { EntriesPage, TranscriptState } from "./transcript.ts";
import {
  emptyTranscript,
  markStale,
  replacedBy,
  withEarlierPage,
  withEvent,
  withFacts,
  withLastPage,
  withLaterPage,
  withReading,
} from "./transcript.ts";

export interface TranscriptPlace {
  readonly key: string;
  readonly userId?: string;
  /** The last entry of the branch to show if it is not the active one. The session's own leaf does not move. */
  readonly leafId?: string;
  /** The entry at which the page opens. */
  readonly around?: string;
  /** The entry at which the page opens if it is still on the branch. Otherwise, the page opens at the end. */
  readonly resumeAt?: string;
}

type Range = { readonly limit?: number } & (
  | { readonly before?: string }
  | { readonly after?: string }
  | { readonly around?: string }
);
/** A page and how to combine it with the loaded pages. */
interface Reading {
  readonly page: EntriesPage;
  readonly join: typeof withLastPage;
}

const pageSize = 200;
/** How often to poll a run in another process, which sends no events here and stores its text once a second. */
const elsewhereMs = 2000;

/** Reads one session and keeps it up to date with its events. */
export class TranscriptReader {
  readonly #client: SkeinClient;
  readonly #place: TranscriptPlace;
  readonly #listeners = new Set<() => void>();
  #reads = new SingleFlight(() => this.#read());
  #subscription = new SingleFlight(() => this.#follow());
  #state = emptyTranscript;
  #stream: ReturnType<SkeinClient["events"]> | null = null;
  #isClosed = false;
  #flushTimer: ReturnType<typeof setTimeout> | null = null;
  #deltas: ReceivedEvent[] = [];
  /** The events since the read began. They might be newer than its result and are applied to it again. */
  #since: ReceivedEvent[] = [];
  /** The entry around which to read next. */
  #goal: string | null = null;
  readonly #loads = new Map<"before" | "after" | "end", Promise<void>>();

  constructor(client: SkeinClient, place: TranscriptPlace) {
    this.#client = client;
    this.#place = place;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly state = (): TranscriptState => this.#state;

  open(): void {
    this.#isClosed = false;
    this.#reads = new SingleFlight(() => this.#read());
    this.#subscription = new SingleFlight(() => this.#follow());
    void this.#subscription.request();
  }

  close(): void {
    this.#isClosed = true;
    this.#reads.close();
    this.#subscription.close();
    this.#stream?.close();
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer);
    this.#flushTimer = null;
  }

  /** Loads the page before the first entry. */
  readonly loadEarlier = (): Promise<void> => this.#load("before", this.#state.entries[0]?.id);

  /** Loads the page after the last entry. */
  readonly loadLater = (): Promise<void> => this.#load("after", this.#state.entries.at(-1)?.id);

  /** Loads the whole branch, for the find bar. */
  async loadAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#isClosed) {
      const { hasEarlier, hasLater, entries } = this.#state;
      if (!hasEarlier && !hasLater) return;
      await (hasEarlier ? this.loadEarlier() : this.loadLater());
      if (this.#state.entries === entries) return;
    }
  }

  /**
   * Loads the page around an entry of the branch and discards the other pages, unless the entry is already loaded.
   * Returns whether the entry is loaded afterward.
   */
  readonly goTo = async (entryId: string): Promise<boolean> => {
    const isLoaded = () => this.#state.entries.some(({ id }) => id === entryId);
    if (isLoaded()) return true;
    // The client would hold the call, and the transcript would jump when the user no longer expects it to.
    if (this.#client.state !== "open") {
      this.#publish({ ...this.#state, error: "This entry cannot be loaded: the gateway is offline." });
      void this.#reads.request();
      return false;
    }
    this.#goal = entryId;
    this.#state = markStale(this.#state, "end");
    await this.#reads.request();
    if (this.#goal === entryId) this.#goal = null;
    return isLoaded();
  };

  /** Loads the last page and discards the earlier pages. */
  readonly goToEnd = (): Promise<void> => {
    if (!this.#state.hasLater) return Promise.resolve();
    return this.#once("end", async () => {
      const page = await this.#page({});
      this.#set(replacedBy(this.#state, page));
    });
  };

  /** Reads again after a failure. */
  readonly retry = (): void => {
    this.#set({ ...this.#state, loadError: null });
    void this.#reads.request();
  };

  #load(direction: "before" | "after", edgeId: string | undefined): Promise<void> {
    const { hasEarlier, hasLater } = this.#state;
    if (edgeId === undefined || !(direction === "before" ? hasEarlier : hasLater)) return Promise.resolve();
    return this.#once(direction, async () => {
      const page = await this.#page(direction === "before" ? { before: edgeId } : { after: edgeId });
      const extend = direction === "before" ? withEarlierPage : withLaterPage;
      this.#set(extend(this.#state, page, edgeId));
    });
  }

  /** Allows at most one load of each kind at a time. Never rejects. */
  #once(kind: "before" | "after" | "end", load: () => Promise<void>): Promise<void> {
    const running = this.#loads.get(kind);
    if (running !== undefined) return running;
    const loading = load()
      .catch((error: unknown) => {
        if (this.#isClosed) return;
        // The entry at the edge is no longer on this branch.
        if (isNotFound(error)) this.#set(markStale(this.#state, "end"));
        else this.#set({ ...this.#state, loadError: errorText(error) });
      })
      .finally(() => this.#loads.delete(kind));
    this.#loads.set(kind, loading);
    return loading;
  }

  /** Receives events until the stream ends. A rejected subscription is retried later. */
  async #follow(): Promise<void> {
    const { key, userId } = this.#place;
    const stream = this.#client.events({ keys: [key], ...userParam({ userId }) });
    this.#stream = stream;
    // Reading starts once no later event can be missed. There are no events for earlier changes.
    void stream.ready
      .catch(() => undefined)
      .then(() => {
        this.#state = markStale(this.#state, "all");
        return this.#reads.request();
      });
    try {
      for await (const event of stream) this.#receive(event);
    } catch (error) {
      if (this.#stream === stream) this.#stream = null;
      // If the whole connection has ended, the client's state shows that.
      if (this.#isClosed || this.#client.state === "closed") return;
      this.#publish({ ...this.#state, error: errorText(error) });
      throw error;
    }
  }

  #receive(event: ReceivedEvent): void {
    if (this.#reads.isRunning) this.#since.push(event);
    if (event.event === "run.delta") {
      this.#deltas.push(event);
      // Uses a timer, because animation frames stop while the tab is hidden.
      this.#flushTimer ??= setTimeout(() => this.#flush(), document.hidden ? 250 : 32);
      return;
    }
    this.#flush();
    if (event.event === "gap") void this.#reads.request();
    // Before the first read, there is nothing that an event could change.
    if (this.#state.status !== "loading") this.#set(withEvent(this.#state, event));
  }

  #flush(): void {
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer);
    this.#flushTimer = null;
    const deltas = this.#deltas;
    this.#deltas = [];
    if (deltas.length > 0) this.#set(deltas.reduce(withEvent, this.#state));
  }

  async #read(): Promise<void> {
    const stale = this.#state.status === "ready" ? (this.#state.stale ?? "end") : "all";
    this.#state = { ...this.#state, stale: null };
    this.#since = [];
    const { key, userId } = this.#place;
    try {
      const reading = stale === "live" ? null : await this.#readPages(stale);
      // Read after the pages, so that no live text is older than an answer in them. Read from the gateway that sends the
      // events, because each gateway numbers its events itself.
      const live = await (this.#stream ?? this.#client).call("chat.live", {
        sessionKey: key,
        ...userParam({ userId }),
      });
      if (this.#isClosed) return;
      this.#flush();
      const next = withReading(this.#state, live, reading?.page ?? null, reading?.join ?? withFacts);
      this.#set(this.#since.reduce(withEvent, next));
      if (live.runs.some(({ isStreaming }) => !isStreaming)) this.#reads.requestSoon(elsewhereMs);
    } catch (error) {
      if (!this.#isClosed) this.#fail(error, stale);
    }
  }

  #fail(error: unknown, stale: "live" | "end" | "all"): void {
    const { status, branchLeafId, hasLater } = this.#state;
    // An entry on the page no longer exists, but the session might.
    if (isNotFound(error) && status === "ready" && (branchLeafId !== null || hasLater))
      return this.#set(markStale({ ...this.#state, branchLeafId: null, hasLater: false }, "end"));
    const isBranch = this.#place.leafId !== undefined || this.#place.around !== undefined;
    const wasRead = status === "ready" || status === "missing";
    if (isNotFound(error) && (wasRead || !isBranch))
      return this.#set({ ...this.#state, status: "missing", error: errorText(error), live: [], pending: [] });
    const isFinal = isNotFound(error) || isForbidden(error);
    const failed = wasRead ? status : isFinal ? "refused" : "failed";
    // Unlike `#set`, `#publish` requests no other read. The retry is scheduled by the error below.
    this.#publish({ ...markStale(this.#state, stale), status: failed, error: errorText(error) });
    if (!isFinal) throw error;
  }

  async #readPages(stale: "end" | "all"): Promise<Reading> {
    const { status, entries, hasLater } = this.#state;
    const first = entries[0];
    const last = entries.at(-1);
    if (status !== "ready" || first === undefined || last === undefined) {
      const isFirst = status !== "ready" && status !== "missing";
      return { page: isFirst ? await this.#readFirst() : await this.#page({}), join: replacedBy };
    }
    const goal = this.#goal;
    this.#goal = null;
    if (goal !== null) {
      try {
        return { page: await this.#page({ around: goal }), join: replacedBy };
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    if (stale === "all") return this.#readRange(first.id, last.id);
    // The pages in between are not loaded. Only the branch and its end might have changed.
    if (hasLater) return { page: await this.#page({ around: last.id, limit: 1 }), join: withFacts };
    return { page: await this.#page({}), join: withLastPage };
  }

  async #readFirst(): Promise<EntriesPage> {
    const { around, leafId, resumeAt } = this.#place;
    const opened = around === undefined ? {} : { around };
    if (resumeAt === undefined) return this.#page(opened);
    try {
      const page = await this.#page({ around: resumeAt });
      // The session might have moved to another branch. Only a link to an entry shows the branch that contains the
      // entry.
      if (around !== undefined || page.branchLeafId === leafId) return page;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return this.#page(opened);
  }

  /** Reads the loaded entries again. If the first entry is no longer on the branch, reads the last page. */
  async #readRange(firstId: string, lastId: string): Promise<Reading> {
    try {
      const { entries, hasEarlier } = await this.#page({ around: firstId, limit: 1 });
      for (let after = firstId; ; ) {
        const page = await this.#page({ after });
        entries.push(...page.entries);
        const next = page.entries.at(-1)?.id;
        if (!page.hasLater || next === undefined || page.entries.some(({ id }) => id === lastId))
          return { page: { ...page, entries, hasEarlier }, join: replacedBy };
        after = next;
      }
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return { page: await this.#page({}), join: replacedBy };
    }
  }

  #page(range: Range): Promise<EntriesPage> {
    const { key, userId, leafId } = this.#place;
    const { status, branchLeafId } = this.#state;
    const branch = status === "ready" ? branchLeafId : (leafId ?? null);
    return this.#client.call("sessions.entries", {
      key,
      limit: pageSize,
      ...userParam({ userId }),
      ...(branch === null ? {} : { leafId: branch }),
      ...range,
    });
  }

  #set(state: TranscriptState): void {
    const isStaler = state.stale !== null && state.stale !== this.#state.stale;
    this.#publish(state);
    if (isStaler) void this.#reads.request();
  }

  #publish(state: TranscriptState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of [...this.#listeners]) listener();
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof CallError && error.code === "not_found";
}

function isForbidden(error: unknown): boolean {
  return error instanceof CallError && error.code === "forbidden";
}
