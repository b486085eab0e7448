import { SkeinError } from "../core/errors.ts";
import type { Outcome, Run, RunUsage } from "../runs/contract.ts";

/**
 * A run that did not end well. `code` is stable; `docs/errors.md` lists them.
 *
 * @example
 * ```ts
 * import { RunError } from "skein";
 * const isWorthAnotherTry = (error: unknown) => error instanceof RunError && error.code === "model_failed";
 * ```
 */
export class RunError extends Error {
  override readonly name = "RunError";
  readonly code: string;
  readonly state: "error" | "timeout" | "aborted";
  readonly runId: string;
  /** What it cost even so. */
  readonly usage: RunUsage;

  constructor(run: Pick<Run, "runId" | "usage">, outcome: Outcome) {
    super(outcome.error ?? `The run ended as ${outcome.state}.`);
    this.code = outcome.code ?? outcome.state;
    this.state = outcome.state === "ok" ? "error" : outcome.state;
    this.runId = run.runId;
    this.usage = run.usage;
  }
}

/** No run has this id, or it has ended too long ago. */
export function noSuchRun(runId: string): SkeinError {
  return new SkeinError("not_found", {
    what: "Run",
    name: runId,
    advice: "Ended runs are known for 30 days; see skein runs ls",
  });
}
