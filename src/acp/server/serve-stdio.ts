import type { Readable, Writable } from "node:stream";
import type { AgentContext, AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import {
  agent,
  MessageTooLargeError,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk/unstable";
import type { ErrorCode } from "../../core/errors.ts";
import { SkeinError } from "../../core/errors.ts";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { parseJson } from "../../core/parse-json.ts";
import { thrownText } from "../../core/text.ts";
import type { StdioStreams } from "../../gateway/mcp/serve-stdio.ts";
import { RequestRefusedError } from "../../gateway/methods/dispatch.ts";
import { wiredErrors } from "../../protocol/errors.ts";
import { wireLimits } from "../../protocol/frames.ts";
import type { Editor } from "./acp-agent.ts";
import { AcpAgent } from "./acp-agent.ts";
import type { ServerContext } from "./context.ts";

/**
 * Serves ACP over two streams until the input ends. Turns that are still running continue. A line that exceeds the size
 * limit ends the connection with an error, because nothing after it can be read.
 */
export async function serveAcpStdio(
  context: ServerContext,
  { input, output, signal }: StdioStreams,
): Promise<void> {
  const connected = Promise.withResolvers<AgentContext>();
  const acpAgent = new AcpAgent(context, editorOf(connected.promise));
  const connection = createApp(acpAgent).connect(editorStream(input, output));
  connected.resolve(connection.client);
  // Runs before the abort handlers of pending requests, because an editor that disconnects has neither canceled nor
  // answered anything.
  connection.signal.addEventListener("abort", () => acpAgent.end(), { once: true });
  const stop = () => connection.close();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await connection.closed;
    // The connection has ended, so the reason cannot be sent to the editor.
    const { reason } = connection.signal;
    if (reason instanceof Error && reason.name === "MessageTooLargeError") context.report(reason);
  } finally {
    signal.removeEventListener("abort", stop);
    acpAgent.end();
  }
  if (connection.signal.reason instanceof MessageTooLargeError)
    throw new SkeinError("body_too_large", { bytes: wireLimits.frameBytes });
}

/** Like the SDK's `ndJsonStream`, but parses a long message in chunks. */
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
        // The connection itself rejects JSON that is not a message.
        for await (const line of linesOf(input)) {
          const message = await parseJson(line, signal).catch(() => notJson);
          if (signal.aborted) return;
          if (message === notJson) await write(parseError);
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

const notJson = Symbol("not JSON");
const parseError = { jsonrpc: "2.0", id: null, error: RequestError.parseError().toErrorResponse() };

/** Includes a last line without a line feed. */
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

function createApp(acpAgent: AcpAgent) {
  const { session } = methods.agent;
  return agent({ name: "skein" })
    .onRequest(methods.agent.initialize, ({ params }) => acpAgent.initialize(params, PROTOCOL_VERSION))
    .onRequest(session.new, ({ params }) => withAcpErrors(acpAgent.create(params)))
    .onRequest(session.load, ({ params }) => withAcpErrors(acpAgent.load(params)))
    .onRequest(session.resume, ({ params }) => withAcpErrors(acpAgent.resume(params)))
    .onRequest(session.fork, ({ params }) => withAcpErrors(acpAgent.fork(params)))
    .onRequest(session.list, ({ params, signal }) => withAcpErrors(acpAgent.list(params, signal)))
    .onRequest(session.delete, ({ params }) => withAcpErrors(acpAgent.delete(params)))
    .onRequest(session.close, ({ params }) => withAcpErrors(acpAgent.close(params)))
    .onRequest(session.prompt, ({ params, signal }) => withAcpErrors(acpAgent.prompt(params, signal)))
    .onRequest(session.setMode, ({ params }) => withAcpErrors(acpAgent.setMode(params)))
    .onRequest(session.setConfigOption, ({ params }) => withAcpErrors(acpAgent.setOption(params)))
    .onNotification(session.cancel, ({ params }) => withAcpErrors(acpAgent.cancel(params)));
}

async function withAcpErrors<T>(act: Promise<T>): Promise<T> {
  try {
    return await act;
  } catch (error) {
    throw acpError(error);
  }
}

const internalError = -32603;

/** JSON-RPC error numbers, keyed by wire error code. */
const errorNumbers: Readonly<Record<string, number>> = {
  not_found: -32002,
  invalid_request: -32602,
  unauthorized: -32000,
};

/**
 * Converts an error from this process or from a gateway to an ACP error, with the code from `docs/errors.md` in its
 * data.
 */
export function acpError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const { code, reason } = (error instanceof RequestRefusedError ? error.wire : (error ?? {})) as {
    readonly code?: unknown;
    readonly reason?: unknown;
  };
  const known = typeof code === "string" ? code : "internal";
  const wireCode = Object.hasOwn(wiredErrors, known) ? wiredErrors[known as ErrorCode].code : known;
  const shownCode = typeof reason === "string" ? reason : known;
  return new RequestError(errorNumbers[wireCode] ?? internalError, thrownText(error), { code: shownCode });
}

function editorOf(connected: Promise<AgentContext>): Editor {
  return {
    sendUpdate: async (sessionId, update) => {
      const client = await connected;
      await client.notify(methods.client.session.update, { sessionId, update }).catch(() => undefined);
    },
    requestPermission: async (request, cancellationSignal) => {
      const client = await connected;
      const options = { cancellationSignal, stopWaitingOnCancel: true };
      return client.request(methods.client.session.requestPermission, request, options);
    },
  };
}
