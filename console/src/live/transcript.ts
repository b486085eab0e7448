import type { EventStream, ReceivedEvent, Result, SkeinClient } from "skein/client";
import { CallError } from "skein/client";
import { errorText } from "../connect/gateway.tsx";

export type TranscriptEntry = Result<"sessions.entries">["entries"][number];
export type PendingInput = Result<"chat.history">["pending"][number];

/** An answer while it is written. Its entry replaces it. */
export interface LiveAnswer {
  readonly runId: string;
  readonly text: string;
  /** How much of the beginning is not here, because it is too long. */
  readonly textOffset: number;
  readonly thinking: string;
  readonly thinkingOffset: number;
  readonly tools: readonly LiveTool[];
}
export interface LiveTool {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

export interface TranscriptState {
  readonly status: "loading" | "ready" | "failed";
  readonly error: string | null;
  readonly sessionKey: string | null;
  readonly sessionId: string | null;
  /** Along the branch that is shown, oldest first. */
  readonly entries: readonly TranscriptEntry[];
  readonly hasEarlier: boolean;
  /** The page was opened at an entry further up: the end of the branch is not here yet. */
  readonly hasLater: boolean;
  readonly leafId: string | null;
  readonly live: readonly LiveAnswer[];
  readonly pending: readonly PendingInput[];
}

export interface TranscriptPlace {
  readonly key: string;
  readonly userId?: string;
  /** Another branch, by its last entry. The session's own leaf is not moved. */
  readonly leafId?: string;
  /** The entry that the page opens at. */
  readonly around?: string;
}

const empty: TranscriptState = {
  status: "loading",
  error: null,
  sessionKey: null,
  sessionId: null,
  entries: [],
  hasEarlier: false,
  hasLater: false,
  leafId: null,
  live: [],
  pending: [],
};

const pageSize = 200;

/**
 * One session as the page shows it. Entries are upserted by ID, so an event and a page that overlap never show twice.
 * After a gap the last page is read again; what was loaded before it stays where the two meet.
 */
export class Transcript {
  readonly #client: SkeinClient;
  readonly #place: TranscriptPlace;
  readonly #listeners = new Set<() => void>();
  #state = empty;
  #stream: EventStream | null = null;
  #reading: Promise<void> | null = null;
  #isStale = false;
  #isClosed = false;
  #flushTimer: ReturnType<typeof setTimeout> | number | null = null;
  #deltas: DeltaEvent[] = [];
  #isLoading = false;
  /** Events up to this number are in `live` already. */
  #liveSeq = 0;
  /** The events of live answers since the last reading began: they may be newer than what it returns. */
  #recent: ReceivedEvent[] = [];

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
    void this.#open();
  }

  close(): void {
    this.#isClosed = true;
    this.#stream?.close();
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer);
  }

  /** Loads the page before the first entry. */
  loadEarlier(): Promise<void> {
    const first = this.#state.entries[0];
    if (!this.#state.hasEarlier || first === undefined) return Promise.resolve();
    return this.#extend({ before: first.id }, (page) => ({
      entries: [...this.#unknown(page.entries), ...this.#state.entries],
      hasEarlier: page.hasEarlier,
    }));
  }

  /** Loads the page after the last entry. */
  loadLater(): Promise<void> {
    const last = this.#state.entries.at(-1);
    if (!this.#state.hasLater || last === undefined) return Promise.resolve();
    return this.#extend({ after: last.id }, (page) => ({
      entries: [...this.#state.entries, ...this.#unknown(page.entries)],
      hasLater: page.hasLater,
      leafId: page.leafId,
    }));
  }

  async #extend(
    from: { before: string } | { after: string },
    change: (page: Result<"sessions.entries">) => Partial<TranscriptState>,
  ): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    try {
      this.#set(change(await this.#page(from)));
    } catch {
      // The next scroll to this end tries again.
    } finally {
      this.#isLoading = false;
    }
  }

  #unknown(entries: readonly TranscriptEntry[]): readonly TranscriptEntry[] {
    const known = new Set(this.#state.entries.map(({ id }) => id));
    return entries.filter(({ id }) => !known.has(id));
  }

  /** Loads everything up to the beginning, for the find bar. */
  async loadAll(signal: AbortSignal): Promise<void> {
    while (this.#state.hasEarlier && !signal.aborted && !this.#isClosed) {
      const before = this.#state.entries.length;
      await this.loadEarlier();
      if (this.#state.entries.length === before) return;
    }
  }

  async #open(): Promise<void> {
    const { key, userId } = this.#place;
    const stream = this.#client.events({ keys: [key], ...(userId === undefined ? {} : { userId }) });
    this.#stream = stream;
    void this.#follow(stream);
    // Reading starts once no later event can be missed.
    await stream.ready.catch(() => undefined);
    await this.#reread();
  }

  async #follow(stream: EventStream): Promise<void> {
    try {
      for await (const event of stream) this.#take(event);
    } catch (error) {
      if (!this.#isClosed) this.#set({ status: "failed", error: errorText(error) });
    }
  }

  #take(event: ReceivedEvent): void {
    if (event.event === "gap") return void this.#reread();
    if (this.#reading !== null) this.#recent.push(event);
    if (event.event === "run.delta") {
      this.#deltas.push(event);
      return this.#flushSoon();
    }
    this.#flush();
    this.#changeLive(event);
    switch (event.event) {
      case "entry.appended":
        return this.#append(event.payload.entry as TranscriptEntry);
      case "run.ended":
        // A reading that began before would bring the input back.
        if (this.#reading !== null) void this.#reread();
        return this.#set({
          pending: this.#state.pending.filter(({ runId }) => runId !== event.payload.runId),
        });
      case "run.queued":
      case "run.started":
      case "run.steered":
      case "session.created":
      case "session.updated":
      case "session.reset":
      case "session.restored":
        return void this.#reread();
      default:
        return;
    }
  }

  #changeLive(event: ReceivedEvent): void {
    if (event.seq <= this.#liveSeq) return;
    const live = withEvent(this.#state.live, event);
    if (live !== this.#state.live) this.#set({ live });
  }

  /** An entry that continues what is shown is appended. Anything else moved the branch, and the page is read again. */
  #append(entry: TranscriptEntry): void {
    const { entries, leafId, hasLater } = this.#state;
    if (this.#place.leafId !== undefined || hasLater || entries.some(({ id }) => id === entry.id)) return;
    if (this.#reading !== null || entry.parentId !== leafId) return void this.#reread();
    this.#set({ entries: [...entries, entry], leafId: entry.id });
  }

  /** At most one reading at a time; one that arrives meanwhile is done afterwards. */
  #reread(): Promise<void> {
    if (this.#reading !== null) {
      this.#isStale = true;
      return this.#reading;
    }
    const reading = this.#read().finally(() => {
      this.#reading = null;
      if (this.#isStale && !this.#isClosed) {
        this.#isStale = false;
        void this.#reread();
      }
    });
    this.#reading = reading;
    return reading;
  }

  async #read(): Promise<void> {
    const { around } = this.#place;
    const isFirst = this.#state.status !== "ready";
    this.#recent = [];
    try {
      const [live, page] = await Promise.all([
        this.#client.call("chat.live", this.#chat()),
        isFirst || !this.#state.hasLater
          ? this.#page(isFirst && around !== undefined ? { around } : {})
          : null,
      ]);
      if (this.#isClosed) return;
      this.#flush();
      this.#liveSeq = live.seq ?? 0;
      const newer = this.#recent.filter(({ seq }) => seq > this.#liveSeq);
      this.#set({
        status: "ready",
        error: null,
        ...(page === null
          ? {}
          : {
              sessionKey: page.key,
              sessionId: page.sessionId,
              leafId: page.leafId,
              ...joined(this.#state, page),
            }),
        live: newer.reduce(
          withEvent,
          isAnsweredSince(live.leafId, page) ? live.runs.map(withoutText) : live.runs,
        ),
        pending: live.pending,
      });
    } catch (error) {
      if (this.#isClosed) return;
      // The first message creates the session.
      if (isFirst && around === undefined && error instanceof CallError && error.code === "not_found")
        return this.#set({ status: "ready", error: null });
      const status = this.#state.status === "ready" ? "ready" : "failed";
      this.#set({ status, error: errorText(error) });
    }
  }

  #page(more: { before?: string; after?: string; around?: string }): Promise<Result<"sessions.entries">> {
    const { key, userId, leafId } = this.#place;
    return this.#client.call("sessions.entries", {
      key,
      limit: pageSize,
      ...(userId === undefined ? {} : { userId }),
      ...(leafId === undefined ? {} : { leafId }),
      ...more,
    });
  }

  #chat() {
    const { key, userId } = this.#place;
    return { sessionKey: key, ...(userId === undefined ? {} : { userId }) };
  }

  /** Once per frame; on a timer while the tab is hidden, because frames stop there. */
  #flushSoon(): void {
    if (this.#flushTimer !== null) return;
    this.#flushTimer = setTimeout(() => this.#flush(), document.hidden ? 250 : 32);
  }

  #flush(): void {
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer);
    this.#flushTimer = null;
    const deltas = this.#deltas;
    if (deltas.length === 0) return;
    this.#deltas = [];
    for (const event of deltas) this.#changeLive(event);
  }

  #set(change: Partial<TranscriptState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of [...this.#listeners]) listener();
  }
}

type DeltaEvent = Extract<ReceivedEvent, { event: "run.delta" }>;
type Delta = DeltaEvent["payload"];

function isAnswer(entry: TranscriptEntry): boolean {
  return entry.type === "message" && entry.message.role === "assistant";
}

const noText = { text: "", textOffset: 0, thinking: "", thinkingOffset: 0, tools: [] };

function withoutText(answer: LiveAnswer): LiveAnswer {
  return { ...answer, ...noText, tools: answer.tools };
}

/** Whether the page has an answer that was written after the live answers were read: its event may still be on its way. */
function isAnsweredSince(
  leafId: string | null,
  page: { entries: readonly TranscriptEntry[] } | null,
): boolean {
  if (page === null) return false;
  const index = page.entries.findIndex(({ id }) => id === leafId);
  return page.entries.slice(index + 1).some(isAnswer) && (index >= 0 || leafId === null);
}

/** Live answers after an event: a piece of text, a tool call, a new attempt, or the entry that replaces the answer. */
export function withEvent(live: readonly LiveAnswer[], event: ReceivedEvent): readonly LiveAnswer[] {
  switch (event.event) {
    case "run.delta":
      return withDelta(live, event.payload);
    case "run.tool":
      return changed(live, event.payload.runId, (answer) => withTool(answer, event.payload));
    case "run.retry":
      return changed(live, event.payload.runId, (answer) => ({ ...answer, ...noText }));
    case "entry.appended":
      // The event does not name the run. A session writes one answer at a time.
      if (!isAnswer(event.payload.entry as TranscriptEntry)) return live;
      return live.map(withoutText);
    case "run.step":
      if (event.payload.phase !== "asked") return live;
      return changed(live, event.payload.runId, (answer) => ({ ...answer, ...noText }));
    case "run.ended":
    case "run.sleeping":
      return live.filter(({ runId }) => runId !== event.payload.runId);
    default:
      return live;
  }
}

function changed(
  live: readonly LiveAnswer[],
  runId: string | undefined,
  change: (answer: LiveAnswer) => LiveAnswer,
): readonly LiveAnswer[] {
  return live.map((answer) => (answer.runId === runId ? change(answer) : answer));
}

/**
 * A piece that is there already is a repetition. One at offset 0 begins the next answer of the run. One behind a hole waits for
 * the entry.
 */
export function withDelta(
  live: readonly LiveAnswer[],
  { runId, kind, delta, offset }: Delta,
): readonly LiveAnswer[] {
  if (runId === undefined) return live;
  const found = live.find((answer) => answer.runId === runId);
  const answer = found ?? { runId, ...noText };
  const before = answer[kind];
  const at = offset - answer[`${kind}Offset`];
  if (at < 0 || at > before.length || at + delta.length <= before.length) return live;
  const next = { ...answer, [kind]: before.slice(0, at) + delta };
  return found === undefined ? [...live, next] : live.map((each) => (each === found ? next : each));
}

function withTool(
  answer: LiveAnswer,
  payload: { phase: string; toolCallId: string; toolName: string; arguments?: Record<string, unknown> },
): LiveAnswer {
  const others = answer.tools.filter(({ toolCallId }) => toolCallId !== payload.toolCallId);
  if (payload.phase === "result") return { ...answer, tools: others };
  const { toolCallId, toolName } = payload;
  return {
    ...answer,
    tools: [
      ...others,
      { toolCallId, toolName, ...(payload.arguments === undefined ? {} : { arguments: payload.arguments }) },
    ],
  };
}

/** The last page, behind what was loaded before it if the two meet. */
function joined(
  { entries }: TranscriptState,
  page: { entries: readonly TranscriptEntry[]; hasEarlier: boolean; hasLater: boolean },
): Partial<TranscriptState> {
  const first = page.entries[0];
  const meet = first === undefined ? -1 : entries.findIndex(({ id }) => id === first.id);
  if (meet <= 0) return { entries: page.entries, hasEarlier: page.hasEarlier, hasLater: page.hasLater };
  return { entries: [...entries.slice(0, meet), ...page.entries] };
}
