import { Writable } from "node:stream";
import type { Terminal } from "./terminal.ts";

/** The output of a terminal as a stream, for a protocol that is spoken over it. */
export function rawOutput(terminal: Terminal): Writable {
  return new Writable({
    decodeStrings: false,
    write: (chunk: string | Uint8Array, _, done) => {
      terminal.out(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
      done();
    },
  });
}
