// A local server that answers in a provider's wire format, or refuses with any status and body that a test provides.
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline, Readable } from "node:stream";

/** The stand-in's reaction to one request. */
export type StandInReply =
  | { readonly text: string; readonly finishReason?: string; readonly usage?: object }
  | { readonly status: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  /** Streams the body chunk by chunk for as long as the client reads. */
  | { readonly chunks: Iterable<string>; readonly status?: number; readonly contentType?: string }
  /** The connection is reset before any response. */
  | "reset";

export interface StandInRequest {
  /** The whole request as sent. */
  readonly body: string;
  readonly isSummary: boolean;
  readonly headers: IncomingMessage["headers"];
}

export interface StandIn {
  readonly url: string;
  readonly requests: readonly StandInRequest[];
  close(): Promise<void>;
}

/** A summary with every section that a compaction requires. */
export const summaryHeadings = [
  "Goal",
  "Decisions",
  "Open work",
  "Constraints",
  "Pending asks",
  "Exact identifiers",
  "Files touched",
];
export const goodSummary = summaryHeadings.map((heading) => `## ${heading}\n- A trip to Kyoto.`).join("\n");

export async function startStandIn(
  format: "openai" | "google",
  reply: (request: StandInRequest, index: number) => StandInReply,
): Promise<StandIn> {
  const requests: StandInRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const body = Buffer.concat(await incoming.toArray()).toString();
    const isSummary = body.includes("You write notes that replace the older part of a conversation");
    const request = { body, isSummary, headers: incoming.headers };
    requests.push(request);
    const said = reply(request, requests.length - 1);
    if (said === "reset") incoming.socket.resetAndDestroy();
    else if ("chunks" in said) stream(response, said);
    else if ("status" in said) refuse(response, said);
    else answer(response, format, said);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function stream(
  response: ServerResponse,
  { chunks, status = 200, contentType = "text/event-stream" }: Extract<StandInReply, { chunks: unknown }>,
): void {
  response.writeHead(status, { "content-type": contentType });
  // A client that stops reading ends the stream.
  pipeline(Readable.from(chunks), response, () => undefined);
}

function refuse(response: ServerResponse, said: Extract<StandInReply, { body: unknown }>): void {
  const isText = typeof said.body === "string";
  response.writeHead(said.status, {
    "content-type": isText ? "text/plain" : "application/json",
    ...said.headers,
  });
  response.end(isText ? said.body : JSON.stringify(said.body));
}

function answer(
  response: ServerResponse,
  format: "openai" | "google",
  { text, finishReason, usage }: Extract<StandInReply, { text: string }>,
): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const chunks = format === "openai" ? openaiChunks(text, finishReason, usage) : googleChunks(text);
  for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  response.end(format === "openai" ? "data: [DONE]\n\n" : "");
}

function openaiChunks(text: string, finishReason = "stop", usage?: object): object[] {
  const chunk = { id: "c1", object: "chat.completion.chunk", created: 1, model: "m" };
  const delta = (fields: object, finish_reason: string | null = null) => ({
    ...chunk,
    choices: [{ index: 0, delta: fields, finish_reason }],
  });
  return [delta({ role: "assistant", content: text }), { ...delta({}, finishReason), usage }];
}

function googleChunks(text: string): object[] {
  const content = { role: "model", parts: [{ text }] };
  return [{ candidates: [{ content, finishReason: "STOP", index: 0 }], modelVersion: "m" }];
}
