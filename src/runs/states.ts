import { retryAdvice, SkeinError } from "../core/errors.ts";
import type { Run, RunState } from "./contract.ts";

export const runEvents = [
  "claim",
  "steered",
  "wait",
  "wait_over",
  "yield",
  "wake",
  "answer",
  "error",
  "deadline",
  "abort",
  "lease_lost",
] as const;

export type RunEvent = (typeof runEvents)[number];

/**
 * The next state. `ended` means that the event is ignored, and `impossible` means that it is rejected.
 * `timeout_if_claimed` means that a run that has never been claimed cannot time out. `queued_or_error` means that too
 * many losses end the run.
 */
type Cell = RunState | "ended" | "impossible" | "timeout_if_claimed" | "queued_or_error";

function rowOf(cell: Cell): Record<RunEvent, Cell> {
  return Object.fromEntries(runEvents.map((event) => [event, cell])) as Record<RunEvent, Cell>;
}

const impossible = rowOf("impossible");
const ended = rowOf("ended");

/** The next state for every state and event. */
export const runStates: Readonly<Record<RunState, Readonly<Record<RunEvent, Cell>>>> = {
  queued: {
    ...impossible,
    claim: "running",
    steered: "merged",
    error: "error",
    deadline: "timeout_if_claimed",
    abort: "aborted",
  },
  running: {
    ...impossible,
    wait: "waiting",
    yield: "sleeping",
    answer: "ok",
    error: "error",
    deadline: "timeout",
    abort: "aborted",
    lease_lost: "queued_or_error",
  },
  waiting: {
    ...impossible,
    wait_over: "running",
    error: "error",
    deadline: "timeout",
    abort: "aborted",
    lease_lost: "queued",
  },
  sleeping: { ...impossible, wake: "queued", error: "error", abort: "aborted" },
  ok: ended,
  error: ended,
  timeout: ended,
  aborted: ended,
  merged: ended,
};

/** The number of times a run can lose its owner. One more loss ends the run with an error. */
export const mostLost = 3;

/** The error code of a run that has lost its owner too many times. Its input is kept for a retry. */
export const lostCode = "lost_too_often";

/** Error codes of runs that lost their process or were stopped by a storage fault. A retry continues their turn. */
export const resumableCodes: readonly string[] = [lostCode, "write_failed", "unreadable_file"];

/** Whether a run ended with one of the `resumableCodes`. A retry continues its turn instead of starting a new one. */
export function isResumable({ outcome }: Pick<Run, "outcome">): boolean {
  return resumableCodes.includes(outcome?.code ?? "");
}

export function retryHint(runId: string): string {
  return `The run's input has been kept. To queue it again, run skein runs retry ${runId}.`;
}

/**
 * Returns the state after an event, or `null` if the run has ended and the event is ignored. An impossible event throws
 * `conflict`.
 */
export function nextState(
  run: Pick<Run, "runId" | "state" | "lost" | "startedAt">,
  event: RunEvent,
): RunState | null {
  const cell = runStates[run.state][event];
  switch (cell) {
    case "ended":
      return null;
    case "impossible":
      throw impossibleEvent(run, event);
    case "timeout_if_claimed":
      if (run.startedAt === null) throw impossibleEvent(run, event);
      return "timeout";
    case "queued_or_error":
      return run.lost >= mostLost ? "error" : "queued";
    default:
      return cell;
  }
}

export const openStates: readonly RunState[] = ["queued", "running", "waiting", "sleeping"];
export const endStates: readonly RunState[] = ["ok", "error", "timeout", "aborted", "merged"];

export function isEnded(state: RunState): boolean {
  return endStates.includes(state);
}

/** Whether a run is open. Merged input is open until the turn it joined has ended. */
export function isOpenRun({ state, outcome }: Pick<Run, "state" | "outcome">): boolean {
  return state === "merged" ? outcome === null : !isEnded(state);
}

function impossibleEvent({ runId, state }: Pick<Run, "runId" | "state">, event: RunEvent): SkeinError {
  const problem = `Run ${runId} is ${state}, so the event "${event}" is not allowed`;
  return new SkeinError("conflict", { problem, advice: retryAdvice });
}

/** Describes a timeout, including the run's limit and the settings that raise it. */
export function timeoutText({
  options,
  deadline,
  startedAt,
  session,
}: Pick<Run, "options" | "deadline" | "startedAt" | "session">): string {
  const { runTimeoutSeconds } = options;
  const ofAgent = deadline === null || startedAt === null ? null : Math.round((deadline - startedAt) / 1000);
  const seconds = runTimeoutSeconds ?? ofAgent;
  const limit = seconds === null ? "its time limit" : `its limit of ${seconds} s`;
  const setting =
    runTimeoutSeconds === undefined
      ? `Increase agents.${session.agentId}.runTimeoutSeconds or defaults.runTimeoutSeconds, or set runTimeoutSeconds for a single message.`
      : "Increase the message's runTimeoutSeconds (--timeout).";
  return `The run took longer than ${limit}. ${setting}`;
}
