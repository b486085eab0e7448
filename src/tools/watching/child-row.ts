import { present } from "../../core/present.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { Child, SessionWork } from "../../runs/contract.ts";
import { isAtWork } from "./family.ts";

/** A child as `subagents` lists it. Pure. */

const longestTask = 72;

export interface ChildFacts {
  readonly child: Child;
  readonly sessionKey: string;
  readonly work: SessionWork | undefined;
  readonly model: string | null;
  /** Of all that it spawned, how many are at work. */
  readonly pendingDescendants: number;
  readonly now: number;
}

export function childRow({ child, sessionKey, work, model, pendingDescendants, now }: ChildFacts) {
  const { run, label, task } = child;
  const { runId, startedAt, usage } = run;
  const endedAt = isAtWork(work) ? null : run.endedAt;
  return present({
    runId,
    sessionKey,
    label,
    task: shortTask(task),
    status: statusOf(child, work),
    runtimeMs: startedAt === null ? null : (endedAt ?? now) - startedAt,
    model,
    totalTokens: usage.totalTokens,
    startedAt,
    endedAt,
    pendingDescendants,
  });
}

export type ChildRow = ReturnType<typeof childRow>;

/** One line, cut where it is too long. */
export function shortTask(task: string): string {
  const line = escapeToLine(task.trim().replace(/\s+/g, " "));
  return line.length <= longestTask ? line : `${cutText(line, longestTask - 1)}…`;
}

/** How its work stands now, else how its task ended. `waiting`: asleep too. */
export function statusOf({ run }: Child, work: SessionWork | undefined): string {
  if (work !== undefined && isAtWork(work)) return work.status;
  return run.outcome?.state ?? (run.state === "sleeping" ? "waiting" : run.state);
}

/** For people: a line for each child. */
export function childrenText(active: readonly ChildRow[], recent: readonly ChildRow[]): string {
  const line = ({ label, sessionKey, status, task, pendingDescendants }: ChildRow) => {
    const more = pendingDescendants === 0 ? "" : `, ${pendingDescendants} below it at work`;
    return `- ${escapeToLine(label ?? sessionKey)}: ${status}${more} (${task})`;
  };
  const part = (title: string, rows: readonly ChildRow[]) =>
    rows.length === 0 ? [] : [`${title}:`, ...rows.map(line)];
  const lines = [...part("Active", active), ...part("Recent", recent)];
  return lines.length === 0 ? "No sub-agents." : lines.join("\n");
}
