import type { SkeinEvent } from "../../core/events.ts";
import { endOfText } from "../../core/text.ts";
import { isAnswer } from "./delta-redaction.ts";
import { estimateSize } from "./stored-event.ts";

type Delta = SkeinEvent<"run.delta">;
type ToolCall = SkeinEvent<"run.tool">;
type Session = Pick<SkeinEvent, "userId" | "sessionId">;

/** A run whose events arrive in this process, and the answer it is streaming. */
export interface LiveRun {
  readonly runId: string;
  readonly state: "running" | "waiting";
  /** The number of the model request being answered, or 0 before the first one. */
  readonly step: number;
  /** How many times the model has been called in this step. */
  readonly attempt: number;
  readonly text: string;
  /** The number of UTF-16 code units before `text` that are no longer kept. */
  readonly textOffset: number;
  readonly thinking: string;
  readonly thinkingOffset: number;
  /** Tool calls that have no result yet. */
  readonly tools: readonly LiveCall[];
}

export interface LiveCall {
  readonly toolCallId: string;
  readonly toolName: string;
  /** Absent if the arguments are large. The log entry contains them in any case. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly since: number;
}

/** The text that is being streamed, up to the event `seq`. */
export interface LiveTexts {
  readonly seq: number;
  /** Readers without the `admin` scope see only the text that has been redacted so far. */
  liveRuns(session: Session, isAdmin: boolean): readonly LiveRun[];
}

export interface LiveLimits {
  readonly runs: number;
  /** Maximum characters per run, kind and view. If the text is longer, only its end is kept. */
  readonly perText: number;
  /** Maximum characters across all runs. */
  readonly characters: number;
}

const kibi = 1024;
export const liveLimits: LiveLimits = { runs: 10_000, perText: 512 * kibi, characters: 32 * kibi * kibi };
const maxArgumentBytes = 16 * kibi;

/** The end of text that is still growing. */
class StreamedText {
  text = "";
  offset = 0;

  get end(): number {
    return this.offset + this.text.length;
  }

  add(piece: string, offset: number, most: number): void {
    if (offset !== this.end) this.empty(offset);
    this.text += piece;
    // Truncated only occasionally, because truncating copies the text.
    if (this.text.length <= most * 1.25) return;
    const kept = endOfText(this.text, most);
    this.offset = this.end - kept.length;
    this.text = kept;
  }

  empty(offset: number): void {
    this.text = "";
    this.offset = offset;
  }
}

/** Text as admins see it and as other readers see it. */
class StreamedViews {
  readonly whole = new StreamedText();
  readonly masked = new StreamedText();

  get length(): number {
    return this.whole.text.length + this.masked.text.length;
  }

  /** Drops the text. The next delta continues at the same offset. */
  forget(): void {
    for (const each of [this.whole, this.masked]) each.empty(each.end);
  }
}

interface Row {
  readonly runId: string;
  readonly place: string;
  state: LiveRun["state"];
  step: number;
  attempt: number;
  streams: Readonly<Record<Delta["kind"], StreamedViews>>;
  readonly tools: Map<string, LiveCall>;
}

/**
 * The text that runs have streamed since their last written answer, for readers that join midway. Runs in other
 * processes are known only if a feed delivers their events.
 */
export class LiveRuns {
  readonly #limits: LiveLimits;
  /** In the order in which the runs started. */
  readonly #rows = new Map<string, Row>();
  readonly #bySession = new Map<string, Set<Row>>();
  #characters = 0;

  constructor(limits: LiveLimits = liveLimits) {
    this.#limits = limits;
  }

  get size(): { readonly runs: number; readonly sessions: number; readonly characters: number } {
    return { runs: this.#rows.size, sessions: this.#bySession.size, characters: this.#characters };
  }

  /** Returns the runs in a session. */
  of(session: Session, isAdmin: boolean): readonly LiveRun[] {
    const view = isAdmin ? "whole" : "masked";
    return [...(this.#bySession.get(placeOf(session)) ?? [])].map((row) => {
      const { runId, state, step, attempt, streams, tools } = row;
      const { text, offset: textOffset } = streams.text[view];
      const { text: thinking, offset: thinkingOffset } = streams.thinking[view];
      return {
        ...{ runId, state, step, attempt, text, textOffset, thinking, thinkingOffset },
        tools: [...tools.values()],
      };
    });
  }

  /** Adds a piece of a run's text. Returns its offset in the redacted stream. */
  push(event: Delta, masked: string): number {
    const row = this.#row(event);
    if (row === null) return event.offset;
    const { whole, masked: safe } = row.streams[event.kind];
    const before = row.streams[event.kind].length;
    if (event.offset === 0) safe.empty(0);
    const { end } = safe;
    row.step = event.step;
    whole.add(event.delta, event.offset, this.#limits.perText);
    safe.add(masked, end, this.#limits.perText);
    this.#count(row.streams[event.kind].length - before, row);
    return end;
  }

  /** Adds redacted text that was held back. Returns its offset in the redacted stream. */
  pushHeldBack({ runId, kind, delta, offset }: Delta): number {
    const row = this.#rows.get(runId ?? "");
    if (row === undefined) return offset;
    const { masked } = row.streams[kind];
    const { end } = masked;
    const before = masked.text.length;
    masked.add(delta, end, this.#limits.perText);
    this.#count(masked.text.length - before, row);
    return end;
  }

  /** Handles every event except deltas. */
  take(event: SkeinEvent): void {
    switch (event.type) {
      case "run.started":
      case "run.recovered":
        this.#end(event.runId);
        this.#row(event);
        break;
      case "run.step":
        this.#startStep(event);
        break;
      case "run.retry":
        this.#empty(this.#row(event), { attempt: event.attempt + 1 });
        break;
      case "run.tool":
        this.#takeCall(event);
        break;
      case "run.waiting":
      case "run.resumed":
        Object.assign(this.#row(event) ?? {}, {
          state: event.type === "run.waiting" ? "waiting" : "running",
        });
        break;
      case "run.ended":
      case "run.sleeping":
        this.#end(event.runId);
        break;
      default:
        if (isAnswer(event)) for (const row of this.#rowsOf(event)) this.#empty(row, {});
    }
  }

  /** Drops the content of a session that must no longer be shown. */
  forget(session: Session): void {
    for (const row of this.#rowsOf(session)) {
      this.#forgetTexts(row);
      row.tools.clear();
    }
  }

  #startStep(event: SkeinEvent<"run.step">): void {
    if (event.phase !== "asked") return;
    const row = this.#row(event);
    row?.tools.clear();
    this.#empty(row, { step: event.step, attempt: 1 });
  }

  #takeCall({ phase, toolCallId, toolName, arguments: args, at, ...event }: ToolCall): void {
    const row = this.#row(event);
    if (phase === "result") row?.tools.delete(toolCallId);
    else {
      const isSmall = args !== undefined && estimateSize(args) <= maxArgumentBytes;
      row?.tools.set(toolCallId, {
        toolCallId,
        toolName,
        since: at,
        ...(isSmall ? { arguments: args } : {}),
      });
    }
  }

  /** Clears the text after the answer has been written or discarded. */
  #empty(row: Row | null, changes: Partial<Pick<Row, "step" | "attempt">>): void {
    if (row === null) return;
    this.#forgetTexts(row);
    Object.assign(row, changes, { streams: newStreams() });
  }

  #forgetTexts({ streams }: Row): void {
    for (const each of Object.values(streams)) {
      this.#characters -= each.length;
      each.forget();
    }
  }

  #rowsOf(session: Session): readonly Row[] {
    return [...(this.#bySession.get(placeOf(session)) ?? [])];
  }

  #row(event: Session & Pick<SkeinEvent, "runId">): Row | null {
    const { runId } = event;
    if (runId === undefined) return null;
    const known = this.#rows.get(runId);
    if (known !== undefined) return known;
    const place = placeOf(event);
    const row: Row = {
      ...{ runId, place, state: "running", step: 0, attempt: 1 },
      streams: newStreams(),
      tools: new Map(),
    };
    this.#rows.set(runId, row);
    this.#bySession.set(place, (this.#bySession.get(place) ?? new Set()).add(row));
    // Evicts the oldest run, whose end might never be reported: it might be lost, or another process without a feed
    // might have taken it over.
    if (this.#rows.size > this.#limits.runs) this.#end(this.#rows.keys().next().value);
    return row;
  }

  #end(runId: string | undefined): void {
    const row = this.#rows.get(runId ?? "");
    if (row === undefined) return;
    this.#forgetTexts(row);
    this.#rows.delete(row.runId);
    const others = this.#bySession.get(row.place);
    others?.delete(row);
    if (others?.size === 0) this.#bySession.delete(row.place);
  }

  /** Above the limit, discards the text of the oldest runs, except `current`. */
  #count(added: number, current: Row): void {
    this.#characters += added;
    if (this.#characters <= this.#limits.characters) return;
    for (const row of this.#rows.values()) {
      if (this.#characters <= this.#limits.characters * 0.75) return;
      if (row !== current) this.#forgetTexts(row);
    }
  }
}

function newStreams(): Row["streams"] {
  return { text: new StreamedViews(), thinking: new StreamedViews() };
}

function placeOf({ userId, sessionId }: Session): string {
  return `${sessionId}\n${userId ?? ""}`;
}
