import type { ApprovalPayload, RunRowPayload } from "../../protocol/runs.ts";
import { lostCode } from "../../runs/states.ts";
import { counted } from "./amounts.ts";
import { shownTime } from "./times.ts";

/** Why a run does not go on, in a few words; empty: it does, or has ended. */
export function whyItWaits(
  run: RunRowPayload,
  approvals: readonly Pick<ApprovalPayload, "runId" | "toolName">[],
): string {
  const { state, waitsFor = [], wakeAt, keptFor } = run;
  const runs = waitsFor.map(shortRun).join(", ");
  if (run.ownerGone === true) return `its process is gone; ${whoContinues(run.app)} continues it`;
  switch (state) {
    case "queued":
      if (run.waitsForApp !== undefined) return `for ${shownApp(run)}`;
      if (keptFor !== undefined) return `kept for ${shortRun(keptFor)}, which sleeps`;
      return waitsFor.length === 0 ? `its turn in lane ${run.lane}` : `behind ${runs}`;
    case "waiting": {
      const asked = approvals.filter(({ runId }) => runId === run.runId);
      if (asked.length > 0) return `approval of ${asked.map(({ toolName }) => toolName).join(", ")}`;
      return waitsFor.length === 0 ? `its turn in lane ${run.lane}` : `for ${runs}`;
    }
    case "sleeping": {
      const until = wakeAt === undefined ? "" : `until ${shownTime(wakeAt)} UTC at the latest`;
      return [until, waitsFor.length === 0 ? "" : `for ${counted(waitsFor.length, "run")}: ${runs}`]
        .filter((part) => part !== "")
        .join(", ");
    }
    case "merged":
      return run.mergedInto === undefined ? "" : `joined ${shortRun(run.mergedInto)}`;
    default:
      return run.abortRequested === true ? "being aborted" : "";
  }
}

/** Who claims a run whose process is gone. */
export function whoContinues(app: string | null | undefined): string {
  return app === null || app === undefined || app === ""
    ? "the next `skein start`"
    : `the next process of the app ${app}`;
}

/** The app that a queued run waits for, with the tools that its process does not offer. */
export function shownApp({ waitsForApp = "", missingTools = [] }: RunRowPayload): string {
  const tools = missingTools.length === 0 ? "" : ` with ${missingTools.join(", ")}`;
  return `the app ${waitsForApp}${tools}`;
}

/** The end of an id tells runs apart; its beginning is only the time. */
export function shortRun(runId: string): string {
  return runId.length > 12 ? `…${runId.slice(-8)}` : runId;
}

/** Whether its process was lost too often, and its input waits for `runs retry`. */
export function isLost({ error, retriedAs }: RunRowPayload): boolean {
  return error?.code === lostCode && retriedAs === undefined;
}

export function shownState(run: RunRowPayload): string {
  return isLost(run) ? "lost" : run.state;
}
