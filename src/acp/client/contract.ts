import type { Runtime } from "../../agents/contract.ts";
import type { AcpAgent } from "../../config/acp-agents.ts";
import type { Clock } from "../../core/clock.ts";
import type { FileBoundary } from "../../file-access/file-boundary.ts";

/** Somebody else's agent as a child process, spoken to over the Agent Client Protocol. */
export interface AcpRuntime extends Runtime {
  /** Nobody has use for the session: the process of its agent goes, that of one in a turn with the end of it. */
  rest(sessionId: string): void;
  /** The session is gone: so is the process of its agent, a moment after its run was aborted. */
  release(sessionId: string): Promise<void>;
  /** Resolves when no process of any agent is left. */
  close(): Promise<void>;
}

export interface AcpDeps {
  /** `null`: it is not configured. */
  agent(name: string): AcpAgent | null;
  readonly settings: AcpSettings;
  /** Where PATH, HOME and LANG of child processes come from. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly files: Pick<FileBoundary, "checkPath" | "attachments">;
  readonly clock: Clock;
  report(error: unknown): void;
}

export interface AcpSettings {
  /** Processes at once. */
  readonly maxConcurrentSessions: number;
  readonly idleMs: number;
  /** Until its session is open. */
  readonly startTimeoutMs: number;
}
