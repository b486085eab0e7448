import type { Redactor } from "../../access/redaction/redactor.ts";
import type { RedactionStream } from "../../access/redaction/stream.ts";
import type { SkeinEvent } from "../../core/events.ts";

type Delta = SkeinEvent<"run.delta">;

/** A text of a run that is under way. */
interface Open {
  readonly stream: RedactionStream;
  readonly last: Delta;
}

type Kinds = Map<Delta["kind"], Open>;

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
  readonly #runs = new Map<string, Kinds>();
  /** The run that speaks in a session. */
  readonly #speaking = new Map<string, string>();

  constructor(redactor: Redactor, most = 10_000) {
    this.#redactor = redactor;
    this.#most = most;
  }

  /** How many runs have a text under way. */
  get size(): number {
    return this.#runs.size;
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

  /** The ends of all texts. Nothing comes any more. */
  endAll(): readonly Delta[] {
    return [...this.#runs.keys()].flatMap((run) => this.#end(run));
  }

  #push(event: Delta): Masked {
    const run = runOf(event);
    const kinds: Kinds = this.#runs.get(run) ?? new Map();
    const stream = kinds.get(event.kind)?.stream ?? this.#redactor.stream();
    kinds.set(event.kind, { stream, last: event });
    this.#runs.delete(run);
    this.#runs.set(run, kinds);
    this.#speaking.set(placeOf(event), run);
    return { tails: this.#makeRoom(event.at), text: stream.push(event.delta) };
  }

  /** Runs whose end nobody told of: the one that has been silent for longest goes first. */
  #makeRoom(at: number): readonly Delta[] {
    const [oldest] = this.#runs.keys();
    return oldest === undefined || this.#runs.size <= this.#most ? [] : this.#end(oldest, at);
  }

  #end(run: string, at?: number): Delta[] {
    return [...this.#close(run)].flatMap(({ stream, last }) => {
      const delta = stream.end();
      return delta === "" ? [] : [{ ...last, at: at ?? last.at, delta }];
    });
  }

  #close(run: string): readonly Open[] {
    const open = [...(this.#runs.get(run)?.values() ?? [])];
    this.#runs.delete(run);
    for (const { last } of open) {
      if (this.#speaking.get(placeOf(last)) === run) this.#speaking.delete(placeOf(last));
    }
    return open;
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
