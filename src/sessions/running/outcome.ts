import { messageWithoutPaths, SkeinError } from "../../core/errors.ts";
import type { Outcome, Run } from "../../runs/contract.ts";
import { timeoutText } from "../../runs/states.ts";
import { RunStopped } from "../../runs/worker.ts";
import { HookStop } from "../hooks.ts";

/**
 * How a run ends that could not go on; `null`: it is not ours to end. Errors of stores, hooks and tools may quote a connection
 * string or a key, so every text is redacted.
 */
export function outcomeOf(error: unknown, run: Run, redact: (text: string) => string): Outcome | null {
  if (error instanceof RunStopped) return stoppedOutcome(error, run);
  if (error instanceof SkeinError && error.code === "fenced") return null;
  const code =
    error instanceof SkeinError ? error.code : error instanceof HookStop ? "hook_stopped" : "internal";
  const text = error instanceof HookStop ? error.message : messageWithoutPaths(error);
  return { state: "error", code, error: redact(text) };
}

/** How a run ends that was told to stop; `null`: another process has it, or will. */
export function stoppedOutcome({ why }: RunStopped, run: Run): Outcome | null {
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
