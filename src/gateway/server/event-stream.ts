import type { EventFilter } from "../../protocol/calls.ts";
import type { EventSink } from "../events/subscriber.ts";
import { checkCall, methodFor, RequestRefusedError } from "../methods/dispatch.ts";
import type { HttpExchange } from "./exchange.ts";
import { apiHeaders } from "./exchange.ts";
import { rateLimited } from "./refusals.ts";

const method = "sessions.subscribe";
const lists = ["keys", "events"];

/** `GET /events`: server-sent events. An event's data is its frame, and its ID is the frame's `seq`. */
export async function events(exchange: HttpExchange): Promise<void> {
  const { context, request } = exchange;
  const principal = await exchange.enter();
  const { params, call } = checkCall(methodFor(method, principal), filterOf(request.url ?? ""), principal);
  const after = lastEventId(request.headers["last-event-id"]?.toString());
  const wanted = await context.app.wanted(params as EventFilter, principal, call.userId);
  if (exchange.signal.aborted) throw exchange.signal.reason;
  const release = context.sockets.open(principal.tokenId);
  if (release === null)
    throw new RequestRefusedError(rateLimited("This token has too many sockets and streams", 1000));
  exchange.atEnd(release);
  const sink = begin(exchange);
  const subscription = context.app.hub.subscribe(principal, wanted, sink, after);
  exchange.atEnd(() => subscription.close());
  // The token was revoked, or the server is shutting down.
  exchange.signal.addEventListener("abort", () => sink.end(), { once: true });
}

/** Returns the query as params for `sessions.subscribe`. */
export function filterOf(url: string): Readonly<Record<string, unknown>> {
  const query = new URL(url, "http://localhost").searchParams;
  const filter: Record<string, unknown> = {};
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name);
    filter[name] = lists.includes(name) ? values : values.length === 1 ? values[0] : values;
  }
  return filter;
}

function begin({ context, response, rules }: HttpExchange): SseSink {
  response.writeHead(200, {
    ...apiHeaders,
    "content-type": "text/event-stream; charset=utf-8",
    // Keeps proxies from buffering the stream.
    "x-accel-buffering": "no",
    ...(rules.isLast ? { connection: "close" } : {}),
  });
  const { timers, streamBeatMs: beatMs, closeMs } = context.tuning;
  return sseSink(response, { timers, beatMs, closeMs });
}

/** A comment, which clients ignore. It shows both sides that the connection is alive. */
export const sseHeartbeat = ": \n\n";

/** Returns the first lines of a stream, which set how long a client waits before reconnecting. */
export function sseOpening(retryMs = 1000): string {
  return `retry: ${retryMs}\n\n`;
}

/** Encodes one event. A frame is a single line because JSON escapes line breaks. */
export function sseEvent(frame: string, seq: number, event: string): string {
  return `id: ${seq}\nevent: ${event}\ndata: ${frame}\n\n`;
}

/**
 * Returns the sequence number in `Last-Event-ID`. `undefined` starts with new events. An invalid value resumes after 0
 * so that the client receives a `gap`.
 */
export function lastEventId(header: string | undefined): number | undefined {
  if (header === undefined || header === "") return undefined;
  const seq = /^\d{1,16}$/.test(header) ? Number(header) : 0;
  return Number.isSafeInteger(seq) ? seq : 0;
}

/** A `ServerResponse` whose headers have been written. */
export interface SseTarget {
  readonly writableLength: number;
  write(text: string): unknown;
  end(): unknown;
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

export interface SseOptions {
  readonly timers: SseTimers;
  readonly beatMs: number;
  /** How long the client has to read the remaining data after `end`. */
  readonly closeMs: number;
}

export interface SseTimers {
  after(ms: number, act: () => void): () => void;
  every(ms: number, act: () => void): () => void;
}

/** A sink that writes events to a response until the response ends. */
export interface SseSink extends EventSink {
  /** Ends the response after the events that have already been sent. */
  end(): void;
}

export function sseSink(target: SseTarget, { timers, beatMs, closeMs }: SseOptions): SseSink {
  let isOpen = true;
  const write = (text: string) => void (isOpen && target.write(text));
  // No heartbeats are added to the backlog of a client that does not read.
  const beat = () => void (target.writableLength === 0 && write(sseHeartbeat));
  let stop = timers.every(beatMs, beat);
  const leave = () => {
    isOpen = false;
    stop();
  };
  target.once("close", leave);
  write(sseOpening());
  return {
    send: (frame, seq, event) => write(sseEvent(frame, seq, event)),
    backlog: () => (isOpen ? target.writableLength : 0),
    drop: () => {
      leave();
      target.destroy();
    },
    end: () => {
      if (!isOpen) return;
      leave();
      stop = timers.after(closeMs, () => target.destroy());
      target.end();
    },
  };
}
