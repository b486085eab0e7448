import { Check, Circle, GitMerge, Hourglass, Moon, Play, Square, Timer, X } from "lucide-react";
import type { Result } from "skein/client";
import styles from "./run-state.module.css";

export type RunRow = Result<"runs.list">["runs"][number];
export type RunState = RunRow["state"];

export const waitingStates = ["waiting", "sleeping", "queued"] as const satisfies readonly RunState[];
export const openStates = [...waitingStates, "running"] as const satisfies readonly RunState[];
export const failedStates = ["error", "timeout"] as const satisfies readonly RunState[];
export const endedStates = [
  ...failedStates,
  "aborted",
  "ok",
  "merged",
] as const satisfies readonly RunState[];

const looks = {
  queued: { word: "queued", icon: Circle },
  waiting: { word: "waiting", icon: Hourglass },
  sleeping: { word: "sleeping", icon: Moon },
  running: { word: "running", icon: Play },
  ok: { word: "done", icon: Check },
  error: { word: "failed", icon: X },
  timeout: { word: "timed out", icon: Timer },
  aborted: { word: "aborted", icon: Square },
  merged: { word: "merged", icon: GitMerge },
} as const satisfies Record<RunState, unknown>;

export function isOpen({ state }: Pick<RunRow, "state">): boolean {
  return (openStates as readonly RunState[]).includes(state);
}

export function isFailed({ state }: Pick<RunRow, "state">): boolean {
  return (failedStates as readonly RunState[]).includes(state);
}

export function canAbort(run: RunRow): boolean {
  return isOpen(run) && run.abortRequested !== true;
}

export function canRetry(run: RunRow): boolean {
  return (isFailed(run) || run.state === "aborted") && run.retriedAs === undefined;
}

const kindWords: Readonly<Record<string, string>> = {
  user: "message",
  channel: "channel",
  cron: "schedule",
  spawn: "task",
  send: "from session",
  ping_pong: "reply",
  announce: "result",
};

/** Describes what started a run, in plain words. */
export function kindWord({ kind }: Pick<RunRow, "kind">): string {
  return kindWords[kind] ?? kind;
}

export const laneWords: Readonly<Record<RunRow["lane"], string>> = {
  main: "Messages",
  subagent: "Sub-agents",
  cron: "Schedules",
  nested: "Exchanges",
};

/** A shape and a word, so that color is never the only indicator. */
export function StateMark({ run }: { readonly run: Pick<RunRow, "state" | "why" | "abortRequested"> }) {
  const { word, icon: Icon } = looks[run.state];
  return (
    <span
      className={styles.state}
      data-state={run.state}
      data-needs={run.why?.kind === "approval" || undefined}
    >
      <Icon size={12} strokeWidth={2.25} aria-hidden />
      {run.abortRequested === true && isOpen(run) ? "stopping" : word}
    </span>
  );
}

/** The name of one of several processes that share a database. */
export function processName({ host, pid }: NonNullable<RunRow["worker"]>): string {
  return `${host}, process ${pid}`;
}
