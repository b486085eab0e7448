import type { Later } from "../core/concurrency.ts";
import { later } from "../core/concurrency.ts";
import type { SkeinEvent } from "../core/events.ts";
import { deliveryId } from "../core/hashed-id.ts";
import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { endOfText, inLine } from "../core/text.ts";
import type { ChildSequel, Run } from "../runs/contract.ts";
import type { App } from "./app.ts";
import { acceptRequest } from "./delivery.ts";

/** Tests can replace `after` to control time. */
type RelayApp = Pick<App, "bus" | "clock" | "owner" | "report"> & {
  readonly store: Pick<App["store"], "sessions">;
  readonly runs: Pick<App["runs"], "get" | "accept" | "abort">;
  readonly watcher: Pick<App["watcher"], "untilEnded">;
};

/**
 * Relays the progress of ACP children that run in this process to the parents that requested it. Returns a function
 * that stops relaying.
 */
export function relayProgress(app: RelayApp, after: Later = later): () => void {
  const relays = new Map<string, Relay>();
  const begin = async (runId: string, relay: Relay) => {
    const run = await app.runs.get(runId);
    if (run === null || !relay.begin(run)) relay.end();
  };
  const stop = app.bus.subscribe((event) => {
    const { runId } = event;
    if (runId === undefined) return;
    if (event.type === "run.started" && isAcpKey(event.sessionKey)) {
      relays.get(runId)?.end();
      const relay: Relay = new Relay(app, after, () => {
        if (relays.get(runId) === relay) relays.delete(runId);
      });
      relays.set(runId, relay);
      void begin(runId, relay).catch(app.report);
    } else if (event.type === "run.ended") {
      relays.get(runId)?.end();
    } else relays.get(runId)?.take(event);
  });
  return () => {
    stop();
    for (const relay of [...relays.values()]) relay.end();
  };
}

/**
 * Writes one run's progress as notes into the session that spawned it, one at a time and never after the run has ended.
 */
class Relay {
  readonly #app: RelayApp;
  readonly #after: Later;
  readonly #ended: () => void;
  readonly #progress: Progress;
  readonly #stopped = new AbortController();
  /** `null` while it is not known whether the parent requested progress. */
  #run: (Run & { readonly sequel: ChildSequel }) | null = null;
  #timer: { readonly at: number; cancel(): void } | null = null;
  /** The note that has not been written yet. */
  #outstanding: string | null = null;
  #notes = 0;

  constructor(app: RelayApp, after: Later, ended: () => void) {
    this.#app = app;
    this.#ended = ended;
    this.#after = after;
    this.#progress = new Progress(app.clock.now());
  }

  /** Returns `false` if no parent requested progress, or if the child has ended. */
  begin(run: Run): boolean {
    const { sequel, streamTo } = run.options;
    if (streamTo !== "parent" || sequel?.type !== "child" || this.#stopped.signal.aborted) return false;
    this.#run = { ...run, sequel };
    this.#plan();
    return true;
  }

  take(event: SkeinEvent): void {
    const now = this.#app.clock.now();
    if (event.type === "run.delta" && event.kind === "text") this.#progress.addText(event.delta, now);
    else if (event.type === "run.tool" && event.phase === "call")
      this.#progress.addToolCall(event.toolName, now);
    else this.#progress.recordActivity(now);
    this.#plan();
  }

  end(): void {
    if (this.#stopped.signal.aborted) return;
    this.#stopped.abort();
    this.#timer?.cancel();
    this.#timer = null;
    this.#drop();
    this.#ended();
  }

  /** Drops a note that has not been written by the time the run ends. */
  #drop(): void {
    const { runs, report } = this.#app;
    if (this.#outstanding === null) return;
    void runs.abort(this.#outstanding, "The run that this note reports on has ended.").catch(report);
    this.#outstanding = null;
  }

  #plan(): void {
    const at = this.#progress.nextAt();
    if (at === null || this.#run === null || this.#stopped.signal.aborted) return;
    if (this.#timer !== null && this.#timer.at <= at) return;
    this.#timer?.cancel();
    const ms = Math.max(0, at - this.#app.clock.now());
    this.#timer = { at, cancel: this.#after(ms, () => this.#write()) };
  }

  #write(): void {
    this.#timer = null;
    const news = this.#progress.take(this.#app.clock.now());
    if (news === null || this.#run === null) {
      this.#plan();
      return;
    }
    const { sequel } = this.#run;
    const text = progressNote(sequel.label ?? sequel.childKey, news);
    void this.#deliver(this.#run.runId, text)
      .catch((error: unknown) => {
        if (!this.#stopped.signal.aborted) this.#app.report(error);
      })
      .finally(() => {
        this.#outstanding = null;
        this.#progress.settled();
        this.#plan();
      });
  }

  /**
   * Resolves when the note has been written to the parent's session or dropped. A process that lost the run delivers
   * nothing.
   */
  async #deliver(runId: string, text: string): Promise<void> {
    const { runs, store, owner } = this.#app;
    const run = await runs.get(runId);
    if (run === null || run.outcome !== null || run.owner !== owner || this.#run === null) return this.end();
    const { session: from, root, fence } = run;
    const scope = present({ userId: from.userId });
    const [parent] = await store.sessions.find(scope, { by: "key", key: this.#run.sequel.parent.key });
    if (parent === undefined) return this.end();
    if (this.#stopped.signal.aborted) return;
    const id = deliveryId(from.sessionId, runId, String(fence), `progress ${++this.#notes}`);
    const delivery = { id, from, runId: null, kind: "note", text, root, tool: "sessions_spawn" } as const;
    const { run: note } = await runs.accept(acceptRequest(delivery, parent));
    this.#outstanding = note.runId;
    if (this.#stopped.signal.aborted) return this.#drop();
    await this.#app.watcher.untilEnded(note.runId, this.#stopped.signal);
  }
}

export const paceMs = 2500;
export const stallMs = 60_000;
const longestSnippet = 220;
const maxGathered = 4000;
const longestName = 120;

/** The content of the next note. */
export type ProgressNews = { readonly news: string } | { readonly stalled: true };

/**
 * Collects a child's text and activity. Notes are written at most once every 2.5 seconds and never before the previous
 * one has been written. A silence of 60 seconds is reported once.
 */
export class Progress {
  /** The newest text that has not been reported yet. */
  #gathered = "";
  #activeAt: number;
  #reportedAt: number;
  #isStallReported = false;
  #isOutstanding = false;

  constructor(startedAt: number) {
    this.#activeAt = startedAt;
    // The first text is delayed too, so that text arriving shortly afterward becomes part of the same note.
    this.#reportedAt = startedAt;
  }

  /** Records activity that produced no text. */
  recordActivity(now: number): void {
    this.#activeAt = now;
    this.#isStallReported = false;
  }

  addText(text: string, now: number): void {
    this.recordActivity(now);
    this.#gathered = endOfText(this.#gathered + text, maxGathered);
  }

  addToolCall(toolName: string, now: number): void {
    this.addText(`\n[tool ${inLine(toolName, longestName)}]\n`, now);
  }

  /**
   * Returns the progress to report now, or `null` if there is none. The report counts as outstanding until `settled` is
   * called.
   */
  take(now: number): ProgressNews | null {
    if (this.#isOutstanding) return null;
    const news = snippet(this.#gathered);
    if (news !== "" && now >= this.#reportedAt + paceMs) {
      this.#gathered = "";
      this.#isOutstanding = true;
      this.#reportedAt = now;
      return { news };
    }
    if (this.#isStallReported || now < this.#activeAt + stallMs) return null;
    this.#isStallReported = true;
    this.#isOutstanding = true;
    this.#reportedAt = now;
    return { stalled: true };
  }

  /** Call this after the last note has been written or dropped. */
  settled(): void {
    this.#isOutstanding = false;
  }

  /**
   * Returns the next time at which there could be something to report, or `null` if nothing can be reported until new
   * activity is recorded.
   */
  nextAt(): number | null {
    if (this.#isOutstanding) return null;
    const stall = this.#isStallReported ? [] : [this.#activeAt + stallMs];
    const news = /\S/.test(this.#gathered) ? [this.#reportedAt + paceMs] : [];
    const times = [...news, ...stall];
    return times.length === 0 ? null : Math.min(...times);
  }
}

/** Returns the end of the new text on one line. The end shows what the child is doing now. */
export function snippet(gathered: string): string {
  const line = gathered.replace(/\s+/g, " ").trim();
  return line.length <= longestSnippet ? line : `…${endOfText(line, longestSnippet - 1)}`;
}

/** Returns a note's text. Quoted text cannot break out of its line. */
export function progressNote(name: string, progress: ProgressNews): string {
  const who = `[Progress of ${inLine(name, longestName)}]`;
  const seconds = stallMs / 1000;
  return "news" in progress
    ? `${who} ${inLine(progress.news, longestSnippet)}`
    : `${who} Silent for ${seconds} seconds`;
}
