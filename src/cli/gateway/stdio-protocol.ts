import type { Readable } from "node:stream";
import { Writable } from "node:stream";
import type { StdioStreams } from "../../gateway/mcp/serve-stdio.ts";
import type { Terminal } from "../output/terminal.ts";
import { onStopAsked } from "../output/terminal.ts";
import { untilStopped } from "./stop-requests.ts";

/** A terminal over which nothing but a protocol is spoken. */
export interface Spoken extends StdioStreams {
  /** What it prints is of the protocol. */
  readonly terminal: Terminal;
}

/**
 * Keeps the standard streams for one protocol. Asked to stop, the signal says so; asked once more, the process ends at once.
 * Hosts end the input and ask to stop a moment later: that is heard until `act` is through.
 */
export async function speaking(terminal: Terminal, act: (spoken: Spoken) => Promise<void>): Promise<void> {
  const guard = new StdoutGuard();
  const leaving = new AbortController();
  const stop = untilStopped({ onStop: onStopAsked }, () => process.exit(0));
  void stop.asked.then(() => leaving.abort());
  const ours = { ...terminal, out: (text: string) => guard.ours(() => terminal.out(text)) };
  try {
    await act({
      terminal: ours,
      input: terminal.input().stream as Readable,
      output: rawOutput(ours),
      signal: leaving.signal,
    });
  } finally {
    stop.end();
    guard.release();
  }
}

/** The output of a terminal as a stream, for a protocol that is spoken over it. */
function rawOutput(terminal: Terminal): Writable {
  return new Writable({
    decodeStrings: false,
    write: (chunk: string | Uint8Array, _, done) => {
      terminal.out(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
      done();
    },
  });
}

/**
 * Keeps the standard output of this process for one writer: what anything else writes there goes to the standard error
 * instead, so that a protocol that is spoken over it stays whole.
 */
export class StdoutGuard {
  readonly #write = process.stdout.write;
  #isOurs = false;

  constructor() {
    const toStdout = this.#write.bind(process.stdout) as (...args: readonly unknown[]) => boolean;
    const toStderr = process.stderr.write.bind(process.stderr) as typeof toStdout;
    process.stdout.write = ((...args: readonly unknown[]) =>
      this.#isOurs ? toStdout(...args) : toStderr(...args)) as typeof process.stdout.write;
  }

  /** What is written within reaches the output. */
  ours(write: () => void): void {
    this.#isOurs = true;
    try {
      write();
    } finally {
      this.#isOurs = false;
    }
  }

  release(): void {
    process.stdout.write = this.#write;
  }
}
