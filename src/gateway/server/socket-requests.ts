import { randomUUID } from "node:crypto";
import type { EventFilter } from "../../protocol/calls.ts";
import type { RequestFrame, ResponseFrame } from "../../protocol/frames.ts";
import { isLongCall } from "../../protocol/method-table.ts";
import type { Principal } from "../auth/principal.ts";
import type { EventSink, Subscription } from "../events/subscriber.ts";
import { checkCall, methodFor, RequestRefusedError } from "../methods/dispatch.ts";
import { jsonText, rateLimited, tooLarge } from "./refusals.ts";
import type { PendingRequest, ServerContext } from "./server-context.ts";
import type { ServerOptions } from "./server-options.ts";

export interface SocketRequestsTarget extends SinkTarget {
  answer(frame: ResponseFrame): void;
  /** Sends a response that is already encoded. */
  respond(text: string): void;
  /** Called when no requests are pending anymore. */
  idle(): void;
}

/** The pending requests on one socket, up to its limits. */
export class SocketRequests {
  readonly #context: ServerContext;
  readonly #target: SocketRequestsTarget;
  readonly #subscriptions: Subscriptions;
  readonly #tasks = new Set<PendingRequest>();
  #bytes = 0;

  constructor(context: ServerContext, target: SocketRequestsTarget) {
    this.#context = context;
    this.#target = target;
    this.#subscriptions = new Subscriptions(context.app, target, context.tuning.subscriptionsPerSocket);
  }

  get size(): number {
    return this.#tasks.size;
  }

  /** Starts a request and sends its response when it is ready. Throws if the socket has too many pending requests. */
  begin(frame: RequestFrame, bytes: number, principal: Principal): void {
    const { requestsPerSocket, heldBytes } = this.#context.tuning;
    const isTooMuch = this.#tasks.size > 0 && this.#bytes + bytes > heldBytes;
    if (this.#tasks.size >= requestsPerSocket || isTooMuch) {
      throw new RequestRefusedError(rateLimited("Too many requests are pending on this socket", 1000));
    }
    const task = this.#context.pendingRequests.begin(isLongCall(frame.method, frame.params));
    this.#tasks.add(task);
    this.#bytes += bytes;
    void this.#run(frame, principal, task.signal).finally(() => {
      this.#tasks.delete(task);
      this.#bytes -= bytes;
      task.done();
      if (this.#tasks.size === 0) this.#target.idle();
    });
  }

  /** Called when the socket has closed and no client is waiting for responses. */
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
      const refusal = this.#context.app.dispatch.refusal(principal, method, error, signal);
      this.#target.answer({ type: "res", id, ok: false, error: refusal });
    }
  }

  /** Sends the response. Returns a function to call afterward, if any. */
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
    this.#give(id, await this.#context.app.dispatch.invoke(principal, method, params, signal));
    return undefined;
  }

  /** Sends a result, or `too_large` if the result does not fit in a frame. */
  #give(id: string, payload: unknown): void {
    const text = `{"type":"res","id":${JSON.stringify(id)},"ok":true,"payload":${jsonText(payload ?? null)}}`;
    const { frameBytes } = this.#context.tuning;
    if (isLonger(text, frameBytes)) throw new RequestRefusedError(tooLarge("The response", frameBytes));
    this.#target.respond(text);
  }
}

/** The bytes are counted only if the string length alone is not conclusive. */
function isLonger(text: string, bytes: number): boolean {
  return text.length > bytes || (text.length * 3 > bytes && Buffer.byteLength(text) > bytes);
}

/** A result, and a function to call once it has been sent. */
export interface Subscribed {
  readonly payload: unknown;
  begin(): void;
}

/** The subscriptions on one socket. An event that several of them select is sent only once. */
export class Subscriptions {
  readonly #app: Pick<ServerOptions, "hub" | "wanted">;
  readonly #target: SinkTarget;
  readonly #most: number;
  readonly #open = new Map<string, Subscription>();
  #lastSeq = -1;
  #isOver = false;

  constructor(app: Pick<ServerOptions, "hub" | "wanted">, target: SinkTarget, most: number) {
    this.#app = app;
    this.#target = target;
    this.#most = most;
  }

  async subscribe(given: unknown, principal: Principal): Promise<Subscribed> {
    const method = methodFor("sessions.subscribe", principal);
    const { params, call } = checkCall(method, given, principal);
    const { after, ...filter } = params as EventFilter & { readonly after?: number };
    const wanted = await this.#app.wanted(filter, principal, call.userId);
    if (this.#open.size >= this.#most) {
      throw new RequestRefusedError(
        rateLimited(`A socket can have at most ${this.#most} subscriptions`, 1000),
      );
    }
    const sink = new SubscriptionSink(this.#target, (seq, event) => this.#isFirst(seq, event));
    const subscription = this.#app.hub.subscribe(principal, wanted, sink, after);
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

  /** Gaps are sent for each subscription separately. */
  #isFirst(seq: number, event: string): boolean {
    if (event === "gap") return true;
    if (seq === this.#lastSeq) return false;
    this.#lastSeq = seq;
    return true;
  }
}

export interface SinkTarget {
  /** Sends an event. */
  send(text: string): void;
  /** Returns the bytes of events that have not been sent yet. */
  backlog(): number;
  drop(): void;
}

/**
 * The sink for one subscription. Events that arrive before the subscription is confirmed are held back so that the
 * client receives the confirmation before the first event.
 */
export class SubscriptionSink implements EventSink {
  readonly #target: SinkTarget;
  /**
   * Whether this event has not been sent yet. If several subscriptions on a socket select it, the first one sends it.
   */
  readonly #isFirst: (seq: number, event: string) => boolean;
  #early: { readonly frame: string; readonly seq: number; readonly event: string }[] | null = [];
  #earlyLength = 0;

  constructor(target: SinkTarget, isFirst: (seq: number, event: string) => boolean) {
    this.#target = target;
    this.#isFirst = isFirst;
  }

  send(frame: string, seq: number, event: string): void {
    if (this.#early === null) {
      if (this.#isFirst(seq, event)) this.#target.send(frame);
      return;
    }
    this.#early.push({ frame, seq, event });
    this.#earlyLength += frame.length;
  }

  backlog(): number {
    return this.#target.backlog() + this.#earlyLength;
  }

  drop(): void {
    this.#target.drop();
  }

  /** Called once the subscription is confirmed. Sends the held events. */
  open(): void {
    const early = this.#early ?? [];
    this.#early = null;
    this.#earlyLength = 0;
    for (const { frame } of early) this.#target.send(frame);
  }
}
