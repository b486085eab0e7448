import type { RedactionStream, Redactor } from "../../access/redaction/redactor.ts";
import type { SkeinEvent } from "../../core/events.ts";

type Delta = SkeinEvent<"run.delta">;

/** A text of a run that is under way. */
interface Open {
  readonly stream: RedactionStream;
  readonly last: Delta;
}

interface Speaker {
  readonly place: string;
  /** Its session is gone, and nothing that it says is told any more. */
  readonly isSilent: boolean;
  readonly open: Map<Delta["kind"], Open>;
}

/** What readers who are no admins get of an event. */
export interface Masked {
  /** Ends of texts that were held back, to be sent before it. */
  readonly tails: readonly Delta[];
  /** Of a delta, in its place; `null`: it is none. */
  readonly text: string | null;
}

/**
 * Takes secrets out of texts that come in pieces: one stream for each run and kind. A text is ended only by what ends an
 * answer; anything else may happen in the middle of a secret, whose second half would not be known for one.
 */
export class DeltaRedaction {
  readonly #redactor: Redactor;
  readonly #most: number;
  /** By run, the one that spoke last at the end. */
  readonly #runs = new Map<string, Speaker>();
  /** The run that speaks in a session. */
  readonly #speaking = new Map<string, string>();

  constructor(redactor: Redactor, most = 10_000) {
    this.#redactor = redactor;
    this.#most = most;
  }

  /** How many runs have a text under way, and in how many sessions. */
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
   * The session is gone: what is held back of texts in it is never sent. Their streams stay until their runs end, for what comes
   * behind the first half of a secret may be the second.
   */
  silence({ userId, sessionId }: Pick<SkeinEvent, "userId" | "sessionId">): void {
    for (const [run, speaker] of this.#runs) {
      const isIn = ({ last }: Open) => last.sessionId === sessionId && last.userId === userId;
      if ([...speaker.open.values()].some(isIn)) this.#runs.set(run, { ...speaker, isSilent: true });
    }
  }

  /** The ends of all texts. Nothing comes any more. */
  endAll(): readonly Delta[] {
    return [...this.#runs.keys()].flatMap((run) => this.#end(run));
  }

  #push(event: Delta): Masked {
    const [run, place] = [runOf(event), placeOf(event)];
    const { open = new Map() as Speaker["open"], isSilent = false } = this.#runs.get(run) ?? {};
    const stream = open.get(event.kind)?.stream ?? this.#redactor.stream();
    // To the end, and out of the session where it spoke before, should that be another one now.
    this.#close(run);
    this.#runs.set(run, { place, isSilent, open: open.set(event.kind, { stream, last: event }) });
    this.#speaking.set(place, run);
    const text = stream.push(event.delta);
    return { tails: this.#makeRoom(event.at), text: isSilent ? "" : text };
  }

  /** Runs whose end nobody told of: the one that has been silent for longest goes first. */
  #makeRoom(at: number): readonly Delta[] {
    // Looked for only when it is wanted: a map passes over all that was taken out at its beginning.
    if (this.#runs.size <= this.#most) return [];
    const [oldest] = this.#runs.keys();
    return oldest === undefined ? [] : this.#end(oldest, at);
  }

  #end(run: string, at?: number): Delta[] {
    const isSilent = this.#runs.get(run)?.isSilent ?? false;
    const open = this.#close(run);
    if (isSilent) return [];
    return open.flatMap(({ stream, last }) => {
      const delta = stream.end();
      return delta === "" ? [] : [{ ...last, at: at ?? last.at, delta }];
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

/** Behind these a run says something new. */
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

/** What was streamed is there as a whole. */
function isAnswer(event: SkeinEvent): boolean {
  if (event.type !== "entry.appended" || event.entry.type !== "message") return false;
  return event.entry.message.role === "assistant";
}

function runOf({ runId, userId, sessionKey }: SkeinEvent): string {
  return runId ?? placeOf({ userId, sessionKey });
}

function placeOf({ userId, sessionKey }: Pick<SkeinEvent, "userId" | "sessionKey">): string {
  return `${sessionKey}\n${userId ?? ""}`;
}
