import type { IncomingMessage } from "node:http";

/** Above every limit that a twin has a refusal for. */
const mostBytes = 64 * 1024 * 1024;
const mostAtOnce = 256 * 1024 * 1024;

/** What came in. `null`: too much of it. */
export interface Body {
  readonly text: string;
  readonly bytes: number;
}

/** Reads bodies of several requests at a time, and never holds more than it may of all of them together. */
export class BodyReader {
  #held = 0;

  /** Throws where the client leaves, and where the bytes are no UTF-8. */
  async read(incoming: IncomingMessage): Promise<Body | null> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        this.#held += chunk.length;
        if (bytes > mostBytes || this.#held > mostAtOnce) {
          // A client reads no answer before it has sent everything; the rest is let go by.
          incoming.resume();
          return null;
        }
        chunks.push(chunk);
      }
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)), bytes };
    } finally {
      this.#held -= bytes;
    }
  }
}
