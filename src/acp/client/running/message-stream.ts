import type { Readable, Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import type { JsonObject, MessageLines } from "./message-lines.ts";
import { RequestGate } from "./request-gate.ts";

const refusedCode = -32000;
/** The only notification of an agent, beside its updates, that means something to us. */
const cancelRequest = "$/cancel_request";

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
  const gate = new RequestGate();
  const write = (message: AnyMessage | JsonObject): Promise<void> => writeLine(stdin, message);
  // How a pipe broke is told by the end of the process.
  stdin.on("error", () => undefined);

  const cancelled = new AbortController();
  let controller: ReadableStreamDefaultController<AnyMessage> | null = null;
  const handOn = (messages: readonly JsonObject[]): void => {
    if (cancelled.signal.aborted) return;
    for (const message of messages) controller?.enqueue(message as AnyMessage);
  };
  // Who does not read what it is refused is not read any further either.
  const take = (message: JsonObject, bytes: number): Promise<void> | undefined => {
    const kind = kindOf(message);
    if (kind !== "request") {
      if (kind === "cancel" || (kind === "answer" && asked.delete(message.id))) handOn([message]);
      return undefined;
    }
    const admitted = gate.admit(message, bytes);
    if (typeof admitted !== "string") return void handOn(admitted);
    const error = { code: refusedCode, message: admitted };
    return write({ jsonrpc: "2.0", id: message.id, error }).catch(() => undefined);
  };

  const readable = new ReadableStream<AnyMessage>({
    start: (given) => {
      controller = given;
      void pump(stdout, ends, take, cancelled.signal)
        .catch((problem: Error) =>
          cancelled.signal.aborted || isOfPipe(problem) ? undefined : ends.onBroken(problem),
        )
        .then(() => (cancelled.signal.aborted ? undefined : given.close()));
    },
    cancel: () => {
      cancelled.abort();
      stdout.destroy();
    },
  });
  const writable = new WritableStream<AnyMessage>({
    write: async (message) => {
      const isRequest = "method" in message && "id" in message;
      if (isRequest) asked.add(message.id);
      await write(message);
      if (!isRequest && "id" in message) handOn(gate.done(message.id));
    },
  });
  return { readable, writable };
}

/** `null`: nothing that the SDK could make something of but a complaint. */
function kindOf(message: JsonObject): "request" | "cancel" | "answer" | null {
  const { jsonrpc, id, method } = message;
  if (jsonrpc !== "2.0") return null;
  if (!("method" in message)) return "answer";
  if (!("id" in message)) return method === cancelRequest ? "cancel" : null;
  const isId = id === null || typeof id === "string" || typeof id === "number";
  return isId && typeof method === "string" ? "request" : null;
}

/** Of the pipe itself, not of what came through it: how the process ended says more. */
function isOfPipe(problem: Error): boolean {
  return "code" in problem;
}

/** Each reading has a turn of the event loop to itself: however fast an agent writes, everybody else gets theirs. */
async function pump(
  stdout: Readable,
  { lines, onUpdate }: StreamEnds,
  take: (message: JsonObject, bytes: number) => Promise<void> | undefined,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of stdout) {
    for await (const { message, bytes } of lines.take(chunk as Buffer, signal)) {
      if (message.method === "session/update" && !("id" in message)) await onUpdate(message.params, bytes);
      else await take(message, bytes);
      // An answer reaches its caller before the updates that follow it, which are not part of the turn.
      if (!("method" in message)) await nextTurn();
    }
    await nextTurn();
  }
}

function writeLine(stdin: Writable, message: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    stdin.write(`${JSON.stringify(message)}\n`, (error) =>
      error === null || error === undefined ? resolve() : reject(error),
    );
  });
}
