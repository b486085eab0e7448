import type { AcpAgent } from "../../config/acp-agents.ts";
import type { Clock } from "../../core/clock.ts";
import type { Runtime } from "../contract.ts";

/** Somebody else's agent as a child process, spoken to over the Agent Client Protocol. */
export interface AcpRuntime extends Runtime {
  /** The session is gone, or somebody put it to rest: the process of its agent goes too. */
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

export type { ChildEnd, ChildProcess } from "./process/contract.ts";
