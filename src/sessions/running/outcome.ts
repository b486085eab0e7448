import { messageWithoutPaths, SkeinError } from "../../core/errors.ts";
import type { Outcome, Run } from "../../runs/contract.ts";
import { timeoutText } from "../../runs/states.ts";
import { RunStopped } from "../../runs/worker.ts";
import { HookStop } from "../hooks.ts";

/** How a run ends that could not go on; `null`: it is not ours to end. */
export function outcomeOf(error: unknown, run: Run): Outcome | null {
  if (error instanceof RunStopped) return stopped(error, run);
  if (error instanceof SkeinError) {
    if (error.code === "fenced") return null;
    return { state: "error", code: error.code, error: messageWithoutPaths(error) };
  }
  if (error instanceof HookStop) return { state: "error", code: "hook_stopped", error: error.message };
  return { state: "error", code: "internal", error: messageWithoutPaths(error) };
}

function stopped({ why }: RunStopped, run: Run): Outcome | null {
  switch (why) {
    case "aborted":
      return { state: "aborted", code: "aborted", error: "The run was aborted." };
    case "timeout":
      return { state: "timeout", code: "timeout", error: timeoutText(run) };
    case "lost":
    case "closing":
      return null;
  }
}
