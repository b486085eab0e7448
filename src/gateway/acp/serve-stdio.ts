import type { Readable, Writable } from "node:stream";
import { Readable as NodeReadable, Writable as NodeWritable } from "node:stream";
import type { AgentContext } from "@agentclientprotocol/sdk/unstable";
import { agent, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/unstable";
import { wireLimits } from "../../protocol/frames.ts";
import type { Editor } from "./acp-agent.ts";
import { AcpAgent } from "./acp-agent.ts";
import type { AcpParts } from "./contract.ts";
import { refusalOf } from "./refusal.ts";

export interface AcpStreams {
  readonly input: Readable;
  readonly output: Writable;
  /** Ends it before the input does. */
  readonly signal: AbortSignal;
}

/** Speaks ACP over two streams until the input ends. Runs that are under way by then go on. */
export async function serveAcpStdio(parts: AcpParts, { input, output, signal }: AcpStreams): Promise<void> {
  const connected = Promise.withResolvers<AgentContext>();
  const ours = new AcpAgent(parts, editorOf(connected.promise));
  const stream = ndJsonStream(
    NodeWritable.toWeb(output) as WritableStream<Uint8Array>,
    NodeReadable.toWeb(input) as ReadableStream<Uint8Array>,
    { maxMessageBytes: wireLimits.frameBytes },
  );
  const connection = appOf(ours).connect(stream);
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
}

function appOf(ours: AcpAgent) {
  const { session } = methods.agent;
  return agent({ name: "skein" })
    .onRequest(methods.agent.initialize, ({ params }) => ours.initialize(params, PROTOCOL_VERSION))
    .onRequest(session.new, ({ params }) => told(ours.create(params)))
    .onRequest(session.load, ({ params }) => told(ours.load(params)))
    .onRequest(session.resume, ({ params }) => told(ours.resume(params)))
    .onRequest(session.fork, ({ params }) => told(ours.fork(params)))
    .onRequest(session.list, ({ params }) => told(ours.list(params)))
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
