import type { IncomingMessage } from "node:http";
import { ByteGatherer } from "../../core/gather-bytes.ts";

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
    const gathered = new ByteGatherer({ maxBytes: mostBytes });
    let heldBefore = 0;
    try {
      for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        const isTaken = gathered.append(chunk);
        this.#held += gathered.capacity - heldBefore;
        heldBefore = gathered.capacity;
        if (isTaken && this.#held <= mostAtOnce) continue;
        // A client reads no answer before it has sent everything; the rest is let go by.
        incoming.resume();
        return null;
      }
      const { length: bytes } = gathered;
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(gathered.take()), bytes };
    } finally {
      this.#held -= heldBefore;
    }
  }
}
