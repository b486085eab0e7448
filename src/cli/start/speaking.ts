import type { Readable } from "node:stream";
import type { StdioStreams } from "../../gateway/calls/stdio-streams.ts";
import { rawOutput } from "../output/raw-output.ts";
import { onStopAsked } from "../output/signals.ts";
import { StdoutGuard } from "../output/stdout-guard.ts";
import type { Terminal } from "../output/terminal.ts";
import { untilStopped } from "./stopping.ts";

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
