import type { SkeinEvent } from "../../core/events.ts";
import { escapeToLine } from "../../core/text.ts";

/** What a call that waits has to tell meanwhile. */

/** A step of a run in words; `null`: none that is told. Names alone: texts of others are not redacted here. */
export function stepText(event: SkeinEvent): string | null {
  switch (event.type) {
    case "run.queued":
      return "A run is queued.";
    case "run.started":
      return "A run has started.";
    case "run.step":
      return event.phase === "asked" ? `Step ${event.step}: the model is asked.` : null;
    case "run.tool":
      return event.phase === "call" ? `The tool ${escapeToLine(event.toolName)} is called.` : null;
    case "run.retry":
      return "The model is asked again.";
    case "run.compaction":
      return event.phase === "started" ? "The conversation is compacted." : null;
    case "run.waiting":
      return event.for === "approval" ? "A call waits for approval." : "The run waits for another.";
    case "run.sleeping":
      return "The run sleeps until what it waits for has arrived.";
    case "run.resumed":
      return "The run goes on.";
    case "run.ended":
      return `A run has ended: ${event.state}.`;
    default:
      return null;
  }
}

/** Follows some runs, and those that they set off. */
export class Follower {
  readonly #runs = new Set<string>();
  readonly #tell: (progress: number, message: string) => void;
  #told = 0;

  constructor(tell: (progress: number, message: string) => void) {
    this.#tell = tell;
  }

  follow(runIds: readonly string[]): void {
    for (const runId of runIds) this.#runs.add(runId);
    this.#say("Waiting for the reply.");
  }

  hear(event: SkeinEvent): void {
    if (event.runId === undefined) return;
    if (event.type === "run.queued" && event.startedBy !== undefined && this.#runs.has(event.startedBy))
      this.#runs.add(event.runId);
    const text = this.#runs.has(event.runId) ? stepText(event) : null;
    if (text !== null) this.#say(text);
  }

  /** Progress only ever goes up; how much there is to do nobody knows. */
  #say(message: string): void {
    this.#told += 1;
    this.#tell(this.#told, message);
  }
}
