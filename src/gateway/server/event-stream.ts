import type { EventFilter } from "../../protocol/methods/calls.ts";
import type { EventSink } from "../events/subscriber.ts";
import { checkCall, methodFor, RequestRefusedError } from "../methods/dispatch.ts";
import type { HttpExchange } from "./exchange.ts";
import { apiHeaders } from "./exchange.ts";
import { rateLimited } from "./refusals.ts";

const method = "sessions.subscribe";
const lists = ["keys", "events"];

/** `GET /events`: events as server-sent ones. The data of each is its frame, its id the frame's `seq`. */
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
  // With its token, and with the server.
  exchange.signal.addEventListener("abort", () => sink.end(), { once: true });
}

/** What the query asks for, as `sessions.subscribe` takes it. */
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
    // Proxies hold streams back otherwise.
    "x-accel-buffering": "no",
    ...(rules.isLast ? { connection: "close" } : {}),
  });
  const { timers, streamBeatMs: beatMs, closeMs } = context.tuning;
  return sseSink(response, { timers, beatMs, closeMs });
}

/** Events as `text/event-stream`. The data of each is the very frame that a socket gets. */

/** A comment, which readers pass over: it shows both sides that the other is there. */
export const sseHeartbeat = ": \n\n";

/** What comes first: after how long to come again when it is cut off. */
export function sseOpening(retryMs = 1000): string {
  return `retry: ${retryMs}\n\n`;
}

/** One event. A frame is one line: JSON has no line ends of its own. */
export function sseEvent(frame: string, seq: number, event: string): string {
  return `id: ${seq}\nevent: ${event}\ndata: ${frame}\n\n`;
}

/**
 * What to resume behind, by the header `Last-Event-ID`; `undefined`: from now on. What is no number of ours resumes behind
 * 0, so that its reader is told of a gap.
 */
export function lastEventId(header: string | undefined): number | undefined {
  if (header === undefined || header === "") return undefined;
  const seq = /^\d{1,16}$/.test(header) ? Number(header) : 0;
  return Number.isSafeInteger(seq) ? seq : 0;
}

/** The answer to a request: a `ServerResponse`, whose headers are written. */
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
  /** So long a reader has for the rest once it is ended. */
  readonly closeMs: number;
}

export interface SseTimers {
  after(ms: number, act: () => void): () => void;
  every(ms: number, act: () => void): () => void;
}

/** A sink that writes events to an answer. Nothing is written any more once that is ended or closed. */
export interface SseSink extends EventSink {
  /** The rest goes out, if it is read in time. */
  end(): void;
}

export function sseSink(target: SseTarget, { timers, beatMs, closeMs }: SseOptions): SseSink {
  let isOpen = true;
  const write = (text: string) => void (isOpen && target.write(text));
  // To whoever does not read, a heartbeat would only be more to read.
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
