import type { RequestFrame, ResponseFrame } from "../../../protocol/frames.ts";
import { isLongCall } from "../../../protocol/methods/method-table.ts";
import type { Principal } from "../../auth/principal.ts";
import { Refused } from "../../calls/dispatch.ts";
import type { Ground } from "../door/ground.ts";
import { jsonText } from "../door/json-text.ts";
import { rateLimited, tooLarge } from "../door/refusals.ts";
import type { Task } from "../door/underway.ts";
import type { SinkTarget } from "./sink.ts";
import { Subscriptions } from "./subscriptions.ts";

export interface RequestsTarget extends SinkTarget {
  answer(frame: ResponseFrame): void;
  /** Nothing is under way any more. */
  idle(): void;
}

/** The requests of one socket that are under way: many at once, never more than it may have. */
export class Requests {
  readonly #ground: Ground;
  readonly #target: RequestsTarget;
  readonly #subscriptions: Subscriptions;
  readonly #tasks = new Set<Task>();
  #bytes = 0;

  constructor(ground: Ground, target: RequestsTarget) {
    this.#ground = ground;
    this.#target = target;
    this.#subscriptions = new Subscriptions(ground.parts, target, ground.tuning.subscriptionsPerSocket);
  }

  get size(): number {
    return this.#tasks.size;
  }

  /** Throws where there are too many; its answer goes out by itself. */
  begin(frame: RequestFrame, bytes: number, principal: Principal): void {
    const { requestsPerSocket, heldBytes } = this.#ground.tuning;
    const isTooMuch = this.#tasks.size > 0 && this.#bytes + bytes > heldBytes;
    if (this.#tasks.size >= requestsPerSocket || isTooMuch) {
      throw new Refused(rateLimited("Too many requests of this socket are under way at once", 1000));
    }
    const task = this.#ground.underway.begin(isLongCall(frame.method, frame.params));
    this.#tasks.add(task);
    this.#bytes += bytes;
    void this.#run(frame, principal, task.signal).finally(() => {
      this.#tasks.delete(task);
      this.#bytes -= bytes;
      task.done();
      if (this.#tasks.size === 0) this.#target.idle();
    });
  }

  /** The socket is gone, and nobody waits for an answer. */
  end(): void {
    this.#subscriptions.closeAll();
    for (const task of this.#tasks) task.leave();
  }

  async #run(frame: RequestFrame, principal: Principal, signal: AbortSignal): Promise<void> {
    const { id, method } = frame;
    try {
      const then = await this.#answered(frame, principal, signal);
      then?.();
    } catch (error) {
      const refusal = this.#ground.parts.dispatch.refusal(principal, method, error, signal);
      this.#target.answer({ type: "res", id, ok: false, error: refusal });
    }
  }

  /** Answers, and gives what is to happen behind the answer. */
  async #answered(
    { id, method, params }: RequestFrame,
    principal: Principal,
    signal: AbortSignal,
  ): Promise<(() => void) | undefined> {
    if (method === "sessions.subscribe") {
      const { payload, begin } = await this.#subscriptions.subscribe(params, principal);
      this.#give(id, payload);
      return begin;
    }
    if (method === "sessions.unsubscribe") {
      this.#give(id, this.#subscriptions.unsubscribe(params, principal));
      return undefined;
    }
    this.#give(id, await this.#ground.parts.dispatch.invoke(principal, method, params, signal));
    return undefined;
  }

  /** An answer that is no frame any more, as `hello` has them, is told as what it is. */
  #give(id: string, payload: unknown): void {
    const text = `{"type":"res","id":${JSON.stringify(id)},"ok":true,"payload":${jsonText(payload ?? null)}}`;
    const { frameBytes } = this.#ground.tuning;
    if (isLonger(text, frameBytes)) throw new Refused(tooLarge("The answer", frameBytes));
    this.#target.send(text);
  }
}

/** In bytes of UTF-8, which are counted only where that can decide. */
function isLonger(text: string, bytes: number): boolean {
  return text.length > bytes || (text.length * 3 > bytes && Buffer.byteLength(text) > bytes);
}
