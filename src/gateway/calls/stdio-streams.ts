import type { Readable, Writable } from "node:stream";

/** What a protocol is spoken over. */
export interface StdioStreams {
  readonly input: Readable;
  readonly output: Writable;
  /** Ends it before the input does. */
  readonly signal: AbortSignal;
}
