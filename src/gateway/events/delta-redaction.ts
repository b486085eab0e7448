import type { RedactionStream, Redactor } from "../../access/redaction/redactor.ts";
import type { SkeinEvent } from "../../core/events.ts";

type Delta = SkeinEvent<"run.delta">;

/** Text that a run is currently streaming. */
interface Open {
  readonly stream: RedactionStream;
  readonly last: Delta;
  /** `true` if a piece is missing. Nothing is shown, because the next piece might be the second half of a secret. */
  readonly isBroken: boolean;
}

interface Speaker {
  readonly place: string;
  /** `true` if the session was deleted, so no more text from the run is sent. */
  readonly isSilent: boolean;
  readonly open: Map<Delta["kind"], Open>;
}

/** An event as readers without the `admin` scope receive it. */
export interface Masked {
  /** Held-back text that must be sent before the event. */
  readonly tails: readonly Delta[];
  /** A delta's text, or `null` for any other event. */
  readonly text: string | null;
}

/**
 * Redacts text that arrives in pieces, with one stream per run and kind. A stream is complete only at the end of an
 * answer. Any other event can occur in the middle of a secret, whose second half would then not be recognized.
 */
export class DeltaRedaction {
  readonly #redactor: Redactor;
  readonly #most: number;
  /** By run ID. The most recent run is last. */
  readonly #runs = new Map<string, Speaker>();
  /** The run that is streaming in each session. */
  readonly #speaking = new Map<string, string>();

  constructor(redactor: Redactor, most = 10_000) {
    this.#redactor = redactor;
    this.#most = most;
  }

  /** The number of streaming runs, and of sessions with such runs. */
  get size(): { readonly runs: number; readonly sessions: number } {
    return { runs: this.#runs.size, sessions: this.#speaking.size };
  }

  take(event: SkeinEvent): Masked {
    if (event.type === "run.delta") return this.#push(event);
    if (event.type === "run.retry") {
      this.#close(runOf(event));
      return { tails: [], text: null };
    }
    const run = endedBy(event)
      ? runOf(event)
      : isAnswer(event)
        ? this.#speaking.get(placeOf(event))
        : undefined;
    return { tails: run === undefined ? [] : this.#end(run, event.at), text: null };
  }

  /**
   * Drops held-back text after the session has been deleted. The streams are kept until their runs end, because the
   * next piece might be the second half of a secret.
   */
  silence({ userId, sessionId }: Pick<SkeinEvent, "userId" | "sessionId">): void {
    for (const [run, speaker] of this.#runs) {
      const isIn = ({ last }: Open) => last.sessionId === sessionId && last.userId === userId;
      if ([...speaker.open.values()].some(isIn)) this.#runs.set(run, { ...speaker, isSilent: true });
    }
  }

  /** Returns the held-back ends of all streams when the hub closes. */
  endAll(): readonly Delta[] {
    return [...this.#runs.keys()].flatMap((run) => this.#end(run));
  }

  #push(event: Delta): Masked {
    const [run, place] = [runOf(event), placeOf(event)];
    const { open = new Map() as Speaker["open"], isSilent = false } = this.#runs.get(run) ?? {};
    const known = open.get(event.kind);
    // At offset 0, a new text starts. The event that ended the broken text is also missing.
    const before = known?.isBroken === true && event.offset === 0 ? undefined : known;
    const stream = before?.stream ?? this.#redactor.stream();
    const isBroken = before?.isBroken === true || isOutOfPlace(event, before?.last);
    // Moves the run to the end, and to its new session if the session has changed.
    this.#close(run);
    this.#runs.set(run, { place, isSilent, open: open.set(event.kind, { stream, last: event, isBroken }) });
    this.#speaking.set(place, run);
    const text = stream.push(event.delta);
    return { tails: this.#makeRoom(event.at), text: isSilent || isBroken ? "" : text };
  }

  /** Evicts the run that has been silent the longest, in case its end was never reported. */
  #makeRoom(at: number): readonly Delta[] {
    // The oldest run is looked up only when necessary, because an iteration over a map must first skip all entries that
    // were deleted at its start.
    if (this.#runs.size <= this.#most) return [];
    const [oldest] = this.#runs.keys();
    return oldest === undefined ? [] : this.#end(oldest, at);
  }

  #end(run: string, at?: number): Delta[] {
    const isSilent = this.#runs.get(run)?.isSilent ?? false;
    const open = this.#close(run);
    if (isSilent) return [];
    return open.flatMap(({ stream, last, isBroken }) => {
      const delta = stream.end();
      return delta === "" || isBroken ? [] : [{ ...last, at: at ?? last.at, delta }];
    });
  }

  #close(run: string): readonly Open[] {
    const speaker = this.#runs.get(run);
    if (speaker === undefined) return [];
    this.#runs.delete(run);
    if (this.#speaking.get(speaker.place) === run) this.#speaking.delete(speaker.place);
    return [...speaker.open.values()];
  }
}

/** Whether text before this piece is missing. This can happen only with events from other processes. */
function isOutOfPlace({ offset }: Delta, before: Delta | undefined): boolean {
  const end = before === undefined ? 0 : before.offset + before.delta.length;
  return offset !== 0 && offset !== end;
}

/** Whether the run starts a new text after this event. */
function endedBy(event: SkeinEvent): boolean {
  switch (event.type) {
    case "run.started":
    case "run.step":
    case "run.compaction":
    case "run.waiting":
    case "run.sleeping":
    case "run.ended":
    case "run.recovered":
      return true;
    case "run.tool":
      return event.phase === "call";
    default:
      return false;
  }
}

/** Whether this event completes the streamed text. */
export function isAnswer(event: SkeinEvent): boolean {
  if (event.type !== "entry.appended" || event.entry.type !== "message") return false;
  return event.entry.message.role === "assistant";
}

function runOf({ runId, userId, sessionKey }: SkeinEvent): string {
  return runId ?? placeOf({ userId, sessionKey });
}

function placeOf({ userId, sessionKey }: Pick<SkeinEvent, "userId" | "sessionKey">): string {
  return `${sessionKey}\n${userId ?? ""}`;
}
