import type { Readable, Writable } from "node:stream";
import type { AgentContext, AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import {
  agent,
  MessageTooLargeError,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { parseJson } from "../../core/parse-json.ts";
import type { StdioStreams } from "../../gateway/mcp/serve-stdio.ts";
import { wireLimits } from "../../protocol/frames.ts";
import type { Editor } from "./acp-agent.ts";
import { AcpAgent } from "./acp-agent.ts";
import type { AcpParts } from "./contract.ts";
import { refusalOf } from "./refusal.ts";

/**
 * Speaks ACP over two streams until the input ends. Runs that are under way by then go on. A line that is longer than any may
 * be cannot be answered, and nothing behind it be found: it ends it with an error.
 */
export async function serveAcpStdio(parts: AcpParts, { input, output, signal }: StdioStreams): Promise<void> {
  const connected = Promise.withResolvers<AgentContext>();
  const ours = new AcpAgent(parts, editorOf(connected.promise));
  const connection = appOf(ours).connect(editorStream(input, output));
  connected.resolve(connection.client);
  // Before anything that is under way hears of it: an editor that goes away has cancelled nothing, and answered nothing.
  connection.signal.addEventListener("abort", () => ours.end(), { once: true });
  const stop = () => connection.close();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await connection.closed;
    // Nobody can say over a connection why it had to end.
    const { reason } = connection.signal;
    if (reason instanceof Error && reason.name === "MessageTooLargeError") parts.report(reason);
  } finally {
    signal.removeEventListener("abort", stop);
    ours.end();
  }
  if (connection.signal.reason instanceof MessageTooLargeError)
    throw new SkeinError("body_too_large", { bytes: wireLimits.frameBytes });
}

/** As the SDK's own `ndJsonStream`, but a long message is parsed in slices. */
function editorStream(input: Readable, output: Writable): Stream {
  const cancelled = new AbortController();
  const { signal } = cancelled;
  const write = (message: object): Promise<void> =>
    new Promise((resolve, reject) => {
      output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  const readable = new ReadableStream<AnyMessage>({
    start: (controller) => {
      const read = async () => {
        // The connection itself refuses what is JSON and not a message.
        for await (const line of linesOf(input)) {
          const message = await parseJson(line, signal).catch(() => unreadable);
          if (signal.aborted) return;
          if (message === unreadable) await write(parseError);
          else controller.enqueue(message as AnyMessage);
        }
        if (!signal.aborted) controller.close();
      };
      void read().catch((error: unknown) => {
        if (!signal.aborted) controller.error(error);
      });
    },
    cancel: () => {
      cancelled.abort();
      input.destroy();
    },
  });
  return { readable, writable: new WritableStream<AnyMessage>({ write }) };
}

const unreadable = Symbol("unreadable");
const parseError = { jsonrpc: "2.0", id: null, error: RequestError.parseError().toErrorResponse() };

/** The last line may lack its line feed. */
async function* linesOf(input: Readable): AsyncGenerator<string> {
  const { frameBytes: maxBytes } = wireLimits;
  const lines = new LineGatherer({ maxBytes, tooLong: () => new MessageTooLargeError(maxBytes) });
  for await (const chunk of input) {
    for (const line of lines.split(Buffer.from(chunk))) {
      const text = line.toString("utf8").trim();
      if (text !== "") yield text;
    }
  }
  const rest = lines.unfinished.toString("utf8").trim();
  if (rest !== "") yield rest;
}

function appOf(ours: AcpAgent) {
  const { session } = methods.agent;
  return agent({ name: "skein" })
    .onRequest(methods.agent.initialize, ({ params }) => ours.initialize(params, PROTOCOL_VERSION))
    .onRequest(session.new, ({ params }) => told(ours.create(params)))
    .onRequest(session.load, ({ params }) => told(ours.load(params)))
    .onRequest(session.resume, ({ params }) => told(ours.resume(params)))
    .onRequest(session.fork, ({ params }) => told(ours.fork(params)))
    .onRequest(session.list, ({ params, signal }) => told(ours.list(params, signal)))
    .onRequest(session.delete, ({ params }) => told(ours.delete(params)))
    .onRequest(session.close, ({ params }) => told(ours.close(params)))
    .onRequest(session.prompt, ({ params, signal }) => told(ours.prompt(params, signal)))
    .onRequest(session.setMode, ({ params }) => told(ours.setMode(params)))
    .onRequest(session.setConfigOption, ({ params }) => told(ours.setOption(params)))
    .onNotification(session.cancel, ({ params }) => told(ours.cancel(params)));
}

/** Errors in our words, with our codes. */
async function told<T>(act: Promise<T>): Promise<T> {
  try {
    return await act;
  } catch (error) {
    throw refusalOf(error);
  }
}

function editorOf(connected: Promise<AgentContext>): Editor {
  return {
    tell: async (sessionId, update) => {
      const client = await connected;
      await client.notify(methods.client.session.update, { sessionId, update }).catch(() => undefined);
    },
    ask: async (request, cancellationSignal) => {
      const client = await connected;
      const options = { cancellationSignal, stopWaitingOnCancel: true };
      return client.request(methods.client.session.requestPermission, request, options);
    },
  };
}
