import type { SkeinEvent } from "../../core/events.ts";
import type { EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";

/** How long the end of a run may come behind the answer to whoever waited for it; less, where nothing of it came at all. */
const lateMs = 2000;
const silentMs = 250;

/** An event as it was received, as the bus has it; `null`: it stands for others, or is of another user than this one. */
export function eventOf(
  { event, payload }: ReceivedEvent,
  userId: string | null | undefined,
): SkeinEvent | null {
  if (event === "gap") return null;
  // Only a token for all users is told whose they are. On the wire absence is no `null`; nothing that is read here can be one.
  if (payload.userId !== undefined && payload.userId !== userId) return null;
  return { type: event, userId: userId ?? null, ...payload } as unknown as SkeinEvent;
}

/** What happens meanwhile, handed on as it comes, with what has come of each run's last answer. */
export class Heard {
  /** Once nothing is missed, or it is known that nothing will come. */
  readonly ready: Promise<void>;
  readonly #stream: EventStream;
  readonly #over: Promise<void>;
  readonly #isWanted: (event: SkeinEvent) => boolean;
  readonly #said = new Map<string, string>();
  readonly #ended = new Map<string, PromiseWithResolvers<void>>();

  /** What is not wanted is passed by, and nothing of it is kept. */
  constructor(
    stream: EventStream,
    userId: string | undefined,
    listener: (event: SkeinEvent) => void,
    isWanted: (event: SkeinEvent) => boolean = () => true,
  ) {
    this.#stream = stream;
    this.#isWanted = isWanted;
    // Who may not hear, or is cut off, still gets the reply by waiting for it.
    const nothing = () => undefined;
    this.ready = stream.ready.catch(nothing);
    this.#over = this.#hear(userId, listener).catch(nothing);
  }

  close(): void {
    this.#stream.close();
  }

  /** Once the end of a run has come by, or it will not any more. */
  async caughtUp(runId: string): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, this.#said.has(runId) ? lateMs : silentMs);
    await Promise.race([this.#endOf(runId).promise, this.#over, late.promise]);
    clearTimeout(timer);
  }

  /** Whether all of an answer came in pieces. Spaces aside: blocks of an answer are joined in another way than they are streamed. */
  hasAll(runId: string, reply: string): boolean {
    return bare(this.#said.get(runId) ?? "") === bare(reply);
  }

  async #hear(userId: string | undefined, listener: (event: SkeinEvent) => void): Promise<void> {
    for await (const received of this.#stream) {
      const event = eventOf(received, userId);
      if (event === null || !this.#isWanted(event)) continue;
      this.#note(event);
      listener(event);
      if (event.type === "run.ended" && event.runId !== undefined) this.#endOf(event.runId).resolve();
    }
  }

  /** Of an answer that is begun anew, what was said before does not count. */
  #note(event: SkeinEvent): void {
    const { runId } = event;
    if (runId === undefined) return;
    if (event.type === "run.delta" && event.kind === "text")
      this.#said.set(runId, (this.#said.get(runId) ?? "") + event.delta);
    else if (event.type === "run.started" || event.type === "run.retry" || isAsked(event))
      this.#said.set(runId, "");
  }

  #endOf(runId: string): PromiseWithResolvers<void> {
    const known = this.#ended.get(runId) ?? Promise.withResolvers<void>();
    this.#ended.set(runId, known);
    return known;
  }
}

function isAsked(event: SkeinEvent): boolean {
  return event.type === "run.step" && event.phase === "asked";
}

function bare(text: string): string {
  return text.replace(/\s/g, "");
}
