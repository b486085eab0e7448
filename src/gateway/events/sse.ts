import type { EventSink } from "./contract.ts";

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
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

export interface SseOptions {
  readonly heartbeatMs?: number;
  /** Repeats until it is stopped, without keeping the process alive. */
  readonly every?: (act: () => void, ms: number) => () => void;
}

/** A sink that writes events to an answer. It says nothing any more once that is closed. */
export function sseSink(
  target: SseTarget,
  { heartbeatMs = 15_000, every = everyMs }: SseOptions = {},
): EventSink {
  let isOpen = true;
  const write = (text: string) => void (isOpen && target.write(text));
  // To whoever does not read, a heartbeat would only be more to read.
  const stop = every(() => void (target.writableLength === 0 && write(sseHeartbeat)), heartbeatMs);
  const end = () => {
    isOpen = false;
    stop();
  };
  target.once("close", end);
  write(sseOpening());
  return {
    send: (frame, seq, event) => write(sseEvent(frame, seq, event)),
    backlog: () => (isOpen ? target.writableLength : 0),
    drop: () => {
      end();
      target.destroy();
    },
  };
}

function everyMs(act: () => void, ms: number): () => void {
  const timer = setInterval(act, ms);
  timer.unref();
  return () => clearInterval(timer);
}
