import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../../auth/principal.ts";
import { Refused } from "../../calls/dispatch.ts";
import type { HeldBytes } from "../../limits/held-bytes.ts";
import type { Ground } from "../door/ground.ts";
import { rateLimited, wrongToken } from "../door/refusals.ts";
import type { Task } from "../door/underway.ts";
import type { AnswerRules, AnswerText } from "./answers.ts";
import { sendError, sendText } from "./answers.ts";

/** A request and its answer, with who asks once that is known. */
export class Exchange {
  readonly ground: Ground;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Of the path. */
  readonly name: string;
  readonly task: Task;
  principal: Principal | null = null;
  readonly #ends: (() => void)[] = [];

  constructor(
    ground: Ground,
    request: IncomingMessage,
    response: ServerResponse,
    way: { readonly name: string; readonly isLong: boolean },
  ) {
    this.ground = ground;
    this.request = request;
    this.response = response;
    this.name = way.name;
    this.task = ground.underway.begin(way.isLong);
    response.once("close", () => this.#close());
    // What breaks while an answer is written is its client's loss, never the process's.
    response.on("error", (error) =>
      ground.parts.log("info", "An answer broke off", { error: error.message }),
    );
  }

  get signal(): AbortSignal {
    return this.task.signal;
  }

  get rules(): AnswerRules {
    const { underway, tuning } = this.ground;
    return { isLast: underway.isStopping, stalledMs: tuning.stalledMs };
  }

  /** Whoever shows a token, and has not too much under way. */
  async enter(): Promise<Principal> {
    const principal = await this.ground.door.enter(this.request);
    this.principal = principal;
    this.hold(principal.tokenId);
    this.atEnd(this.ground.visitors.add(principal, () => this.#revoke()));
    return principal;
  }

  /** One request more in this name, until it is answered. */
  hold(name: string): void {
    const release = this.ground.requests.open(name);
    if (release === null) throw new Refused(rateLimited("Too many requests are under way at once", 1000));
    this.#ends.push(release);
  }

  /**
   * Counts the bytes of its body under a name, until it is answered; what it returns throws where they are too many. The first
   * `free` of them are not counted.
   */
  holdBytes(held: HeldBytes, name: string, free = 0): (bytes: number) => void {
    let [length, taken] = [0, 0];
    this.atEnd(() => held.give(name, taken));
    return (bytes) => {
      length += bytes;
      const more = Math.max(0, length - free) - taken;
      if (this.response.closed || more === 0) return;
      if (!held.take(name, more)) {
        throw new Refused(rateLimited("Too many bytes of requests are under way at once", 1000));
      }
      taken += more;
    };
  }

  /** Called when the client is gone or has its answer. */
  atEnd(act: () => void): void {
    if (this.response.closed) act();
    else this.#ends.push(act);
  }

  send(answer: AnswerText): void {
    sendText(this.response, answer, this.rules);
  }

  /** What was thrown, as this client may see it. Behind the beginning of an answer nothing can be told any more. */
  fail(error: unknown): void {
    if (this.response.writableEnded) return;
    const wire = this.ground.parts.dispatch.refusal(this.principal, this.name, error, this.signal);
    if (this.response.headersSent) this.response.destroy();
    else {
      const endsConnection = error instanceof Refused && error.endsConnection;
      sendError(this.response, wire, { ...this.rules, isLast: this.rules.isLast || endsConnection });
    }
  }

  /** Its token has ended meanwhile: nothing more is told, and nobody waits for the rest. */
  #revoke(): void {
    if (!this.response.headersSent) sendError(this.response, wrongToken, this.rules);
    this.task.leave();
  }

  #close(): void {
    // Behind a finished answer it is of no account.
    if (!this.response.writableFinished) this.task.leave();
    try {
      for (const end of this.#ends.splice(0)) this.#end(end);
    } finally {
      this.task.done();
    }
  }

  /** One that fails keeps no other from its end. */
  #end(end: () => void): void {
    try {
      end();
    } catch (error) {
      this.ground.parts.log("error", "What was held for a request could not be let go", { error });
    }
  }
}
