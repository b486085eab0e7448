import type { WatchedCalls } from "../../protocol/methods/calls.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

export interface RunningCalls extends WatchedCalls {
  close(): Promise<void>;
}

/** The gateway that runs on a folder; `null`: none does, or it cannot be reached. */
export async function connectRunning(
  _terminal: Terminal,
  _options: GlobalOptions,
  _root: string,
): Promise<RunningCalls | null> {
  return null;
}
