import type { WebSocket } from "ws";
import type { PeerRequest } from "./gateway-peer.ts";
import { eventFrame } from "./gateway-peer.ts";

interface Kept {
  readonly event: string;
  readonly seq: number;
}

/** Numbered events for subscribed sockets, of which the most recent are kept. This is a minimal gateway. */
export class PeerHub {
  seq = 0;
  kept = 1000;
  /** The number of already delivered events that are sent again on a resume. */
  repeats = 0;
  /** Whether the response precedes or follows the missed events. */
  answersFirst = false;
  tellsOfRestart = true;
  /** `true` if the hub neither sends missed events nor reports them. */
  hidesLosses = false;
  #events: Kept[] = [];
  #sockets = new Set<WebSocket>();

  emit(count: number, event = "run.ended"): void {
    for (let each = 0; each < count; each++) {
      this.seq += 1;
      this.#events.push({ event, seq: this.seq });
      this.#events = this.#events.slice(-this.kept);
      for (const socket of this.#sockets) this.#send(socket, { event, seq: this.seq });
    }
  }

  /** No reader receives anything until it subscribes again. */
  cut(): void {
    for (const socket of this.#sockets) socket.terminate();
    this.#sockets.clear();
  }

  answer(request: PeerRequest): void {
    const { method, params, socket, ok } = request;
    if (method !== "sessions.subscribe") {
      ok({});
      return;
    }
    const answer = () => ok({ subscriptionId: "s", seq: this.seq });
    if (this.answersFirst) answer();
    this.#replay(socket, params.after as number | undefined);
    this.#sockets.add(socket);
    if (!this.answersFirst) answer();
  }

  #replay(socket: WebSocket, after: number | undefined): void {
    if (after === undefined) return;
    if (this.hidesLosses) {
      this.seq = Math.max(this.seq, after);
      return;
    }
    if (after > this.seq) {
      if (this.tellsOfRestart) this.#gap(socket, { after, upTo: this.seq, reason: "restart" });
      return;
    }
    const first = this.#events[0]?.seq ?? this.seq + 1;
    if (first > after + 1) this.#gap(socket, { after, upTo: first - 1, reason: "gone" });
    for (const each of this.#events) if (each.seq > after - this.repeats) this.#send(socket, each);
  }

  #gap(
    socket: WebSocket,
    payload: { readonly upTo: number; readonly after: number; readonly reason: string },
  ) {
    socket.send(eventFrame("gap", payload.upTo, payload));
  }

  #send(socket: WebSocket, { event, seq }: Kept): void {
    socket.send(eventFrame(event, seq, { n: seq }));
  }
}
