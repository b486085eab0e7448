import type { Refusal, TwinRequest } from "../twins/contract.ts";

/** A request as it came in, and what became of it. */
export interface ReceivedRequest extends TwinRequest {
  /** `null`: it was taken. */
  readonly refusal: Refusal | null;
}

const most = 1000;
const mostBytes = 256 * 1024 * 1024;

/** The requests of a twin, oldest first. Beyond 1,000, or 256 MB of bodies, the oldest are forgotten. */
export class RequestLog {
  readonly requests: ReceivedRequest[] = [];
  readonly #sizes: number[] = [];
  #bytes = 0;

  add(request: ReceivedRequest, bytes: number): void {
    this.requests.push(request);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
    while (this.requests.length > most || (this.#bytes > mostBytes && this.requests.length > 1)) {
      this.requests.shift();
      this.#bytes -= this.#sizes.shift() ?? 0;
    }
  }
}
