import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { soon } from "./soon.ts";

/** A server on a free loopback port. */
export class LoopbackServer {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(
    handle: (request: IncomingMessage, response: ServerResponse) => void,
  ): Promise<LoopbackServer> {
    const server = createServer(handle);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new LoopbackServer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** One request to a {@link HeldModel}. Its answer streams when the test requests it. */
export class HeldRequest {
  /** The request to the model, in OpenAI's format. */
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly #response: ServerResponse;

  constructor(messages: HeldRequest["messages"], response: ServerResponse) {
    this.messages = messages;
    this.#response = response.writeHead(200, { "content-type": "text/event-stream" });
  }

  /** The text of the last user message. */
  get lastUserText(): string {
    const content = this.messages.findLast(({ role }) => role === "user")?.content;
    if (typeof content === "string") return content;
    return (content as { text?: string }[]).map(({ text = "" }) => text).join("\n");
  }

  stream(content: string): void {
    this.#write({ delta: { role: "assistant", content }, finish_reason: null });
  }

  finish(content: string, reason: "stop" | "length" = "stop"): void {
    this.stream(content);
    this.#write({ delta: {}, finish_reason: reason });
    this.#response.end("data: [DONE]\n\n");
  }

  /** Ends the answer with a tool call. */
  callTool(name: string, args: object): void {
    const call = { id: "call_1", type: "function", function: { name, arguments: JSON.stringify(args) } };
    this.#write({ delta: { role: "assistant", tool_calls: [{ index: 0, ...call }] }, finish_reason: null });
    this.#write({ delta: {}, finish_reason: "tool_calls" });
    this.#response.end("data: [DONE]\n\n");
  }

  /** Whether the process that sent the request has closed the connection. */
  get isAbandoned(): boolean {
    return this.#response.closed;
  }

  /** Breaks the connection in the middle of the answer. */
  breakOff(): void {
    this.#response.destroy();
  }

  #write(choice: object): void {
    const chunk = { id: "c1", object: "chat.completion.chunk", created: 1, model: "held" };
    this.#response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, ...choice }] })}\n\n`);
  }
}

/** An OpenAI-compatible model on loopback that holds every request until the test answers it. */
export class HeldModel {
  readonly #requests: HeldRequest[] = [];
  #server: LoopbackServer | null = null;

  static async start(): Promise<HeldModel> {
    const model = new HeldModel();
    model.#server = await LoopbackServer.listen((request, response) => {
      void json(request).then((body) => {
        const { messages } = body as Pick<HeldRequest, "messages">;
        model.#requests.push(new HeldRequest(messages, response));
      });
    });
    return model;
  }

  get url(): string {
    return `${this.#server?.url}/v1`;
  }

  /** The lines in `skein.yaml` that make this the default model. */
  get config(): string {
    const provider = `{ baseUrl: "${this.url}", apiKey: none }`;
    return `defaults: { model: held/model }\nmodels: { providers: { held: ${provider} } }\n`;
  }

  /** The number of requests that have arrived. */
  get count(): number {
    return this.#requests.length;
  }

  /** Resolves to the request with this index, counted from 0, once it has arrived. */
  async request(index: number): Promise<HeldRequest> {
    await soon(() => this.#requests.length).toBeGreaterThan(index);
    return this.#requests[index] as HeldRequest;
  }

  close(): void {
    this.#server?.close();
  }
}
