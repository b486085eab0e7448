import type { RedactionStream } from "../../access/redaction/redactor.ts";
import { announceSkip, replySkip } from "../../core/announcement.ts";
import type { Clock } from "../../core/clock.ts";
import type { Later } from "../../core/concurrency.ts";
import type { SkeinEvent } from "../../core/events.ts";
import type { DeliveryTarget } from "../../runs/contract.ts";
import { errorAdvice } from "./platform-errors.ts";

/** Where the answer of a run is delivered. */
export interface AnswerPlace {
  readonly runId: string;
  readonly sessionKey: string;
  readonly target: DeliveryTarget;
}

export interface LiveOptions {
  readonly clock: Clock;
  readonly after: Later;
  readonly intervalMs: number;
  /** Returns `null` if the run's answer is not delivered to this channel. */
  find(runId: string): Promise<AnswerPlace | null>;
  /** Returns the texts that are shown now, or `null` if the answer must no longer be changed. */
  show(place: AnswerPlace, text: string, shown: readonly string[]): Promise<readonly string[] | null>;
  /** Called if part of an answer is shown and its run ends without a complete answer. */
  giveUp(place: AnswerPlace, text: string, code: string): Promise<void>;
  redact(): RedactionStream;
  report(error: unknown): void;
}

/** Shows answers of runs in this process while they are being written. */
export class LiveAnswers {
  readonly #options: LiveOptions;
  readonly #answers = new Map<string, LiveAnswer>();

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  take(event: SkeinEvent): void {
    const { runId } = event;
    if (runId === undefined) return;
    if (event.type === "run.delta" && event.kind === "text") {
      const answer = this.#answers.get(runId) ?? new LiveAnswer(runId, this.#options);
      this.#answers.set(runId, answer);
      answer.push(event.step, event.delta);
    } else if (event.type === "run.retry") this.#answers.get(runId)?.discard();
    else if (event.type === "run.ended") void this.#end(runId, event.state, event.code);
  }

  /** Stops showing this run's answer. Resolves when no write of the answer is in progress. */
  async stop(runId: string): Promise<void> {
    await this.#answers.get(runId)?.stop();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#answers.values()].map((answer) => answer.stop()));
    this.#answers.clear();
  }

  async #end(runId: string, state: string, code: string | null): Promise<void> {
    const answer = this.#answers.get(runId);
    if (answer === undefined) return;
    await answer.stop();
    this.#answers.delete(runId);
    if (state !== "ok" && state !== "merged")
      await answer.giveUp(code ?? state).catch((error) => this.#options.report(error));
  }
}

/** The answer of one run. The first text is shown after one interval, so that a short answer is posted once. */
class LiveAnswer {
  readonly #options: LiveOptions;
  readonly #place: Promise<AnswerPlace | null>;
  #redaction: RedactionStream;
  #step = -1;
  #text = "";
  #shown: readonly string[] = [];
  #cancel: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #pausedUntil = 0;
  #isEnded = false;

  constructor(runId: string, options: LiveOptions) {
    this.#options = options;
    this.#redaction = options.redact();
    this.#place = options.find(runId).catch((error: unknown) => {
      options.report(error);
      return null;
    });
    void this.#place.then((place) => {
      if (place === null) this.#isEnded = true;
    });
  }

  push(step: number, delta: string): void {
    if (this.#isEnded) return;
    if (step !== this.#step) this.discard();
    this.#step = step;
    this.#text += this.#redaction.push(delta);
    this.#plan();
  }

  /** Starts over for the model's next answer. The text on the platform stays until then. */
  discard(): void {
    this.#text = "";
    this.#redaction = this.#options.redact();
  }

  async stop(): Promise<void> {
    this.#isEnded = true;
    this.#cancel?.();
    this.#cancel = null;
    await this.#writing;
  }

  async giveUp(code: string): Promise<void> {
    const place = await this.#place;
    if (place !== null) await this.#options.giveUp(place, this.#text.trim(), code);
  }

  #plan(): void {
    if (this.#isEnded || this.#cancel !== null || this.#writing !== null) return;
    const { after, clock, intervalMs } = this.#options;
    this.#cancel = after(Math.max(intervalMs, this.#pausedUntil - clock.now()), () => {
      this.#cancel = null;
      this.#writing = this.#write().finally(() => {
        this.#writing = null;
        if (this.#isStale()) this.#plan();
      });
    });
  }

  #written = "";

  #isStale(): boolean {
    return this.#text.trim() !== "" && this.#text.trim() !== this.#written;
  }

  async #write(): Promise<void> {
    const text = this.#text.trim();
    if (text === "" || mayBeSilent(text)) return;
    try {
      const place = await this.#place;
      if (place === null || this.#isEnded) return;
      const shown = await this.#options.show(place, text, this.#shown);
      this.#written = text;
      if (shown === null) this.#isEnded = true;
      else this.#shown = shown;
    } catch (error) {
      // The complete answer is delivered in any case.
      const { isPermanent, retryAfterMs } = errorAdvice(error);
      if (isPermanent) this.#isEnded = true;
      this.#pausedUntil = this.#options.clock.now() + (retryAfterMs ?? this.#options.intervalMs * 4);
    }
  }
}

/** Whether the text might become a control word, which is never sent to a channel. */
function mayBeSilent(text: string): boolean {
  return [replySkip, announceSkip].some((word) => word.startsWith(text));
}
