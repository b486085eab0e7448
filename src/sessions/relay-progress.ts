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

/** What relaying takes. `after` is another clock in tests. */
export type RelayApp = Pick<App, "bus" | "clock" | "owner" | "report"> & {
  readonly store: Pick<App["store"], "sessions">;
  readonly runs: Pick<App["runs"], "get" | "accept" | "abort">;
  readonly watcher: Pick<App["watcher"], "untilEnded">;
};

/** Relays the progress of children that want it, for as long as they run in this process. Returns a function that ends it. */
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
    } else relays.get(runId)?.hear(event);
  });
  return () => {
    stop();
    for (const relay of [...relays.values()]) relay.end();
  };
}

/** The progress of one run, as notes in the session that spawned it: one after the other, and none behind its end. */
class Relay {
  readonly #app: RelayApp;
  readonly #after: Later;
  readonly #ended: () => void;
  readonly #progress: Progress;
  readonly #over = new AbortController();
  /** `null`: it is not known yet whether anybody wants it. */
  #run: (Run & { readonly sequel: ChildSequel }) | null = null;
  #timer: { readonly at: number; cancel(): void } | null = null;
  /** The note that is not written yet. */
  #outstanding: string | null = null;
  #notes = 0;

  constructor(app: RelayApp, after: Later, ended: () => void) {
    this.#app = app;
    this.#ended = ended;
    this.#after = after;
    this.#progress = new Progress(app.clock.now());
  }

  /** `false`: no parent wants it, or the child has ended. */
  begin(run: Run): boolean {
    const { sequel, streamTo } = run.options;
    if (streamTo !== "parent" || sequel?.type !== "child" || this.#over.signal.aborted) return false;
    this.#run = { ...run, sequel };
    this.#plan();
    return true;
  }

  hear(event: SkeinEvent): void {
    const now = this.#app.clock.now();
    if (event.type === "run.delta" && event.kind === "text") this.#progress.said(event.delta, now);
    else if (event.type === "run.tool" && event.phase === "call") this.#progress.called(event.toolName, now);
    else this.#progress.heard(now);
    this.#plan();
  }

  end(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#timer?.cancel();
    this.#timer = null;
    this.#drop();
    this.#ended();
  }

  /** What was not written by the end is of no use any more. */
  #drop(): void {
    const { runs, report } = this.#app;
    if (this.#outstanding === null) return;
    void runs.abort(this.#outstanding, "What it tells of has ended.").catch(report);
    this.#outstanding = null;
  }

  #plan(): void {
    const at = this.#progress.nextAt();
    if (at === null || this.#run === null || this.#over.signal.aborted) return;
    if (this.#timer !== null && this.#timer.at <= at) return;
    this.#timer?.cancel();
    const ms = Math.max(0, at - this.#app.clock.now());
    this.#timer = { at, cancel: this.#after(ms, () => this.#ring()) };
  }

  #ring(): void {
    this.#timer = null;
    const told = this.#progress.take(this.#app.clock.now());
    if (told === null || this.#run === null) {
      this.#plan();
      return;
    }
    const { sequel } = this.#run;
    const text = progressNote(sequel.label ?? sequel.childKey, told);
    void this.#written(this.#run.runId, text)
      .catch((error: unknown) => {
        if (!this.#over.signal.aborted) this.#app.report(error);
      })
      .finally(() => {
        this.#outstanding = null;
        this.#progress.settled();
        this.#plan();
      });
  }

  /** Resolves when the note stands in the parent's session, or will never. Who has lost the run tells nothing of it. */
  async #written(runId: string, text: string): Promise<void> {
    const { runs, store, owner } = this.#app;
    const run = await runs.get(runId);
    if (run === null || run.outcome !== null || run.owner !== owner || this.#run === null) return this.end();
    const { session: from, root, fence } = run;
    const scope = present({ userId: from.userId });
    const [parent] = await store.sessions.find(scope, { by: "key", key: this.#run.sequel.parent.key });
    if (parent === undefined) return this.end();
    if (this.#over.signal.aborted) return;
    const id = deliveryId(from.sessionId, runId, String(fence), `progress ${++this.#notes}`);
    const delivery = { id, from, runId: null, kind: "note", text, root, tool: "sessions_spawn" } as const;
    const { run: note } = await runs.accept(acceptRequest(delivery, parent));
    this.#outstanding = note.runId;
    if (this.#over.signal.aborted) return this.#drop();
    await this.#app.watcher.untilEnded(note.runId, this.#over.signal);
  }
}

/** When a child's progress is reported to its parent, and in which words. Pure: the time is a parameter. */

export const paceMs = 2500;
export const stallMs = 60_000;
const longestSnippet = 220;
const mostGathered = 4000;
const longestName = 120;

/** What is to be told now. */
export type Told = { readonly news: string } | { readonly stalled: true };

/**
 * Gathers what a child says and does. Notes go out at most every 2.5 seconds, and never while the last note is not
 * written; a silence of 60 seconds is reported once.
 */
export class Progress {
  /** The newest of what nobody was told yet. */
  #gathered = "";
  #heardAt: number;
  #toldAt: number;
  #isStallTold = false;
  #isOutstanding = false;

  constructor(startedAt: number) {
    this.#heardAt = startedAt;
    // The first words wait too: what comes in the same moment is one note.
    this.#toldAt = startedAt;
  }

  /** Something happened that is not told. */
  heard(now: number): void {
    this.#heardAt = now;
    this.#isStallTold = false;
  }

  said(text: string, now: number): void {
    this.heard(now);
    this.#gathered = endOfText(this.#gathered + text, mostGathered);
  }

  called(toolName: string, now: number): void {
    this.said(`\n[tool ${inLine(toolName, longestName)}]\n`, now);
  }

  /** What is to be told at this moment; it is outstanding from now on. `null`: nothing. */
  take(now: number): Told | null {
    if (this.#isOutstanding) return null;
    const news = snippet(this.#gathered);
    if (news !== "" && now >= this.#toldAt + paceMs) {
      this.#gathered = "";
      this.#isOutstanding = true;
      this.#toldAt = now;
      return { news };
    }
    if (this.#isStallTold || now < this.#heardAt + stallMs) return null;
    this.#isStallTold = true;
    this.#isOutstanding = true;
    this.#toldAt = now;
    return { stalled: true };
  }

  /** The last note is written, or nobody will write it. */
  settled(): void {
    this.#isOutstanding = false;
  }

  /** When there may be something to tell; `null`: not before something happens. */
  nextAt(): number | null {
    if (this.#isOutstanding) return null;
    const stall = this.#isStallTold ? [] : [this.#heardAt + stallMs];
    const news = /\S/.test(this.#gathered) ? [this.#toldAt + paceMs] : [];
    const times = [...news, ...stall];
    return times.length === 0 ? null : Math.min(...times);
  }
}

/** The end of what is new, on one line: what it is at now says more than what it was at. */
export function snippet(gathered: string): string {
  const line = gathered.replace(/\s+/g, " ").trim();
  return line.length <= longestSnippet ? line : `…${endOfText(line, longestSnippet - 1)}`;
}

/** The note, of which no part can end where we do not end it. */
export function progressNote(name: string, told: Told): string {
  const who = `[Progress of ${inLine(name, longestName)}]`;
  const seconds = stallMs / 1000;
  return "news" in told
    ? `${who} ${inLine(told.news, longestSnippet)}`
    : `${who} has said nothing for ${seconds} seconds`;
}
