import type { Readable, Writable } from "node:stream";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import type { JsonObject, MessageLines } from "./message-lines.ts";

/** Requests of an agent that are under way at once; any beyond are refused. */
const mostRequests = 256;
const tooMany = { code: -32000, message: `More than ${mostRequests} requests at once. Wait for answers.` };

export interface StreamEnds {
  readonly lines: MessageLines;
  /** Of a session/update, in the order of the wire: before any answer behind it. A promise: nothing more is read until then. */
  onUpdate(params: unknown, bytes: number): Promise<void> | undefined;
  /** It cannot be read any further. */
  onBroken(problem: Error): void;
}

/**
 * The pipes of an agent as the SDK takes them. Updates go past it: it would hand them on later than answers that come
 * behind them, and complain on our stderr of those that it does not know. So does it of answers to what nobody asked.
 */
export function messageStream(
  { stdin, stdout }: { readonly stdin: Writable; readonly stdout: Readable },
  ends: StreamEnds,
): Stream {
  const asked = new Set<unknown>();
  const askedOfUs = new Set<unknown>();
  const write = (message: AnyMessage | JsonObject): Promise<void> => writeLine(stdin, message);
  // How a pipe broke is told by the end of the process.
  stdin.on("error", () => undefined);

  const isForUs = (message: JsonObject): boolean => {
    if (!("method" in message)) return asked.delete(message.id);
    if (!("id" in message)) return true;
    if (askedOfUs.size >= mostRequests) {
      void write({ jsonrpc: "2.0", id: message.id, error: tooMany }).catch(() => undefined);
      return false;
    }
    askedOfUs.add(message.id);
    return true;
  };

  let isCancelled = false;
  const readable = new ReadableStream<AnyMessage>({
    start: (controller) => {
      void pump(stdout, ends, (message) => {
        if (isForUs(message) && !isCancelled) controller.enqueue(message as AnyMessage);
      })
        .catch((problem: Error) => ends.onBroken(problem))
        .then(() => (isCancelled ? undefined : controller.close()));
    },
    cancel: () => {
      isCancelled = true;
      stdout.destroy();
    },
  });
  const writable = new WritableStream<AnyMessage>({
    write: (message) => {
      if ("method" in message && "id" in message) asked.add(message.id);
      else if ("id" in message) askedOfUs.delete(message.id);
      return write(message);
    },
  });
  return { readable, writable };
}

async function pump(
  stdout: Readable,
  { lines, onUpdate }: StreamEnds,
  take: (message: JsonObject) => void,
): Promise<void> {
  for await (const chunk of stdout) {
    for (const { message, bytes } of lines.take(chunk as Buffer)) {
      if (message.method !== "session/update" || "id" in message) take(message);
      else await onUpdate(message.params, bytes);
    }
  }
}

function writeLine(stdin: Writable, message: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    stdin.write(`${JSON.stringify(message)}\n`, (error) =>
      error === null || error === undefined ? resolve() : reject(error),
    );
  });
}
