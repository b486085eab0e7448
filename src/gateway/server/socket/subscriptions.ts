import { randomUUID } from "node:crypto";
import type { EventFilter } from "../../../protocol/methods/calls.ts";
import type { Principal } from "../../auth/principal.ts";
import { checkCall, methodFor, Refused } from "../../calls/dispatch.ts";
import type { ServerParts } from "../../contract.ts";
import type { Subscription } from "../../events/contract.ts";
import { rateLimited } from "../door/refusals.ts";
import type { SinkTarget } from "./sink.ts";
import { SubscriptionSink } from "./sink.ts";

/** An answer, and what is to happen once it has gone out. */
export interface Subscribed {
  readonly payload: unknown;
  begin(): void;
}

/** The subscriptions of one socket. An event that several of them want goes out once. */
export class Subscriptions {
  readonly #parts: Pick<ServerParts, "hub" | "wanted">;
  readonly #target: SinkTarget;
  readonly #most: number;
  readonly #open = new Map<string, Subscription>();
  #lastSeq = -1;
  #isOver = false;

  constructor(parts: Pick<ServerParts, "hub" | "wanted">, target: SinkTarget, most: number) {
    this.#parts = parts;
    this.#target = target;
    this.#most = most;
  }

  async subscribe(given: unknown, principal: Principal): Promise<Subscribed> {
    const method = methodFor("sessions.subscribe", principal);
    const { params, call } = checkCall(method, given, principal);
    const { after, ...filter } = params as EventFilter & { readonly after?: number };
    const wanted = await this.#parts.wanted(filter, principal, call.userId);
    if (this.#open.size >= this.#most) {
      throw new Refused(rateLimited(`A socket has ${this.#most} subscriptions, and this one more`, 1000));
    }
    const sink = new SubscriptionSink(this.#target, (seq, event) => this.#isFirst(seq, event));
    const subscription = this.#parts.hub.subscribe(principal, wanted, sink, after);
    const subscriptionId = randomUUID();
    if (this.#isOver) subscription.close();
    else this.#open.set(subscriptionId, subscription);
    const keys = wanted.keys === null ? {} : { keys: [...wanted.keys] };
    return { payload: { subscriptionId, seq: subscription.seq, ...keys }, begin: () => sink.open() };
  }

  unsubscribe(given: unknown, principal: Principal): unknown {
    const { params } = checkCall(methodFor("sessions.unsubscribe", principal), given, principal);
    const subscriptionId = params.subscriptionId as string;
    const wasOpen = this.#open.get(subscriptionId);
    wasOpen?.close();
    this.#open.delete(subscriptionId);
    return { subscriptionId, wasOpen: wasOpen !== undefined };
  }

  closeAll(): void {
    this.#isOver = true;
    for (const subscription of this.#open.values()) subscription.close();
    this.#open.clear();
  }

  /** A `gap` is each subscription's own. */
  #isFirst(seq: number, event: string): boolean {
    if (event === "gap") return true;
    if (seq === this.#lastSeq) return false;
    this.#lastSeq = seq;
    return true;
  }
}
