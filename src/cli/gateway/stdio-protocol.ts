import type { Readable } from "node:stream";
import { Writable } from "node:stream";
import type { StdioStreams } from "../../gateway/mcp/serve-stdio.ts";
import type { Terminal } from "../output/terminal.ts";
import { onStopRequest } from "../output/terminal.ts";
import { awaitStop } from "./stop-requests.ts";

/** This process's standard streams, reserved for one protocol. */
export interface ProtocolStreams extends StdioStreams {
  /** A terminal whose output belongs to the protocol. */
  readonly terminal: Terminal;
}

/**
 * Reserves the standard streams for one protocol while `act` is running. A stop request aborts the signal. A second one
 * exits the process. Hosts close the input and send a stop request a moment later, so stop requests are handled until
 * `act` has ended.
 */
export async function withProtocolStreams(
  terminal: Terminal,
  act: (streams: ProtocolStreams) => Promise<void>,
): Promise<void> {
  const guard = new StdoutGuard();
  const leaving = new AbortController();
  const stop = awaitStop({ onStop: onStopRequest }, () => process.exit(0));
  void stop.requested.then(() => leaving.abort());
  const ours = { ...terminal, out: (text: string) => guard.allow(() => terminal.out(text)) };
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

/** Returns a terminal's output as a stream. */
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
 * Reserves standard output for one writer. All other output goes to standard error so that the protocol is not
 * corrupted.
 */
export class StdoutGuard {
  readonly #write = process.stdout.write;
  #isAllowed = false;

  constructor() {
    const toStdout = this.#write.bind(process.stdout) as (...args: readonly unknown[]) => boolean;
    const toStderr = process.stderr.write.bind(process.stderr) as typeof toStdout;
    process.stdout.write = ((...args: readonly unknown[]) =>
      this.#isAllowed ? toStdout(...args) : toStderr(...args)) as typeof process.stdout.write;
  }

  /** Output written inside the callback reaches standard output. */
  allow(write: () => void): void {
    this.#isAllowed = true;
    try {
      write();
    } finally {
      this.#isAllowed = false;
    }
  }

  release(): void {
    process.stdout.write = this.#write;
  }
}
