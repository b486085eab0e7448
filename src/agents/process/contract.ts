import type { Readable, Writable } from "node:stream";

/** A process of somebody else's program, with all that it starts. */
export interface ChildProcess {
  readonly pid: number;
  /** In its environment, and in that of all that it starts. */
  readonly mark: string;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when it has ended, by itself or not; nothing of its group is left by then. */
  readonly ended: Promise<ChildEnd>;
  /** Resolves when it has ended and what it said is read; who left it and holds its pipes is not waited for. */
  lastWords(): Promise<void>;
  /** How it ended, and the end of its stderr, on one line; blank: there is nothing to tell. */
  account(): string;
  /** SIGTERM, then SIGKILL, to all that it started. Resolves with its end; may be called at any time and more than once. */
  stop(): Promise<void>;
}

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** What is started, and where. */
export interface ProcessSpec {
  readonly command: string;
  readonly args: readonly string[];
  /** Beside PATH, HOME and LANG. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface ProcessOptions {
  /** What PATH, HOME and LANG are taken from. */
  readonly env: Environment;
}
