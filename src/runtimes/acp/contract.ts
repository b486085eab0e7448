import type { Readable, Writable } from "node:stream";
import type { AcpAgent } from "../../config/acp-agents.ts";
import type { Clock } from "../../core/clock.ts";
import type { EntryDraft, MessageDraft } from "../../core/seal.ts";
import type { Runtime, TurnEvent } from "../contract.ts";

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

/** A process of an agent, or of a terminal of one, with all that it starts. */
export interface ChildProcess {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when it has ended, by itself or not; nothing of its group is left by then. */
  readonly ended: Promise<ChildEnd>;
  /** How it ended, and the end of its stderr, on one line; blank: there is nothing to tell. */
  account(): string;
  /** SIGTERM, then SIGKILL, to all that it started. Resolves with its end; may be called at any time and more than once. */
  stop(): Promise<void>;
}

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** What an update of an agent sets off, in order. */
export type Act =
  | { readonly act: "say"; readonly message: MessageDraft }
  | { readonly act: "note"; readonly draft: EntryDraft }
  | { readonly act: "emit"; readonly event: TurnEvent };
