import { decideAnew, SkeinError } from "../core/errors.ts";
import type { Run, RunState } from "./contract.ts";

/** What can happen to a run. */
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
 * A state: the next one. `ended`: it has ended, and nothing more happens to it. `impossible`: refused, nothing written.
 * `timeout_if_claimed`: a run that was never claimed does not time out. `queued_or_error`: the fourth loss is one too many.
 */
export type Cell = RunState | "ended" | "impossible" | "timeout_if_claimed" | "queued_or_error";

const over = {
  claim: "ended",
  steered: "ended",
  wait: "ended",
  wait_over: "ended",
  yield: "ended",
  wake: "ended",
  answer: "ended",
  error: "ended",
  deadline: "ended",
  abort: "ended",
  lease_lost: "ended",
} as const satisfies Record<RunEvent, Cell>;

/** Every state and every event: the whole of what can happen. */
export const runStates = {
  queued: {
    claim: "running",
    steered: "merged",
    wait: "impossible",
    wait_over: "impossible",
    yield: "impossible",
    wake: "impossible",
    answer: "impossible",
    error: "error",
    deadline: "timeout_if_claimed",
    abort: "aborted",
    lease_lost: "impossible",
  },
  running: {
    claim: "impossible",
    steered: "impossible",
    wait: "waiting",
    wait_over: "impossible",
    yield: "sleeping",
    wake: "impossible",
    answer: "ok",
    error: "error",
    deadline: "timeout",
    abort: "aborted",
    lease_lost: "queued_or_error",
  },
  waiting: {
    claim: "impossible",
    steered: "impossible",
    wait: "impossible",
    wait_over: "running",
    yield: "impossible",
    wake: "impossible",
    answer: "impossible",
    error: "error",
    deadline: "timeout",
    abort: "aborted",
    lease_lost: "queued",
  },
  sleeping: {
    claim: "impossible",
    steered: "impossible",
    wait: "impossible",
    wait_over: "impossible",
    yield: "impossible",
    wake: "queued",
    answer: "impossible",
    error: "error",
    deadline: "impossible",
    abort: "aborted",
    lease_lost: "impossible",
  },
  ok: over,
  error: over,
  timeout: over,
  aborted: over,
  merged: over,
} as const satisfies Record<RunState, Record<RunEvent, Cell>>;

/** So often may a run lose its owner; once more, and it ends as an error. */
export const mostLost = 3;

/** The code of a run that ended because its owner was lost once too often. Its input is kept for a retry. */
export const lostCode = "lost_too_often";

/** Codes of runs that ended through no fault of their input: losses and disk faults. `runs retry` goes on with them. */
export const retryableCodes: readonly string[] = [lostCode, "write_failed", "unreadable_file"];

export function retryHint(runId: string): string {
  return `Its input is kept: skein runs retry ${runId} queues it again.`;
}

/** What of a run decides where it goes. */
export interface RunFacts {
  readonly runId: string;
  readonly state: RunState;
  /** How often its owner was lost before. */
  readonly lost: number;
  /** The first claim. */
  readonly startedAt: number | null;
}

/** Where an event takes a run. `null`: it has ended, and the event is ignored. `conflict` where it cannot happen. */
export function nextState(run: RunFacts, event: RunEvent): RunState | null {
  const cell: Cell = runStates[run.state][event];
  switch (cell) {
    case "ended":
      return null;
    case "impossible":
      throw cannotHappen(run, event);
    case "timeout_if_claimed":
      if (run.startedAt === null) throw cannotHappen(run, event);
      return "timeout";
    case "queued_or_error":
      return run.lost >= mostLost ? "error" : "queued";
    default:
      return cell;
  }
}

/** Those that a run can still leave. */
export const openStates = ["queued", "running", "waiting", "sleeping"] as const satisfies readonly RunState[];

export const endStates = [
  "ok",
  "error",
  "timeout",
  "aborted",
  "merged",
] as const satisfies readonly RunState[];

export function isEnded(state: RunState): boolean {
  return (endStates as readonly RunState[]).includes(state);
}

/** Merged input is open until the turn that took it has ended. */
export function isOpenRun({ state, outcome }: Pick<Run, "state" | "outcome">): boolean {
  return state === "merged" ? outcome === null : !isEnded(state);
}

function cannotHappen({ runId, state }: RunFacts, event: RunEvent): SkeinError {
  const problem = `Run ${runId} is ${state}; "${event}" cannot happen to it`;
  return new SkeinError("conflict", { problem, advice: decideAnew });
}

/** Why a run timed out: its limit, and the settings that raise it. */
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
      ? `Raise agents.${session.agentId}.runTimeoutSeconds or defaults.runTimeoutSeconds, or set runTimeoutSeconds for one message.`
      : "Raise the runTimeoutSeconds of the message (--timeout).";
  return `The run took longer than ${limit}. ${setting}`;
}
