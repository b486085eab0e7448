import { methods } from "@agentclientprotocol/sdk/unstable";
import type { JsonObject } from "./message-lines.ts";

/** Requests of an agent that are under way at once; any beyond are refused. */
const mostRequests = 256;
/** Of all of them together, as they came; one alone may be as long as a message may. */
const mostBytes = 64 * 1024 * 1024;
/** Whose answers may be megabytes: so many at once, the rest in turn. */
const mostLarge = 4;
const large: ReadonlySet<unknown> = new Set([methods.client.fs.readTextFile, methods.client.terminal.output]);

interface UnderWay {
  readonly bytes: number;
  readonly isLarge: boolean;
}

/** What an agent asks of us at once, bounded so that no agent takes more of our memory than a few files. */
export class RequestGate {
  /** By id, until the answer is written. */
  readonly #underWay = new Map<unknown, UnderWay>();
  readonly #waiting: JsonObject[] = [];
  #bytes = 0;
  #larges = 0;

  /** What goes on now: it, or nothing until its turn has come. A sentence: it is refused. */
  admit(message: JsonObject, bytes: number): readonly JsonObject[] | string {
    const { id, method } = message;
    if (this.#underWay.has(id)) return "A request with this id is under way already.";
    if (this.#underWay.size >= mostRequests)
      return `More than ${mostRequests} requests at once. Wait for answers.`;
    if (this.#bytes > 0 && this.#bytes + bytes > mostBytes)
      return `Requests of more than ${mostBytes} bytes at once. Wait for answers.`;
    const isLarge = large.has(method);
    this.#underWay.set(id, { bytes, isLarge });
    this.#bytes += bytes;
    if (!isLarge) return [message];
    this.#waiting.push(message);
    return this.#next();
  }

  /** Its answer is written: what goes on in its place. */
  done(id: unknown): readonly JsonObject[] {
    const known = this.#underWay.get(id);
    if (known === undefined) return [];
    this.#underWay.delete(id);
    this.#bytes -= known.bytes;
    if (known.isLarge) this.#larges--;
    return this.#next();
  }

  #next(): readonly JsonObject[] {
    if (this.#larges >= mostLarge) return [];
    const next = this.#waiting.shift();
    if (next === undefined) return [];
    this.#larges++;
    return [next];
  }
}
